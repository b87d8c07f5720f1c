"""From a name to a model."""

from concurrent.futures import ThreadPoolExecutor

from keras_recbert.models import zoo  # noqa: F401  registers the names
from keras_recbert.models.registry import get_card, nearest

TASKS = ("classifier", "regressor")


def build(name, task=None, **overrides):
    """Builds a model of the zoo.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        task: None for the bare encoder, `"classifier"` or `"regressor"` for an
            encoder with a head that takes raw texts.
        **overrides: sizes that differ from the card's: `num_layers`, `hidden_dim`,
            `num_heads`, `intermediate_dim`, `recurrent_dim`, `vocabulary_size`,
            `max_sequence_length`, `num_segments`, `dropout`, and what the kind of
            block takes beside (`step_size`, `gate`, ...); `dtype`. With a task also
            its arguments, such as `num_classes` and `vocabulary`.

    Returns:
        `keras_recbert.models.backbone.RecBertBackbone`, or a
        `keras_recbert.tasks` model.

    Raises:
        ValueError: if the name, the task or an override is unknown, or sizes do not
            fit each other; says what was expected and the nearest valid thing.

    Example:

    >>> encoder = keras_recbert.build("swish_tiny", vocabulary_size=1000)
    >>> model = keras_recbert.build(
    ...     "swish_tiny", task="classifier", num_classes=2, vocabulary="vocab.txt"
    ... )
    """
    card = get_card(name)
    if task is None:
        return _build_backbone(card, overrides)
    if task not in TASKS:
        raise ValueError(
            f"No task is called {task!r}. {nearest(task, TASKS)}"
            f"Valid: {', '.join(TASKS)}, or None for the encoder alone."
        )
    from keras_recbert.tasks.text_classifier import TextClassifier
    from keras_recbert.tasks.text_regressor import TextRegressor

    cls = TextClassifier if task == "classifier" else TextRegressor
    task_arguments, sizes = cls.split_arguments(overrides)
    preprocessor = cls.make_preprocessor(task_arguments, sizes)
    backbone = _build_backbone(card, sizes)
    return cls(backbone, preprocessor, **task_arguments)


def count_parameters(name, **overrides):
    """Number of parameters of an encoder, counted without filling its weights.

    The model is built for real, but its variables get shapes only: counting
    `trans_blstm_large` needs no 3 GB.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        **overrides: as for `build`.

    Returns:
        int.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_count, name, overrides).result()


def _count(name, overrides):
    # Keras keeps a list of the variables that were never filled and fills them when
    # the next scope of this kind ends, here or in Keras itself. The list is one of
    # each thread, so in a thread of its own it goes when the thread does.
    import keras

    with keras.StatelessScope(initialize_variables=False):
        return build(name, **overrides).count_params()


def _build_backbone(card, overrides):
    from keras_recbert.models.backbone import (
        BLOCK_ARGUMENTS,
        SHARED_ARGUMENTS,
        RecBertBackbone,
        check_arguments,
    )

    valid = (*SHARED_ARGUMENTS, *BLOCK_ARGUMENTS[card.sizes["block"]])
    check_arguments(f"{card.name!r}", overrides, (*valid, "dtype"))
    sizes = dict(card.sizes)
    if overrides.get("hidden_dim", sizes["hidden_dim"]) != sizes["hidden_dim"]:
        # These follow the width unless they are named too.
        for size in ("num_heads", "intermediate_dim", "recurrent_dim"):
            sizes.pop(size, None)
    if card.sizes["block"] == "blstm":
        sizes.pop("num_heads", None)
    return RecBertBackbone(**{**sizes, "name": card.name, **overrides})
