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
    if tf.executing_eagerly():
        final, steps = (0, *carry, *arrays), int(steps)
        while final[0] < steps:
            final = body(*final)
        return tuple(array.stack() for array in final[1 + len(carry) :])
    final = tf.while_loop(
        lambda step, *_: step < steps,
        body,
        (0, *carry, *arrays),
        maximum_iterations=steps,
    )
    return tuple(array.stack() for array in final[1 + len(carry) :])


def steps_of(x, axis=0):
    """The slices of `x` along an axis, to be read by `[step]` in the body of a loop.

    Eagerly they are cut at once: a slice for itself takes longer than the arithmetic of
    a step. In a graph they are cut step by step.
    """
    if tf.executing_eagerly():
        return tf.unstack(x, axis=axis)
    return _Steps(x, axis)


class _Steps:
    def __init__(self, x, axis):
        self.x, self.before = x, (slice(None),) * axis

    def __getitem__(self, step):
        return self.x[(*self.before, step)]
