"""How long the rows of a batch are."""

import tensorflow as tf

# Up to so many word pieces, rows are padded to multiples of so many.
LENGTH_STEPS = ((64, 8), (128, 16), (256, 32))
LAST_LENGTH_STEP = 64


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


def padded_to(features, length, preprocessor):
    """Features of tokens, padded to a length."""
    more = length - tf.shape(features["token_ids"])[-1]
    values = {"token_ids": preprocessor.tokenizer.pad_id, **preprocessor.row_features}
    padded = {}
    for name, feature in features.items():
        if values.get(name, 0) is None:  # of a row, not of its tokens
            padded[name] = feature
            continue
        others = feature.shape.rank - 1
        padded[name] = tf.pad(
            feature,
            [[0, 0]] * others + [[0, more]],
            constant_values=values.get(name, 0),
        )
        if isinstance(length, int):
            padded[name].set_shape([None] * others + [length])
    return padded


def to_padded_length(features, preprocessor):
    """Features of tokens, padded to `padded_length` of their longest row.

    Args:
        features: dict of int32 tensors `(num_rows, length)` or `(batch_size,
            num_choices, length)`, and of what is of a row.
        preprocessor: `Packer` that made them.

    Returns:
        Such a dict.
    """
    length = tf.shape(features["token_ids"])[-1]
    if preprocessor.sequence_length is not None:
        return padded_to(features, preprocessor.sequence_length, preprocessor)
    length = padded_length(length, preprocessor.max_sequence_length)
    return padded_to(features, length, preprocessor)
