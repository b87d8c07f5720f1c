"""Batches of texts that a user's generator or `PyDataset` makes."""

import inspect

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.tasks.example_rows import of_rows
from keras_recbert.tasks.text_batches import (
    columns,
    is_packed,
    join,
    of_each_head,
    pack,
)


def is_stream(x):
    """Whether `x` is a generator or a `keras.utils.PyDataset`."""
    return isinstance(x, keras.utils.PyDataset) or inspect.isgenerator(x)


def open_stream(stream):
    """The first batch of a stream, and a stream that still has it.

    Args:
        stream: as for `is_stream`.

    Returns:
        Tuple of the batch and the stream.

    Raises:
        ValueError: if there is no batch.
    """
    if isinstance(stream, keras.utils.PyDataset):
        if len(stream) < 1:
            raise ValueError("The PyDataset is empty: its length is 0.")
        return stream[0], stream
    try:
        first = next(stream)
    except StopIteration:
        raise ValueError(
            "The generator is exhausted: it gave no batch. Make a new one for each "
            "call."
        ) from None
    return first, _again(first, stream)


def _again(first, stream):
    yield first
    yield from stream


def has_texts(batch):
    """Whether a batch of a stream holds texts, not packed ids."""
    return not is_packed(batch[0] if isinstance(batch, tuple) else batch)


def stream_batches(
    preprocessor, first, stream, read_targets, shuffle, seed=None, row_targets=None
):
    """Packs the batches of a stream.

    Args:
        preprocessor: `TextPreprocessor`.
        first: the first batch, as `open_stream` gives it.
        stream: a generator or `PyDataset` of batches as Keras takes them: `(texts,
            labels)` or `(texts, labels, weights)`, and to predict `texts` or
            `(texts,)`. `texts` as for `columns`: those of pairs are a tuple inside.
        read_targets: as for `model_inputs`.
        shuffle: bool. Whether a `PyDataset` is read in another order in each epoch.
        seed: optional int. Seed of these orders.
        row_targets: `Head.row_targets`.

    Returns:
        `tf.data.Dataset` of tuples of packed ids and targets; of a `PyDataset` its
        cardinality is set.
    """

    rng = np.random.default_rng(seed)

    def packed(batch):
        x, *targets = batch if isinstance(batch, tuple) else (batch,)
        if targets:
            targets = read_targets(x, *targets)
        packed = pack(preprocessor, columns(preprocessor, x))
        targets = [target for target in targets if target is not None]
        targets = tuple(of_each_head(np.asarray, one) for one in targets)
        return join(*of_rows(preprocessor, packed, targets, row_targets))

    def batches():
        if not isinstance(stream, keras.utils.PyDataset):
            yield from map(packed, stream)
            return
        order = np.arange(len(stream))
        if shuffle:
            rng.shuffle(order)
        for index in order:
            yield packed(stream[int(index)])
        stream.on_epoch_end()

    signature = tf.nest.map_structure(_any_size, packed(first))
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    if isinstance(stream, keras.utils.PyDataset):
        length = tf.data.experimental.assert_cardinality(len(stream))
        dataset = dataset.apply(length)
    return dataset.prefetch(tf.data.AUTOTUNE)


def _any_size(array):
    """Spec of arrays of other batch sizes, and ids of other lengths."""
    array = tf.convert_to_tensor(array)
    is_packed_ids = array.dtype == tf.int32 and array.shape.rank > 1
    free = array.shape.rank if is_packed_ids else 1
    return tf.TensorSpec([None] * free + array.shape[free:].as_list(), array.dtype)
