"""Dropout whose random numbers cost little."""

import tensorflow as tf

from keras_recbert.ops.implementation import with_and_without_xla


def keep_mask(shape, rate, seed):
    """Draws what dropout keeps, with 16 random bits an element.

    Keras draws a float32 each, twice the work. The rate is met to 1 / 65,536, and
    is at most 65,535 / 65,536.

    Args:
        shape: int tensor, or list of ints and scalars.
        rate: float in [0, 1). Fraction to drop.
        seed: int tensor `(2,)`.

    Returns:
        Tuple of a bool tensor, True with probability `1 - threshold / 65536`, and the
        float that keeps the mean, the inverse of that probability.
    """
    threshold = min(round(rate * 2**16), 2**16 - 1)
    size = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.uint32
    )
    numbers = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
    keep = tf.reshape(numbers, shape) >= tf.constant(threshold, tf.uint16)
    return keep, 2**16 / (2**16 - threshold)


def drop(x, keep, scale, xla=False):
    """`scale * x` where `keep` is True, 0 elsewhere; shape and dtype of `x`."""

    @tf.custom_gradient
    def run(x):
        return _drop[xla](x, keep, scale), lambda dy: _drop[xla](dy, keep, scale)

    return run(x)


_drop = with_and_without_xla(lambda x, keep, scale: tf.where(keep, x * scale, 0))
