"""The loop over time that the scans share."""

import tensorflow as tf


def time_loop(body, carry, like, steps):
    """Runs `body(step, *carry, *arrays)` `steps` times and stacks what it wrote.

    Args:
        body: function of the step number, the carried tensors and one
            `tf.TensorArray` for each of `like`; returns all of them, updated.
        carry: tuple of tensors, the state before the first step.
        like: tuple of tensors with dtype and shape of what a step writes.
        steps: int, or int32 scalar tensor. As an int it bounds the loop
            statically, which XLA needs for the gradient.

    Returns:
        Tuple of tensors `(steps, ...)`, one for each of `like`.
    """
    arrays = tuple(tf.TensorArray(x.dtype, steps, element_shape=x.shape) for x in like)
    final = tf.while_loop(
        lambda step, *_: step < steps,
        body,
        (0, *carry, *arrays),
        maximum_iterations=steps,
    )
    return tuple(array.stack() for array in final[1 + len(carry) :])
