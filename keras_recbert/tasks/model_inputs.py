"""What `fit`, `evaluate` and `predict` of a model of texts hand to Keras."""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

from keras_recbert.tasks.text_batches import (
    NO_TEXT,
    bucketed_batches,
    columns,
    is_packed,
    of_each_head,
    ordered_batches,
    packed_dataset,
    split_element,
)
from keras_recbert.tasks.text_streams import (
    has_texts,
    is_stream,
    open_stream,
    stream_batches,
)

DEFAULT_BATCH_SIZE = 32  # Devlin et al. 2018, section 4.1


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """Arguments for the same method of `keras.Model`, and what is known of them.

    Args:
        x: packed ids, or a dataset or stream of them.
        y: labels of arrays of ids, else None.
        sample_weight: weights of arrays of ids, else None.
        batch_size: int of arrays of ids, else None.
        num_batches: int, batches of a pass; None if nobody knows.
        lengths: tuple of int, the length of the rows of each batch of a pass; None if
            nobody knows.
        fields: tuple of str, the fields an example has; None if the ids do not say it.
    """

    x: typing.Any
    y: typing.Any = None
    sample_weight: typing.Any = None
    batch_size: int | None = None
    num_batches: int | None = None
    lengths: tuple | None = None
    fields: tuple | None = None


def model_inputs(
    preprocessor,
    read_targets,
    x,
    y=None,
    sample_weight=None,
    batch_size=None,
    shuffle=False,
    seed=None,
    row_targets=None,
    check_batch=None,
):
    """Packs texts, in whatever form they come.

    Args:
        preprocessor: `Packer`; None for models of packed ids.
        read_targets: function from texts, their labels, and weights of examples or
            None, to a tuple of the last two as the loss takes them, which raises
            `ValueError` for others; None to predict.
        x: as for `TextModel.fit`.
        y, sample_weight: arrays `(num_examples,)`, dicts of them by head, or part of
            `x`.
        batch_size: int or None.
        shuffle: bool. Whether examples may be taken in another order in each pass.
        seed: optional int. Seed of the order.
        row_targets: `Head.row_targets`.
        check_batch: as for `packed_dataset`.

    Returns:
        `ModelInputs`.
    """
    if isinstance(x, tf.data.Dataset):
        return _of_dataset(preprocessor, x, batch_size, row_targets, check_batch)
    if is_stream(x):
        return _of_stream(preprocessor, read_targets, x, shuffle, seed, row_targets)
    if read_targets is not None:
        y, sample_weight = read_targets(x, y, sample_weight)
    size = batch_size or DEFAULT_BATCH_SIZE
    if is_packed(x):
        num_rows, *_, length = np.shape(next(iter(x.values())))
        num_batches = -(-num_rows // size)
        lengths = (length,) * num_batches
        return ModelInputs(x, y, sample_weight, batch_size, num_batches, lengths)
    need_preprocessor(preprocessor)
    fields = _fields(preprocessor, x)
    targets = (y, sample_weight) if read_targets is not None else None
    if shuffle:
        made = bucketed_batches(preprocessor, x, targets, size, seed, row_targets)
        return ModelInputs(
            made.dataset,
            num_batches=len(made.lengths),
            lengths=made.lengths,
            fields=fields,
        )
    batches = ordered_batches(preprocessor, x, targets, size, row_targets)
    num_batches = int(batches.cardinality())
    return ModelInputs(batches, num_batches=num_batches, fields=fields)


def split_examples(preprocessor, x, y, sample_weight, fraction):
    """Takes the last part of arrays of texts off, as `validation_split` of Keras does.

    Args:
        preprocessor: `Packer`.
        x: texts, as for `columns`.
        y, sample_weight: arrays `(num_examples,)`, or dicts of them by head; the
            latter may be None.
        fraction: float in (0, 1). What is taken off.

    Returns:
        Two tuples `(x, y, sample_weight)`.

    Raises:
        ValueError: if `fraction` is out of range, or a part would be empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(
            "`validation_split` must be above 0 and below 1. "
            f"Received: validation_split={fraction!r}."
        )
    parts = columns(preprocessor, x)
    num_examples = len(parts[0])
    first = int(num_examples * (1 - fraction))
    if first in (0, num_examples):
        raise ValueError(
            f"`validation_split` leaves no examples on one side. Received: "
            f"validation_split={fraction!r} of {num_examples} examples."
        )

    def take(start, end):
        def cut(target):
            return np.asarray(target)[start:end]

        texts = tuple(part[start:end] for part in parts)
        targets = (y, sample_weight)
        return texts, *(t if t is None else of_each_head(cut, t) for t in targets)

    return take(0, first), take(first, num_examples)


def need_preprocessor(preprocessor):
    """Raises `ValueError` for texts without a vocabulary."""
    if preprocessor is None:
        raise ValueError(
            "This model was built without a vocabulary, so it takes packed ids "
            "only. Build it with vocabulary='vocab.txt' to give it texts."
        )


def _of_dataset(preprocessor, dataset, batch_size, row_targets, check_batch):
    fields = None
    if not is_packed(dataset):
        need_preprocessor(preprocessor)
        spec = dataset.element_spec
        texts, _ = split_element(*(spec if isinstance(spec, tuple) else (spec,)))
        fields = _fields(preprocessor, texts)
        size = batch_size or DEFAULT_BATCH_SIZE
        dataset = packed_dataset(preprocessor, dataset, size, row_targets, check_batch)
    cardinality = int(dataset.cardinality())
    if cardinality == 0:
        raise ValueError(NO_TEXT)
    return ModelInputs(
        dataset,
        num_batches=cardinality if cardinality > 0 else None,
        fields=fields,
    )


def _of_stream(preprocessor, read_targets, stream, shuffle, seed, row_targets):
    first, stream = open_stream(stream)
    num_batches = len(stream) if hasattr(stream, "__len__") else None
    if read_targets is not None and (not isinstance(first, tuple) or len(first) < 2):
        raise ValueError(
            "The batches to learn from or to score are (texts, labels) or (texts, "
            f"labels, weights). Received a batch of type {type(first).__name__}."
        )
    if not has_texts(first):
        return ModelInputs(stream, num_batches=num_batches)
    need_preprocessor(preprocessor)
    texts = first[0] if isinstance(first, tuple) else first
    return ModelInputs(
        stream_batches(
            preprocessor, first, stream, read_targets, shuffle, seed, row_targets
        ),
        num_batches=num_batches,
        fields=_fields(preprocessor, texts),
    )


def _fields(preprocessor, x):
    """Names of the fields of texts: a dict, a tuple of columns, or one column."""
    number = len(x) if isinstance(x, (dict, tuple)) else 1
    return preprocessor.fields[:number]
