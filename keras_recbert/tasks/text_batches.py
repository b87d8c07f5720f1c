"""From texts, in whatever form they come, to batches of packed ids."""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_recbert.heads.head import as_array
from keras_recbert.tasks.example_rows import ExampleRows, join, of_rows
from keras_recbert.tasks.padding import padded_length, padded_to, to_padded_length

NO_TEXT = "There is no text: every column needs at least one."


def is_packed(x):
    """Whether `x` is a dict of ids, or a dataset of them."""
    if isinstance(x, tf.data.Dataset):
        return tf.nest.flatten(x.element_spec)[0].dtype != tf.string
    return isinstance(x, dict) and not any(map(_holds_strings, x.values()))


def _holds_strings(column):
    """Whether a column of a dict is one of texts, not of ids."""
    if tf.is_tensor(column):
        return column.dtype == tf.string
    if isinstance(column, str) or (len(column) == 0 and np.ndim(column) < 2):
        return True  # ids have two axes, also those of no text
    if isinstance(column, (list, tuple)) and all(map(_is_list, column)):
        # Lists of words; the first ones may be empty.
        return all(isinstance(word, (str, bytes)) for one in column for word in one)
    return np.asarray(column[:1]).dtype.kind in "OSU"


def _is_list(value):
    return isinstance(value, (list, tuple))


def check_labelled(dataset, elements):
    """Raises `ValueError` for a dataset whose elements hold no labels.

    Args:
        dataset: `tf.data.Dataset`.
        elements: str. What its elements should be.
    """
    spec = dataset.element_spec
    if (
        not isinstance(spec, tuple)
        or len(spec) < 2
        or any(map(_is_text, tf.nest.flatten(spec[1])))
    ):
        raise ValueError(
            f"The elements of a dataset to learn from or to score are {elements}. "
            f"Received elements of {spec}."
        )


def _is_text(spec):
    return getattr(spec, "dtype", None) == tf.string


def columns(preprocessor, x):
    """The columns of arrays of examples.

    Args:
        preprocessor: `Packer`.
        x: as a `Packer` takes it.

    Returns:
        Tuple of string tensors, a field each, see `Packer.columns`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if columns differ in length or are empty.
    """
    found = preprocessor.columns(x)
    if len(found[0]) == 0:
        raise ValueError(NO_TEXT)
    return found


def ordered_batches(preprocessor, texts, targets, batch_size, row_targets=None):
    """Batches in the order of the texts, each padded to `padded_length`.

    Texts are tokenized once, however often the batches are read.

    Args:
        preprocessor: `Packer`.
        texts: as for `columns`.
        targets: None, or tuple of labels and weights: arrays `(num_examples, ...)`,
            or dicts of them by head.
        batch_size: int. Rows of a batch.
        row_targets: `Head.row_targets`, where an example may have several rows.

    Returns:
        `tf.data.Dataset` of packed ids, or of tuples of them and the targets.
    """
    parts = columns(preprocessor, texts)
    targets = _checked(targets, len(parts[0]))
    rows = ExampleRows(preprocessor, parts, targets, row_targets, keep_features=False)
    return rows.batches(batch_size, with_targets=True)


@dataclasses.dataclass(frozen=True)
class BucketedBatches:
    """Shuffled batches of texts of similar length.

    Args:
        dataset: `tf.data.Dataset` of tuples of packed ids and targets, its
            cardinality set; one pass is an epoch, in an order of its own.
        lengths: tuple of int, the length of the rows of each batch of an epoch, which
            is the same in every epoch but for the order.
        num_rows: int. Rows of an epoch: as many as examples, or more.
        rows_per_example: float. Mean number of choices or windows; 1 without.
    """

    dataset: tf.data.Dataset
    lengths: tuple
    num_rows: int
    rows_per_example: float = 1.0


def bucketed_batches(
    preprocessor, texts, targets, batch_size, seed=None, row_targets=None
):
    """Batches of texts of similar length, shuffled anew in every epoch.

    Texts are tokenized once and kept as ragged ids. Each epoch shuffles the examples,
    sorts them by `padded_length`, takes `batch_size` at a time, and shuffles the
    batches. So there are as many as of rows of one length, each but the longest is
    full, and little of them is padding. Rows have the `padded_length` of the longest
    in the batch, or the preprocessor's `sequence_length`.

    Args:
        preprocessor: `Packer`.
        texts: as for `columns`.
        targets: as for `ordered_batches`.
        batch_size: int. Rows of a batch.
        seed: optional int. Seed of the shuffle.
        row_targets: `Head.row_targets`, where an example may have several rows; these
            are shuffled as examples are.

    Returns:
        `BucketedBatches`.
    """
    parts = columns(preprocessor, texts)
    targets = _checked(targets, len(parts[0]))
    rows = ExampleRows(preprocessor, parts, targets, row_targets, keep_features=False)
    if preprocessor.sequence_length is None:
        limit = preprocessor.max_sequence_length
        buckets = padded_length(rows.lengths, limit)
    else:
        buckets = tf.fill([rows.num_rows], preprocessor.sequence_length)
    num_rows, rows_per_example = len(buckets), rows.rows_per_example
    del parts, targets

    @tf.autograph.experimental.do_not_convert  # which takes longer than the trace
    def by_length(order):
        order = tf.gather(order, tf.argsort(tf.gather(buckets, order), stable=True))
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    @tf.autograph.experimental.do_not_convert
    def batch(indices):
        features, targets = rows.gather(indices)
        length = preprocessor.sequence_length
        if length is None:
            length = tf.reduce_max(tf.gather(buckets, indices))
        return join(padded_to(features, length, preprocessor), targets)

    ascending = np.sort(buckets.numpy())
    ends = range(batch_size, num_rows + batch_size, batch_size)
    lengths = tuple(int(ascending[min(end, num_rows) - 1]) for end in ends)
    dataset = tf.data.Dataset.range(num_rows)
    dataset = dataset.shuffle(num_rows, seed=seed).batch(num_rows)
    dataset = dataset.flat_map(by_length).shuffle(len(lengths), seed=seed)
    dataset = (
        dataset.map(batch, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(len(lengths)))
        .prefetch(tf.data.AUTOTUNE)
    )
    return BucketedBatches(dataset, lengths, num_rows, rows_per_example)


