"""How a model is fine-tuned by default: one rule for Python, recipes and flags."""

import dataclasses

from keras_recbert.models.encoder_names import POOLER


@dataclasses.dataclass(frozen=True)
class FineTuningDefaults:
    """What follows from the weights that a model starts from.

    Args:
        start: str. What it starts from, in words.
        learning_rate: float. Highest learning rate.
        pooling: str. What the head reads, see `TextModel`.
    """

    start: str
    learning_rate: float
    pooling: str


# By `started_from` of the encoder.
DEFAULTS = {
    # The mean of all outputs learns faster than a first token that nothing was
    # trained to fill.
    None: FineTuningDefaults("random weights", 3e-4, "mean"),
    # A small encoder, trained for a short time: it still has far to go.
    "preset": FineTuningDefaults("a preset of keras_recbert", 3e-4, "mean"),
    # Devlin et al. 2018, section 4.1 and appendix A.3 (2e-5 to 5e-5), of BERT-base.
    "bert": FineTuningDefaults("a pretrained BERT", 5e-5, "first"),
    # Whose first token nothing was trained to read: below the middle of a MiniLM it
    # hardly differs from text to text.
    "first_layers": FineTuningDefaults(
        "the first layers of a pretrained BERT", 5e-5, "mean"
    ),
}
BASE_DIM = 768  # width of BERT-base
# Of an encoder that is not trained: all that is trained starts random.
FEATURES_RATE = 3e-3


def fine_tuning_defaults(encoder, freeze=None):
    """The defaults of a task model on an encoder.

    Args:
        encoder: `RecBertEncoder`.
        freeze: as for `TextModel`.

    Returns:
        `FineTuningDefaults`, with those of the encoder where it has some of its own
        (`Encoder.fine_tuning`). A BERT that came without a pooler is read by its mean,
        unless the encoder says where it is read.
        The rate of a BERT goes with one over its width, as that of Adam does for the
        same change of the outputs (Yang et al. 2022, table 3), up to the rate of random
        weights: 1e-4 at 384. Above an encoder that is not trained it is one rate.
    """
    defaults = DEFAULTS[encoder.started_from]
    if encoder.started_from in ("bert", "first_layers"):
        rate = defaults.learning_rate * BASE_DIM / encoder.hidden_dim
        rate = min(rate, DEFAULTS[None].learning_rate)
        defaults = dataclasses.replace(defaults, learning_rate=rate)
    if encoder.fine_tuning:
        defaults = dataclasses.replace(defaults, **encoder.fine_tuning)
    if freeze == "encoder":
        defaults = dataclasses.replace(defaults, learning_rate=FEATURES_RATE)
    report = encoder.weights_report
    if "pooling" in encoder.fine_tuning:
        return defaults
    if report is not None and any(path in report.new for path in POOLER):
        return dataclasses.replace(defaults, pooling="mean")
    return defaults
