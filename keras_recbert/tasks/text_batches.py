"""From texts, in whatever form they come, to batches of packed ids."""

import dataclasses

import numpy as np
import tensorflow as tf

PACK_CHUNK = 2048  # texts tokenized at a time; bounds the padded copy in memory
# Up to so many word pieces, rows are padded to multiples of so many.
LENGTH_STEPS = ((64, 8), (128, 16), (256, 32))
LAST_LENGTH_STEP = 64


def is_packed(x):
    """Whether `x` is a dict of ids, or a dataset of them."""
    if isinstance(x, tf.data.Dataset):
        return tf.nest.flatten(x.element_spec)[0].dtype != tf.string
    return isinstance(x, dict) and not any(map(_holds_strings, x.values()))


def _holds_strings(column):
    """Whether a column of a dict is one of texts, not of ids."""
    if tf.is_tensor(column):
        return column.dtype == tf.string
    return isinstance(column, str) or np.asarray(column[:1]).dtype.kind in "OSU"


def check_labelled(dataset):
    """Raises `ValueError` for a dataset whose elements hold no labels."""
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) < 2 or _is_text(spec[1]):
        raise ValueError(
            "The elements of a dataset to learn from or to score are (text, label) or "
            "((text, text), label), with numbers as labels. Received elements of "
            f"{spec}."
        )


def _is_text(spec):
    return getattr(spec, "dtype", None) == tf.string


def columns(preprocessor, x):
    """The columns of arrays of examples.

    Args:
        preprocessor: `Packer`.
        x: as a `Packer` takes it.

    Returns:
        Tuple of string tensors `(num_examples,)`, a field each.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if columns differ in length or are empty.
    """
    found = preprocessor.columns(x)
    if len(found[0]) == 0:
        raise ValueError("There is no text: every column needs at least one.")
    return found


