"""Rows of like length computed together, so that little of a batch is padding."""

import tensorflow as tf

# Tokens of a group: fewer leave a processor's matrix products short of rows.
TOKENS = 512
# A batch of which less is padding has groups of any number of tokens.
MOST_PADDING = 0.2


def _few_sizes(multiple, bits):
    """Multiples of a number, of so many significant bits in base 2; from 0 to 2**30."""
    sizes = [0]
    while sizes[-1] < 2**30:
        step = max(multiple, 2 ** (sizes[-1].bit_length() - bits))
        sizes.append(sizes[-1] + step)
    return sizes


# oneDNN compiles and keeps a kernel for each shape, so there are to be few.
LENGTHS = _few_sizes(4, 5)  # 4, 8, ... 124, 128, 136, ... 256, 272, ...
NUMBERS_OF_ROWS = [0, 1, 2, 3, *(2**power for power in range(2, 31))]


def call_by_length(model, features, max_length, packs_rows=False):
    """Outputs of a model, its rows sorted and computed a group of like length a time.

    A short row of a batch then costs as much as it does among others of its length;
    outputs are the same but for rounding. To be called in a graph. A group has one of
    `NUMBERS_OF_ROWS`, as 8 and 3 of 11, and is padded to one of `LENGTHS`. Rows of a
    fixed length, and examples with several rows each, such as choices, are one group;
    so are those of a model to which padding costs little.

    Args:
        model: `keras.Model` of packed ids, a nest of outputs `(batch_size, ...)`, whose
            axes of unknown size but the first are of tokens.
        features: dict of int32 tensors `(batch_size, sequence_length)` or `(batch_size,
            num_choices, sequence_length)`, as a `Packer` gives them.
        max_length: int. The most tokens of a row that the model takes.
        packs_rows: bool. As `Encoder` has it.

    Returns:
        What `model(features)` gives.
    """
    ids = features["token_ids"]
    if packs_rows or ids.shape.rank != 2 or ids.shape[1] is not None:
        return model(features, training=False)
    lengths = tf.reduce_sum(features["padding_mask"], axis=1)
    width = tf.shape(ids)[1]
    longest = _padded_length(width, max_length)
    added = [[0, 0], [0, longest - width]]
    features = {name: tf.pad(x, added) for name, x in features.items()}
    size = _rows_of_a_group(lengths, width)
    num_rows = tf.size(lengths)
    order = tf.argsort(lengths)
    specs = [
        tf.TensorSpec(output.shape, output.dtype)
        for output in tf.nest.flatten(model.output)
    ]

    def one_group(index, begin, outputs):
        number = _at_most(tf.minimum(size, num_rows - begin), NUMBERS_OF_ROWS)
        rows = order[begin : begin + number]
        length = _padded_length(tf.reduce_max(tf.gather(lengths, rows)), max_length)
        group = {name: tf.gather(x, rows)[:, :length] for name, x in features.items()}
        found = tf.nest.flatten(model(group, training=False))
        outputs = [
            array.write(index, _padded(output, longest - length, spec))
            for array, output, spec in zip(outputs, found, specs, strict=True)
        ]
        return index + 1, begin + number, outputs

    arrays = [
        tf.TensorArray(s.dtype, 0, True, element_shape=s.shape, infer_shape=False)
        for s in specs
    ]
    _, _, arrays = tf.while_loop(
        lambda index, begin, _: (index == 0) | (begin < num_rows),  # one of no row, too
        one_group,
        (0, 0, arrays),
        parallel_iterations=1,
    )
    place = tf.math.invert_permutation(order)
    outputs = [
        _first_tokens(tf.gather(array.concat(), place), width, spec)
        for array, spec in zip(arrays, specs, strict=True)
    ]
    return tf.nest.pack_sequence_as(model.output, outputs)


def _rows_of_a_group(lengths, longest):
    """int32 scalar, at least 1: no group has more."""
    rows, tokens = tf.size(lengths), tf.maximum(1, tf.reduce_sum(lengths))
    padding = 1.0 - tokens / tf.maximum(1, rows * longest)
    own = tf.where(padding < MOST_PADDING, rows, TOKENS * rows // tokens)
    return tf.maximum(1, own)


def _padded_length(length, max_length):
    """At least a token: `reduce_max` of no row is the least integer."""
    length = tf.maximum(length, 1)
    return tf.maximum(length, tf.minimum(_at_least(length, LENGTHS), max_length))


def _at_most(number, sizes):
    """The last of ascending sizes that is no more than a number, int32 scalars."""
    return tf.gather(sizes, tf.searchsorted(sizes, [number], side="right")[0] - 1)


def _at_least(number, sizes):
    """The first of ascending sizes that is no less than a number, int32 scalars."""
    return tf.gather(sizes, tf.searchsorted(sizes, [number])[0])


def _first_tokens(output, width, spec):
    """Without the tokens that were added to all rows."""
    kept = [
        slice(width if axis and size is None else None)
        for axis, size in enumerate(spec.shape)
    ]
    output = output[tuple(kept)]
    output.set_shape(spec.shape)
    return output


def _padded(output, more, spec):
    """With `more` zeros behind the tokens of a group."""
    sizes = [
        [0, more if axis and size is None else 0]
        for axis, size in enumerate(spec.shape)
    ]
    return tf.pad(output, sizes)
