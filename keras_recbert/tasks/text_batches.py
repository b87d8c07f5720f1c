"""From texts, in whatever form they come, to batches of packed ids."""

import numpy as np
import tensorflow as tf

from keras_recbert.text.string_tensor import to_string_tensor

PACK_CHUNK = 2048  # texts tokenized at a time; bounds the padded copy in memory


def is_packed(x):
    """Whether `x` is a dict of ids, or a dataset of them."""
    if isinstance(x, tf.data.Dataset):
        return tf.nest.flatten(x.element_spec)[0].dtype != tf.string
    return isinstance(x, dict)


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


def columns(texts):
    """Texts as a tuple of one or two columns of strings.

    Args:
        texts: a str; a list or array of str; or a tuple of two of these, the two
            texts of pairs.

    Returns:
        Tuple of one or two string tensors `(num_examples,)`.

    Raises:
        TypeError: if a text is not a string.
        ValueError: if columns differ in length or are empty.
    """
    parts = texts if isinstance(texts, tuple) else (texts,)
    if len(parts) not in (1, 2):
        raise ValueError(
            "An example has one text, or a tuple of two. Received: a tuple of "
            f"{len(parts)}. A batch of single texts is a list."
        )
    tensors = [
        to_string_tensor(part, f"texts[{index}]" if len(parts) == 2 else "texts")
        for index, part in enumerate(parts)
    ]
    lengths = [len(tensor) for tensor in tensors]
    if len(set(lengths)) > 1 or 0 in lengths:
        raise ValueError(
            "Every column needs the same number of texts, at least one. Received: "
            f"{' and '.join(map(str, lengths))} texts."
        )
    return tuple(tensors)


def ordered_batches(preprocessor, texts, targets, batch_size):
    """Batches in the order of the texts, each padded to its longest row.

    Args:
        preprocessor: `TextPreprocessor`.
        texts: as for `columns`.
        targets: None, or tuple of arrays `(num_examples, ...)`: labels, weights.
        batch_size: int.

    Returns:
        `tf.data.Dataset` of packed ids, or of tuples of them and the targets.
    """
    parts = columns(texts)
    targets = _checked(targets, len(parts[0]))
    dataset = tf.data.Dataset.from_tensor_slices((parts, targets)).batch(batch_size)
    return dataset.map(
        lambda parts, targets: _join(_pack(preprocessor, parts), targets),
        num_parallel_calls=tf.data.AUTOTUNE,
    ).prefetch(tf.data.AUTOTUNE)


def bucketed_batches(preprocessor, texts, targets, batch_size, seed=None, width=8):
    """Shuffled batches of texts of similar length, shuffled anew in every epoch.

    Texts are tokenized once and kept as ragged ids. A batch holds texts whose
    numbers of word pieces fall into the same range of `width`, so little of it is
    padding. Each range may end an epoch with one smaller batch. Rows have the length
    of the longest in the batch, or the preprocessor's `sequence_length`.

    Args:
        preprocessor: `TextPreprocessor`.
        texts: as for `columns`.
        targets: tuple of arrays `(num_examples, ...)`: labels, weights.
        batch_size: int.
        seed: optional int. Seed of the shuffle.
        width: int. Word pieces between the ends of a range.

    Returns:
        `tf.data.Dataset` of tuples of packed ids and targets, its cardinality set.
    """
    parts = columns(texts)
    targets = _checked(targets, len(parts[0]))
    token_ids, segment_ids = _tokenize(preprocessor, parts)
    lengths = token_ids.row_lengths().numpy()
    boundaries = list(range(width + 1, int(lengths.max()) + 1, width))
    counts = np.bincount(np.digitize(lengths, boundaries))
    num_batches = int(np.ceil(counts / batch_size).sum())

    def pad(token_ids, segment_ids, mask, targets):
        return _join(
            {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": mask},
            targets,
        )

    dataset = tf.data.Dataset.from_tensor_slices((token_ids, segment_ids, targets))
    dataset = dataset.shuffle(len(lengths), seed=seed, reshuffle_each_iteration=True)
    dataset = dataset.map(
        lambda ids, segments, targets: (ids, segments, tf.ones_like(ids), targets)
    )
    padding = tf.constant(preprocessor.tokenizer.pad_id, tf.int32)
    specs = dataset.element_spec[3]
    zeros = tf.nest.map_structure(lambda spec: tf.zeros([], spec.dtype), specs)
    row = [preprocessor.sequence_length]
    dataset = dataset.bucket_by_sequence_length(
        lambda ids, *_: tf.size(ids),
        boundaries,
        [batch_size] * (len(boundaries) + 1),
        padded_shapes=(row, row, row, tuple(spec.shape for spec in specs)),
        padding_values=(padding, 0, 0, zeros),
    )
    return (
        dataset.map(pad, num_parallel_calls=tf.data.AUTOTUNE)
        .apply(tf.data.experimental.assert_cardinality(num_batches))
        .prefetch(tf.data.AUTOTUNE)
    )


def packed_dataset(preprocessor, dataset, batch_size):
    """Maps the preprocessor over a dataset of strings.

    Args:
        preprocessor: `TextPreprocessor`.
        dataset: `tf.data.Dataset` of a string, or a tuple of two (a pair), alone or
            followed by labels and weights in a tuple. Batched, or single examples,
            which are batched here.
        batch_size: int. Used for single examples.

    Returns:
        `tf.data.Dataset` of packed ids, alone or with what followed.
    """
    spec = dataset.element_spec
    if tf.nest.flatten(spec)[0].shape.rank == 0:  # the text; labels may have axes
        dataset = dataset.batch(batch_size)

    def split(*element):
        element = element[0] if len(element) == 1 else element
        if not isinstance(element, tuple):
            return (element,), None  # a text
        if isinstance(element[0], tuple):
            return element[0], element[1:]  # a pair, labels
        if _is_text(element[1]):
            return element, None  # a pair
        return element[:1], element[1:]  # a text, labels

    def pack(*element):
        parts, targets = split(*element)
        return _join(_pack(preprocessor, parts), targets)

    return dataset.map(pack, num_parallel_calls=tf.data.AUTOTUNE).prefetch(
        tf.data.AUTOTUNE
    )


def _pack(preprocessor, parts):
    return preprocessor(tuple(parts) if len(parts) == 2 else parts[0])


def _join(features, targets):
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
        packed = _pack(
            preprocessor, [part[start : start + PACK_CHUNK] for part in parts]
        )
        mask = tf.cast(packed["padding_mask"], tf.bool)
        chunks.append(
            [
                tf.ragged.boolean_mask(packed[k], mask)
                for k in ("token_ids", "segment_ids")
            ]
        )
    return tuple(tf.concat(chunk, axis=0) for chunk in zip(*chunks, strict=True))