def packed_dataset(
    preprocessor, dataset, batch_size, row_targets=None, check_batch=None
):
    """Maps the preprocessor over a dataset of strings.

    Args:
        preprocessor: `Packer`.
        dataset: `tf.data.Dataset` of a string, a tuple of strings (a pair), or a dict
            of them by field, alone or followed by labels and weights in a tuple.
            Batched, or single examples, which are batched here.
        batch_size: int. Used for single examples.
        row_targets: as for `ordered_batches`.
        check_batch: optional function of a dict of columns by field and of labels,
            arrays of a batch, that raises what is wrong with the labels.

    Returns:
        `tf.data.Dataset` of packed ids, alone or with what followed.
    """
    if _is_one_example(preprocessor, dataset.element_spec):
        dataset = (
            dataset.ragged_batch(batch_size)
            if preprocessor.list_fields
            else dataset.batch(batch_size)
        )

    @tf.autograph.experimental.do_not_convert
    def pack_element(*element):
        x, targets = split_element(*element)
        # Such as tags of words, one a word.
        targets = tf.nest.map_structure(_without_ragged, targets)
        parts = preprocessor.columns(x)
        if targets and check_batch is not None:
            fields = dict(zip(preprocessor.fields, parts, strict=False))
            targets = (_checked_labels(check_batch, fields, targets[0]), *targets[1:])
        packed = pack(preprocessor, parts)
        return join(*of_rows(preprocessor, packed, targets, row_targets))

    return dataset.map(pack_element, num_parallel_calls=tf.data.AUTOTUNE).prefetch(
        tf.data.AUTOTUNE
    )


def _checked_labels(check, fields, labels):
    """Labels that a function of arrays has checked; called in a graph."""

    def checked(labels, *parts):
        check(dict(zip(fields, parts, strict=True)), labels)
        return labels

    found = tf.numpy_function(checked, [labels, *fields.values()], labels.dtype)
    return tf.ensure_shape(found, labels.shape)


def _without_ragged(target):
    return target.to_tensor(-1) if isinstance(target, tf.RaggedTensor) else target


def _is_one_example(preprocessor, spec):
    """Whether the elements of a dataset of strings are examples, not batches."""
    texts, _ = split_element(*(spec if isinstance(spec, tuple) else (spec,)))
    if not isinstance(texts, dict):
        texts = texts if isinstance(texts, tuple) else (texts,)
        texts = dict(zip(preprocessor.fields, texts, strict=False))
    name, column = next(iter(texts.items()))
    return column.shape.rank == (1 if name in preprocessor.list_fields else 0)


def split_element(*element):
    """Splits an element of a dataset of strings, or its spec.

    Args:
        *element: what `tf.data.Dataset.map` calls a function with.

    Returns:
        Tuple of texts as a `Packer` takes them, and a tuple of labels and weights or
        None.
    """
    element = element[0] if len(element) == 1 else element
    if not isinstance(element, tuple):
        return element, None  # a text, or a dict
    if isinstance(element[0], tuple):
        return element[0], element[1:]  # a pair, labels
    if _is_text(element[1]):
        return element, None  # a pair
    return element[0], element[1:]  # a text or a dict, labels


def pack(preprocessor, parts):
    """Packed ids of columns of texts, padded to `padded_length`.

    Args:
        preprocessor: `Packer`.
        parts: tuple of string tensors, a field each, see `Packer.columns`.

    Returns:
        dict of int32 tensors `(num_rows, sequence_length)`, as the model takes them, or
        `(batch_size, num_choices, sequence_length)`; and the `row_features` of the
        packer.
    """
    return to_padded_length(preprocessor(tuple(parts)), preprocessor)


def of_each_head(function, target):
    """What a function gives for an array, or for each of a dict of them by head."""
    if isinstance(target, dict):
        return {name: function(one) for name, one in target.items()}
    return function(target)


def _checked(targets, num_examples):
    targets = tuple(
        of_each_head(as_array, target) for target in targets or () if target is not None
    )
    for target in tf.nest.flatten(targets):
        if len(target) != num_examples:
            raise ValueError(
                "Texts and labels (and weights) must have the same number of "
                f"examples. Received: {num_examples} texts, {len(target)} labels."
            )
    return targets
