"""Softmax of attention scores and its dropout, with a gradient of their own."""

import tensorflow as tf

from keras_recbert.ops.dropout import drop
from keras_recbert.ops.implementation import either, wide


def attention_weights(scores, keep=None, scale=1.0, xla=False):
    """`scale * keep * softmax(scores)` over the last axis.

    TensorFlow's softmax of bfloat16 is oneDNN's on a CPU, which computes in float32.

    Args:
        scores: float tensor `(..., num_keys)`, masked ones far below the others.
        keep: optional bool tensor, shape of `scores`: what dropout keeps.
        scale: float. Factor of what is kept.
        xla: bool. Compiles what follows the softmax, and the gradient.

    Returns:
        tensor, shape and dtype of `scores`.
    """

    @tf.custom_gradient
    def run(scores):
        softmax = tf.nn.softmax(scores)

        def grad(upstream):
            return _backward[xla](upstream, softmax, keep, scale)

        if keep is None:
            return softmax, grad
        return drop(softmax, keep, scale, xla), grad

    return run(scores)


def _gradient(upstream, softmax, keep, scale):
    dtype = wide(softmax.dtype)
    upstream, weights = tf.cast(upstream, dtype), tf.cast(softmax, dtype)
    if keep is not None:
        upstream = tf.where(keep, upstream * scale, 0.0)
    along = tf.reduce_sum(upstream * weights, -1, keepdims=True)
    return tf.cast((upstream - along) * weights, softmax.dtype)


_backward = either(_gradient)
