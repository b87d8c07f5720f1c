"""The exact GELU with a gradient of its own."""

import math

import tensorflow as tf

from keras_recbert.ops.implementation import at_least_float32, with_and_without_xla


def gelu(x, xla=False):
    """`x * Phi(x)`, `Phi` the standard normal distribution (Hendrycks 2016, eq. 1).

    Computed in float32 (float64 of float64). The gradient needs `x` alone.

    Args:
        x: float tensor.
        xla: bool. Compiles it, so that nothing passes through memory in between.

    Returns:
        tensor, shape and dtype of `x`.
    """

    @tf.custom_gradient
    def run(x):
        return _forward[xla](x), lambda upstream: _backward[xla](upstream, x)

    return run(x)


def gelu_and_slope(z):
    """`gelu(z)` and its derivative, float tensors of the shape of `z`."""
    doubled = 1.0 + tf.math.erf(z * math.sqrt(0.5))
    density = tf.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    # LiteRT has no Erf. Its converter makes one GELU of products in this order.
    return 0.5 * z * doubled, 0.5 * doubled + z * density


def _gelu(x):
    value, _ = gelu_and_slope(tf.cast(x, at_least_float32(x.dtype)))
    return tf.cast(value, x.dtype)


def _gelu_gradient(upstream, x):
    _, slope = gelu_and_slope(tf.cast(x, at_least_float32(x.dtype)))
    return tf.cast(tf.cast(upstream, slope.dtype) * slope, x.dtype)


_forward, _backward = with_and_without_xla(_gelu), with_and_without_xla(_gelu_gradient)
