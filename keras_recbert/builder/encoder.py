"""The encoder of a card: its arguments, and its start from a checkpoint."""

from keras_recbert.core.checks import check_positive
from keras_recbert.core.names import check_arguments


def build_encoder(card, overrides, checkpoint=None):
    """The encoder of a card, started from a checkpoint if there is one.

    Args:
        card: `keras_recbert.models.registry.ModelCard`.
        overrides: dict, as of `keras_recbert.build`, without arguments of a task.
        checkpoint: optional `keras_recbert.convert.checkpoint.Checkpoint`.

    Raises:
        ValueError: if arguments do not fit the card, each other or the checkpoint.
    """
    arguments = complete_arguments(card, overrides, checkpoint)
    encoder = encoder_class(card.encoder)(**arguments)
    if checkpoint is not None:
        from keras_recbert.convert.warm_start import load_weights

        encoder.weights_report = load_weights(encoder, checkpoint)
        encoder.started_from = started_from(encoder, checkpoint)
    return encoder


def encoder_class(name):
    """The class of encoder of a name."""
    from keras_recbert.models.encoders import get_encoder

    return get_encoder(name)


def started_from(encoder, checkpoint):
    """What `fine_tuning_defaults` goes by."""
    if checkpoint.format == "keras_recbert":
        return "preset"
    loaded = {**encoder.weights_report.copied, **encoder.weights_report.adapted}
    if not any(path.startswith("block_") for path in loaded):
        return None
    is_whole = len(encoder.blocks) == checkpoint.sizes["num_layers"]
    return "bert" if is_whole else "first_layers"


def make_preprocessor(checkpoint, encoder):
    """The preprocessor of the vocabulary of a checkpoint, which has one."""
    from keras_recbert.text.text_preprocessor import TextPreprocessor
    from keras_recbert.text.word_tokenizer import get_tokenizer

    buckets = checkpoint.num_oov_buckets
    tokenizer = get_tokenizer(checkpoint.tokenizer)(
        list(checkpoint.vocabulary),
        checkpoint.lowercase,
        checkpoint.strip_accents,
        **({"num_oov_buckets": buckets} if buckets else {}),
    )
    return TextPreprocessor(tokenizer, max_sequence_length=encoder.max_sequence_length)


def check_class(card, checkpoint):
    """Raises `ValueError` for weights, if any, of another class of encoder."""
    if checkpoint is None or checkpoint.encoder_class == card.encoder:
        return
    advice = "`keras_recbert.load` gives a saved model back."
    cls = encoder_class(card.encoder)
    if cls.takes_vectors or cls.reads_words:
        advice += f" Vectors start from a BERT's: vectors={str(checkpoint.path)!r}."
    raise ValueError(
        f"`weights` are those of an encoder of the same class. {card.name!r} is a "
        f"{card.encoder}; {checkpoint.path} holds a {checkpoint.encoder_class}. "
        f"{advice}"
    )


def complete_arguments(card, overrides, checkpoint):
    """Arguments of the encoder, checked to fit the checkpoint."""
    from keras_recbert.blocks import complete_config, get_block

    valid = encoder_class(card.encoder).arguments(card.sizes)
    check_arguments(f"{card.name!r}", overrides, (*valid, "dtype"))
    check_class(card, checkpoint)
    if card.encoder != "RecBertEncoder":
        sizes = {} if checkpoint is None else _equal_sizes(checkpoint, overrides)
        return {**card.sizes, **sizes, "name": card.name, **overrides}
    own = get_block(card.sizes["block"]).arguments
    sizes = sizes_of(card, checkpoint)
    if overrides.get("hidden_dim", sizes["hidden_dim"]) != sizes["hidden_dim"]:
        # These follow the width unless they are named too.
        for size in ("num_heads", "intermediate_dim", "recurrent_dim"):
            sizes.pop(size, None)
    if "num_heads" not in own:
        sizes.pop("num_heads", None)
    arguments = {**sizes, "name": card.name, **overrides}
    if checkpoint is not None:
        from keras_recbert.convert.warm_start import check_sizes

        # What neither the card nor the caller names is the checkpoint's.
        arguments = {**_open_sizes(checkpoint), **arguments}
        config = complete_config(arguments)
        numbers = [key for key, value in checkpoint.sizes.items() if type(value) is int]
        check_positive(**{key: config[key] for key in numbers if key in config})
        named = {*overrides, *(["num_layers"] if card.first_layers else [])}
        check_sizes(f"{card.name!r}", config, named, checkpoint)
    return arguments


def _equal_sizes(checkpoint, overrides):
    """Those of a checkpoint; raises if others are asked for, but for longer rows."""
    for name, size in checkpoint.sizes.items():
        if name != "max_sequence_length" and overrides.get(name, size) != size:
            raise ValueError(
                f"{checkpoint.path} holds an encoder of {name}={size!r}. Received: "
                f"{name}={overrides[name]!r}. Leave it out."
            )
    return checkpoint.sizes


def sizes_of(card, checkpoint):
    """Those of the card, or of a preset that was built by its name."""
    if checkpoint is None or checkpoint.name != card.name:
        return dict(card.sizes)
    return {**card.sizes, **checkpoint.sizes}


def _open_sizes(checkpoint):
    """What no name of the zoo fixes, as the checkpoint has it."""
    names = (
        "vocabulary_size",
        "max_sequence_length",
        "num_segments",
        "pretrained_heads",
    )
    return {n: checkpoint.sizes[n] for n in names if n in checkpoint.sizes}