def padded_length(length, limit):
    """The length that rows of up to `length` word pieces are padded to.

    Few lengths, so that whatever is done once for each length is done a few times:
    multiples of 8 up to 64, of 16 up to 128, of 32 up to 256, of 64 above.

    Args:
        length: int, or int tensor of any shape.
        limit: int. What a row never exceeds: the preprocessor's limit.

    Returns:
        int32 tensor, shape of `length`.
    """
    length = tf.cast(length, tf.int32)
    step = tf.fill(tf.shape(length), LAST_LENGTH_STEP)
    for highest, smaller in reversed(LENGTH_STEPS):
        step = tf.where(length <= highest, smaller, step)
    return tf.minimum(-(-length // step) * step, limit)


def ordered_batches(preprocessor, texts, targets, batch_size):
    """Batches in the order of the texts, each padded to `padded_length`.

    Args:
        preprocessor: `Packer`.
        texts: as for `columns`.
        targets: None, or tuple of arrays `(num_examples, ...)`: labels, weights.
        batch_size: int.

    Returns:
        `tf.data.Dataset` of packed ids, or of tuples of them and the targets.
    """
    parts = columns(preprocessor, texts)
    targets = _checked(targets, len(parts[0]))
    dataset = tf.data.Dataset.from_tensor_slices((parts, targets)).batch(batch_size)
    return dataset.map(
        lambda parts, targets: join(pack(preprocessor, parts), targets),
        num_parallel_calls=tf.data.AUTOTUNE,
    ).prefetch(tf.data.AUTOTUNE)


@dataclasses.dataclass(frozen=True)
class BucketedBatches:
    """Shuffled batches of texts of similar length.

    Args:
        dataset: `tf.data.Dataset` of tuples of packed ids and targets, its
            cardinality set; one pass is an epoch, in an order of its own.
        lengths: tuple of int, the length of the rows of each batch of an epoch, which
            is the same in every epoch but for the order.
    """

    dataset: tf.data.Dataset
    lengths: tuple


def bucketed_batches(preprocessor, texts, targets, batch_size, seed=None):
    """Batches of texts of similar length, shuffled anew in every epoch.

    Texts are tokenized once and kept as ragged ids. Each epoch shuffles the examples,
    sorts them by `padded_length`, takes `batch_size` at a time, and shuffles the
    batches. So there are as many as of rows of one length, each but the longest is
    full, and little of them is padding. Rows have the `padded_length` of the longest
    in the batch, or the preprocessor's `sequence_length`.

    Args:
        preprocessor: `Packer`.
        texts: as for `columns`.
        targets: tuple of arrays `(num_examples, ...)`: labels, weights.
        batch_size: int.
        seed: optional int. Seed of the shuffle.

    Returns:
        `BucketedBatches`.
    """
    parts = columns(preprocessor, texts)
    targets = _checked(targets, len(parts[0]))
    token_ids, segment_ids = _tokenize(preprocessor, parts)
    if preprocessor.sequence_length is None:
        limit = preprocessor.max_sequence_length
        buckets = padded_length(token_ids.row_lengths(), limit)
    else:
        buckets = tf.fill([token_ids.nrows()], preprocessor.sequence_length)
    num_examples = len(buckets)
    target_tensors = tuple(map(tf.convert_to_tensor, targets))
    pad_id = preprocessor.tokenizer.pad_id

    def by_length(order):
        order = tf.gather(order, tf.argsort(tf.gather(buckets, order), stable=True))
        return tf.data.Dataset.from_tensor_slices(order).batch(batch_size)

    def rows(indices):
        ids = tf.gather(token_ids, indices)
        features = {
            "token_ids": ids.to_tensor(pad_id),
            "segment_ids": tf.gather(segment_ids, indices).to_tensor(),
            "padding_mask": tf.ones_like(ids).to_tensor(),
        }
        length = preprocessor.sequence_length
        if length is None:
            length = tf.reduce_max(tf.gather(buckets, indices))
        targets = tuple(tf.gather(one, indices) for one in target_tensors)
        return join(_padded(features, length, pad_id), targets)

    ascending = np.sort(buckets.numpy())
    ends = range(batch_size, num_examples + batch_size, batch_size)
    lengths = tuple(int(ascending[min(end, num_examples) - 1]) for end in ends)
    dataset = tf.data.Dataset.range(num_examples)
    dataset = dataset.shuffle(num_examples, seed=seed).batch(num_examples)
    dataset = dataset.flat_map(by_length).shuffle(len(lengths), seed=seed)
    dataset = (
        dataset.map(rows, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(len(lengths)))
        .prefetch(tf.data.AUTOTUNE)
    )
    return BucketedBatches(dataset, lengths)


def packed_dataset(preprocessor, dataset, batch_size):
    """Maps the preprocessor over a dataset of strings.

    Args:
        preprocessor: `Packer`.
        dataset: `tf.data.Dataset` of a string, a tuple of strings (a pair), or a dict
            of them by field, alone or followed by labels and weights in a tuple.
            Batched, or single examples, which are batched here.
        batch_size: int. Used for single examples.

    Returns:
        `tf.data.Dataset` of packed ids, alone or with what followed.
    """
    spec = dataset.element_spec
    if tf.nest.flatten(spec)[0].shape.rank == 0:  # the text; labels may have axes
        dataset = dataset.batch(batch_size)

    def pack_element(*element):
        x, targets = split_element(*element)
        return join(pack(preprocessor, preprocessor.columns(x)), targets)

    return dataset.map(pack_element, num_parallel_calls=tf.data.AUTOTUNE).prefetch(
        tf.data.AUTOTUNE
    )


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
        parts: tuple of string tensors `(batch_size,)`, a field each.

    Returns:
        dict of int32 tensors `(batch_size, sequence_length)`, as the encoder takes.
    """
    packed = preprocessor(tuple(parts))
    if preprocessor.sequence_length is not None:
        return packed
    length = tf.shape(packed["token_ids"])[1]
    length = padded_length(length, preprocessor.max_sequence_length)
    return _padded(packed, length, preprocessor.tokenizer.pad_id)


def _padded(features, length, pad_id):
    more = length - tf.shape(features["token_ids"])[1]
    values = {"token_ids": pad_id}
    padded = {
        key: tf.pad(ids, [[0, 0], [0, more]], constant_values=values.get(key, 0))
        for key, ids in features.items()
    }
    if isinstance(length, int):
        for ids in padded.values():
            ids.set_shape([None, length])
    return padded


def join(features, targets):
    """What `fit` takes: features alone, or in a tuple before their targets."""
    return (features, *targets) if targets else features


def _checked(targets, num_examples):
    targets = tuple(
        np.asarray(target) for target in targets or () if target is not None
    )
    for target in targets:
        if len(target) != num_examples:
            raise ValueError(
                "Texts and labels (and weights) must have the same number of "
                f"examples. Received: {num_examples} texts, {len(target)} labels."
            )
    return targets


def _tokenize(preprocessor, parts):
    """All texts as ragged `token_ids` and `segment_ids`."""
    chunks = []
    for start in range(0, len(parts[0]), PACK_CHUNK):
        packed = preprocessor(tuple(part[start : start + PACK_CHUNK] for part in parts))
        mask = tf.cast(packed["padding_mask"], tf.bool)
        chunks.append(
            [
                tf.ragged.boolean_mask(packed[k], mask)
                for k in ("token_ids", "segment_ids")
            ]
        )
    return tuple(tf.concat(chunk, axis=0) for chunk in zip(*chunks, strict=True))
