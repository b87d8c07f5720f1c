"""Softmax of attention scores, its dropout and its product with the values."""

import tensorflow as tf

from keras_recbert.ops.dropout import drop
from keras_recbert.ops.implementation import at_least_float32, with_and_without_xla


def attend(scores, values, keep=None, scale=1.0, xla=False):
    """`(scale * keep * softmax(scores)) @ values`, softmax over the last axis.

    For the backward pass the softmax is kept, not what dropout makes of it: at long
    rows these are the largest tensors of a model. TensorFlow's softmax of bfloat16 is
    oneDNN's on a CPU, which computes in float32.

    Args:
        scores: float tensor `(..., num_queries, num_keys)`, masked ones far below the
            others.
        values: float tensor `(..., num_keys, head_dim)`.
        keep: optional bool tensor, shape of `scores`: what dropout keeps.
        scale: float. Factor of what is kept.
        xla: bool. Compiles the dropout and the gradient.

    Returns:
        tensor `(..., num_queries, head_dim)`, dtype of `scores`.
    """

    @tf.custom_gradient
    def run(scores, values):
        softmax = tf.nn.softmax(scores)

        def weights():
            return softmax if keep is None else drop(softmax, keep, scale, xla)

        def grad(upstream):
            # The order saves memory: else TensorFlow would keep the weights of the
            # forward pass, which are the same, or hold both large tensors at once.
            with tf.control_dependencies([upstream]):
                to_values = tf.matmul(weights(), upstream, transpose_a=True)
            with tf.control_dependencies([to_values]):
                to_weights = tf.matmul(upstream, values, transpose_b=True)
            return _backward[xla](to_weights, softmax, keep, scale), to_values

        return tf.matmul(weights(), values), grad

    return run(scores, values)


def _gradient(upstream, softmax, keep, scale):
    dtype = at_least_float32(softmax.dtype)
    upstream, weights = tf.cast(upstream, dtype), tf.cast(softmax, dtype)
    if keep is not None:
        upstream = tf.where(keep, upstream * scale, 0.0)
    along = tf.reduce_sum(upstream * weights, -1, keepdims=True)
    return tf.cast((upstream - along) * weights, softmax.dtype)


_backward = with_and_without_xla(_gradient)
