"""Dropout, residual and LayerNorm as one op with a gradient of its own."""

import tensorflow as tf

from keras_recbert.ops.column_sum import column_sum
from keras_recbert.ops.implementation import at_least_float32, with_and_without_xla


def add_norm(x, update, gamma, beta, keep=None, scale=1.0, epsilon=1e-12, xla=False):
    """`LayerNorm(x + scale * keep * update) * gamma + beta` over the last axis.

    Computed in float32 (float64 of float64). The gradient needs nothing but the
    arguments, so no intermediate is kept.

    Args:
        x, update: float tensors `(batch_size, length, dim)`.
        gamma, beta: float tensors `(dim,)`.
        keep: optional bool tensor, shape of `x`: what dropout keeps of `update`.
        scale: float. Factor of what is kept.
        epsilon: float. Added to the variance.
        xla: bool. Compiles it, so that nothing passes through memory in between.

    Returns:
        tensor, shape and dtype of `x`.
    """

    @tf.custom_gradient
    def run(x, update, gamma, beta):
        outputs = _forward[xla](x, update, gamma, beta, keep, scale, epsilon)

        def grad(upstream):
            return _backward[xla](upstream, x, update, gamma, keep, scale, epsilon)

        return outputs, grad

    # Variables are read here: inside a custom gradient they would be captured.
    return run(x, update, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta))


def _normalize(x, update, keep, scale, epsilon):
    total = tf.cast(update, at_least_float32(x.dtype))
    if keep is not None:
        total = tf.where(keep, total * scale, 0.0)
    total += tf.cast(x, total.dtype)
    centred = total - tf.reduce_mean(total, -1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
    inverse = tf.math.rsqrt(variance + epsilon)
    return centred * inverse, inverse


def _add_norm(x, update, gamma, beta, keep, scale, epsilon):
    normal, _ = _normalize(x, update, keep, scale, epsilon)
    gamma, beta = tf.cast(gamma, normal.dtype), tf.cast(beta, normal.dtype)
    return tf.cast(normal * gamma + beta, x.dtype)


def _add_norm_gradient(upstream, x, update, gamma, keep, scale, epsilon):
    normal, inverse = _normalize(x, update, keep, scale, epsilon)
    upstream = tf.cast(upstream, normal.dtype)
    scaled = upstream * tf.cast(gamma, normal.dtype)
    mean = tf.reduce_mean(scaled, -1, keepdims=True)
    along = tf.reduce_mean(scaled * normal, -1, keepdims=True)
    d_x = inverse * (scaled - mean - normal * along)
    d_update = d_x if keep is None else tf.where(keep, d_x * scale, 0.0)
    return (
        tf.cast(d_x, x.dtype),
        tf.cast(d_update, update.dtype),
        tf.cast(column_sum(upstream * normal), gamma.dtype),
        tf.cast(column_sum(upstream), gamma.dtype),
    )


_forward = with_and_without_xla(_add_norm)
_backward = with_and_without_xla(_add_norm_gradient)
