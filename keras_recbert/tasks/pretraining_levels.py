"""Which block of an encoder each head of its pre-training reads."""

from keras_recbert.layers.common import check_positive
from keras_recbert.models.encoder_names import LEVELS
from keras_recbert.objectives import Objectives, read_objectives

LANGUAGE_MODELS = ("masked_lm", "causal_lm")


def as_objectives(objectives):
    """`Objectives`, or what `read_objectives` makes of a dict."""
    if isinstance(objectives, Objectives):
        return objectives
    return read_objectives(objectives)


def levels_of(objectives, num_layers):
    """What an encoder must be built with; see `Pretrainer.backbone_arguments`."""
    check_positive(num_layers=num_layers)
    objectives.check_layers(num_layers)

    def level(*names):
        for name in names:
            if getattr(objectives, name) is not None:
                layer = objectives.layer_of(name, num_layers)
                return None if layer == num_layers else layer
        return None

    masked_lm = objectives.masked_lm
    return {
        "sentence_layer": level("next_sentence"),
        "token_layer": level(*LANGUAGE_MODELS, "bigram_shift"),
        "concatenate": None if masked_lm is None else masked_lm.concatenate,
    }


def check_encoder(backbone, objectives):
    """Raises `ValueError` for objectives that do not fit an encoder."""
    num_layers = len(backbone.blocks)
    needed = levels_of(objectives, num_layers)
    highest = max(objectives.layer_of(n, num_layers) for n in objectives.names())
    if highest < num_layers:
        raise ValueError(
            f"No objective reads the blocks above {highest}, so nothing trains them. "
            f"Received: {num_layers} blocks. Build the encoder with "
            f"num_layers={highest}, or put an objective at block {num_layers}."
        )
    for key in LEVELS:
        held = backbone.config[key]
        if key != "concatenate" and held == num_layers:
            held = None
        if held != needed[key]:
            raise ValueError(
                f"These objectives need an encoder with {key}={needed[key]!r}. "
                f"Received: one with {key}={backbone.config[key]!r}. Build it with "
                "`**Pretrainer.backbone_arguments(objectives, num_layers)`."
            )
    causal = bool(backbone.config.get("causal"))
    if objectives.causal_lm is not None and not causal:
        raise ValueError(
            "causal_lm needs an encoder that reads from left to right; another sees "
            "the word that it is to guess. Received: an encoder of "
            f"{backbone.config['block']!r} blocks, causal={causal}. Build a "
            "'transformer' encoder, such as bert_tiny, with causal=True."
        )
    next_sentence = objectives.next_sentence
    if next_sentence is not None and (
        next_sentence.freeze_at_step or next_sentence.freeze_patience
    ):
        check_freezable(objectives, num_layers)


def check_freezable(objectives, num_layers):
    """Raises `ValueError` if freezing next_sentence makes no sense."""
    if objectives.next_sentence is None:
        raise ValueError(
            "There is no next_sentence to freeze. Received objectives: "
            f"{', '.join(objectives.names())}."
        )
    level = objectives.layer_of("next_sentence", num_layers)
    if level == num_layers:
        raise ValueError(
            "Freezing next_sentence at the last block would leave no block to train. "
            f"Received: layer={level} of {num_layers} blocks. Put next_sentence at a "
            "lower block, or do not freeze it."
        )
