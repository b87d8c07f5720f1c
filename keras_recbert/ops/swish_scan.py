"""The SwishRNN recurrence (Lei et al. 2022, eq. 3) with a gradient of its own."""

import tensorflow as tf

from keras_recbert.ops.time_loop import time_loop


def swish_scan(x1, x2, alpha, beta, padding_mask=None, step_size=1):
    """Runs `c[i] = swish(c[i - k] - x1[i]) + x2[i]` with `c[<= 0] = 0`.

    `swish(z) = sigmoid(alpha * z + beta) * z`. With step size `k` the positions
    `i`, `i + k`, `i + 2k`, ... form a chain of their own, so `k` neighbours are
    computed at a time in `ceil(length / k)` steps.

    Only the state is kept for the gradient. Backwards, the recurrence is linear in
    the incoming gradient, `d[i] = g[i] + J[i + k] d[i + k]`, so just this runs in
    sequence and everything else is computed for all positions at once.

    Args:
        x1: float32 tensor `(batch_size, sequence_length, recurrent_dim)`.
        x2: float32 tensor, shape of `x1`.
        alpha: float32 tensor `(recurrent_dim,)`.
        beta: float32 tensor `(recurrent_dim,)`.
        padding_mask: optional tensor `(batch_size, sequence_length)`; where it is
            0 the state is carried, not updated.
        step_size: int. Distance `k` to the state that is read.

    Returns:
        float32 tensor, shape of `x1`: the states `c`.
    """
    # Variables are read here: inside a custom gradient they would be captured.
    alpha, beta = tf.convert_to_tensor(alpha), tf.convert_to_tensor(beta)
    length = tf.shape(x1)[1]
    if padding_mask is None:
        mask = tf.ones(tf.shape(x1)[:2], tf.bool)
    else:
        mask = tf.cast(padding_mask, tf.bool)
    mask = mask[:, :, tf.newaxis]
    static_length = x1.shape[1]
    # Steps as a Python number where the length is static: XLA needs a fixed bound.
    steps = -(-(length if static_length is None else static_length) // step_size)
    states = _scan(
        *(_chains(x, step_size, steps) for x in (x1, x2, mask)), alpha, beta, steps
    )
    return _positions(states, tf.shape(x1))


def _chains(x, step_size, steps):
    """`(batch, length, dim)` to `(steps, batch, step_size, dim)`."""
    missing = steps * step_size - tf.shape(x)[1]
    x = tf.pad(x, [[0, 0], [0, missing], [0, 0]])
    x = tf.reshape(x, [tf.shape(x)[0], steps, step_size, x.shape[2]])
    return tf.transpose(x, [1, 0, 2, 3])


def _positions(states, shape):
    """Undoes `_chains`, dropping the positions it added."""
    dim = states.shape[3]
    states = tf.transpose(states, [1, 0, 2, 3])
    return tf.reshape(states, [shape[0], -1, dim])[:, : shape[1]]


def _scan(x1, x2, mask, alpha, beta, steps):
    """The recurrence over the first axis of `(steps, batch, step_size, dim)`."""

    # The mask is closed over: it is no differentiable argument.
    @tf.custom_gradient
    def scan(x1, x2, alpha, beta):
        def forward(step, state, states):
            z = state - x1[step]
            update = tf.sigmoid(alpha * z + beta) * z + x2[step]
            state = tf.where(mask[step], update, state)
            return step + 1, state, states.write(step, state)

        zeros = tf.zeros_like(x1[0])
        (states,) = time_loop(forward, (zeros,), (zeros,), steps)

        def grad(upstream):
            before = tf.concat([tf.zeros_like(states[:1]), states[:-1]], 0)
            z = before - x1
            gate = tf.sigmoid(alpha * z + beta)
            slope = gate * (1.0 - gate) * z  # d swish / d (alpha z + beta)
            real = tf.cast(mask, x1.dtype)
            # d state / d state one step before: 1 where the state was carried.
            jacobian = tf.where(mask, gate + alpha * slope, 1.0)

            def backward(step, carry, grads):
                last = steps - 1 - step
                carry = upstream[last] + carry
                grads = grads.write(last, carry)
                return step + 1, jacobian[last] * carry, grads

            (d,) = time_loop(backward, (zeros,), (zeros,), steps)
            d = d * real
            along = [0, 1, 2]
            return (
                -jacobian * d,
                d,
                tf.reduce_sum(d * slope * z, along),
                tf.reduce_sum(d * slope, along),
            )

        return states, grad

    return scan(x1, x2, alpha, beta)
