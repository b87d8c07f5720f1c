"""The SwishRNN recurrence and its gate, with a gradient of their own."""

import tensorflow as tf

from keras_recbert.ops.column_sum import column_sum
from keras_recbert.ops.gelu import gelu_and_slope
from keras_recbert.ops.implementation import at_least_float32, with_and_without_xla
from keras_recbert.ops.time_loop import steps_of, time_loop

UNROLL = 4  # steps in one turn of a compiled loop, which XLA then fuses


def swish_rnn(
    hidden,
    alpha,
    beta,
    state_bias,
    gate_bias,
    padding_mask=None,
    step_size=1,
    gate="gelu",
    implementation="loop",
):
    """Runs the recurrence of SwishRNN and gates its states.

    With `x1, x2` the halves of `hidden` (Lei et al. 2022, section 2.2, eq. 3-4):

        c[i] = swish(c[i - k] - x1[i]) + x2[i],   c[<= 0] = 0
        y[i] = (c[i] + b_c) * gate(x2[i] + b_sigma)

    `swish(z) = sigmoid(alpha * z + beta) * z`. With step size `k` the positions
    `i`, `i + k`, `i + 2k`, ... form a chain of their own, so `k` neighbours are
    computed at a time in `ceil(length / k)` steps. Computed in float32 (float64 of
    float64).

    `"reference"` is differentiated by TensorFlow. `"loop"` keeps only the states for
    the gradient: backwards the recurrence is linear in the incoming gradient,
    `d[i] = g[i] + J[i + k] d[i + k]`, so just this runs in sequence and everything
    else is computed for all positions at once. `"xla"` is the same, compiled, with
    four steps in a turn of the loop.

    Args:
        hidden: float tensor `(batch_size, sequence_length, 2 * recurrent_dim)`.
        alpha, beta, state_bias, gate_bias: float tensors `(recurrent_dim,)`; b_c and
            b_sigma are the latter two.
        padding_mask: optional tensor `(batch_size, sequence_length)`; where it is
            0 the state is carried, not updated.
        step_size: int. Distance `k` to the state that is read.
        gate: `"gelu"` or `"sigmoid"`.
        implementation: `"reference"`, `"loop"` or `"xla"`.

    Returns:
        tensor `(batch_size, sequence_length, recurrent_dim)`, type of `hidden`: `y`.
    """
    if padding_mask is None:
        mask = tf.ones(tf.shape(hidden)[:2], tf.bool)
    else:
        mask = tf.cast(padding_mask, tf.bool)
    # Variables are read here: inside a custom gradient they would be captured.
    vectors = [
        tf.cast(vector, at_least_float32(hidden.dtype))
        for vector in (alpha, beta, state_bias, gate_bias)
    ]
    if implementation == "reference":
        return _gated_states(hidden, *vectors, mask, step_size, gate, 1)[0]
    xla = implementation == "xla"
    unroll = UNROLL if xla else 1

    # The mask is closed over: it is no differentiable argument.
    @tf.custom_gradient
    def run(hidden, *vectors):
        options = (mask, step_size, gate, unroll)
        outputs, states = _forward[xla](hidden, *vectors, *options)

        def grad(upstream):
            return _backward[xla](upstream, states, hidden, *vectors, *options)

        return outputs, grad

    return run(hidden, *vectors)


def _scan_states(hidden, alpha, beta, mask, step_size, unroll):
    """The states `c`, `(batch, length, dim)`."""
    hidden, steps = _in_steps(hidden, step_size, unroll)
    mask, _ = _in_steps(mask[:, :, tf.newaxis], step_size, unroll)
    zeros = tf.zeros_like(hidden[:, 0, :, : alpha.shape[0]], alpha.dtype)
    hidden, mask = steps_of(hidden, axis=1), steps_of(mask, axis=1)

    def body(step, state, states):
        for _ in range(unroll):
            x1, x2 = tf.split(tf.cast(hidden[step], alpha.dtype), 2, axis=-1)
            z = state - x1
            update = tf.sigmoid(alpha * z + beta) * z + x2
            state = tf.where(mask[step], update, state)
            states = states.write(step, state)
            step += 1
        return step, state, states

    (states,) = time_loop(body, (zeros,), (zeros,), steps)
    return states


def _gated_states(hidden, alpha, beta, state_bias, gate_bias, mask, *options):
    """`y` and the states it was made of."""
    step_size, gate, unroll = options
    states = _scan_states(hidden, alpha, beta, mask, step_size, unroll)
    states = _positions(states, tf.shape(hidden)[1])
    x2 = tf.cast(hidden[:, :, alpha.shape[0] :], alpha.dtype)
    open_, _ = _gate(x2 + gate_bias, gate)
    return tf.cast((states + state_bias) * open_, hidden.dtype), states


def _gated_states_gradient(
    upstream, states, hidden, alpha, beta, state_bias, gate_bias, mask, *options
):
    """Gradients of hidden, alpha, beta, state_bias and gate_bias."""
    step_size, gate, unroll = options
    x1, x2 = tf.split(tf.cast(hidden, alpha.dtype), 2, axis=-1)
    open_, open_slope = _gate(x2 + gate_bias, gate)
    upstream = tf.cast(upstream, alpha.dtype)
    d_state = upstream * open_
    d_gate = upstream * (states + state_bias) * open_slope

    real = mask[:, :, tf.newaxis]
    # The state that a position reads: k positions before, or zero.
    read = tf.pad(states, [[0, 0], [step_size, 0], [0, 0]])[:, :-step_size]
    z = read - x1
    share = tf.sigmoid(alpha * z + beta)
    slope = share * (1.0 - share) * z  # d swish / d (alpha z + beta)
    # d state / d state k positions before: 1 where the state was carried.
    jacobian = tf.where(real, share + alpha * slope, 1.0)

    grads, steps = _in_steps(d_state, step_size, unroll)
    factors, _ = _in_steps(jacobian, step_size, unroll)
    zeros = tf.zeros_like(grads[:, 0])
    grads, factors = steps_of(grads, axis=1), steps_of(factors, axis=1)

    def body(step, carry, totals):
        for _ in range(unroll):
            last = steps - 1 - step
            carry += grads[last]
            totals = totals.write(last, carry)
            carry *= factors[last]
            step += 1
        return step, carry, totals

    (d,) = time_loop(body, (zeros,), (zeros,), steps)
    d = tf.where(real, _positions(d, tf.shape(hidden)[1]), 0.0)
    return (
        tf.cast(tf.concat([-jacobian * d, d + d_gate], -1), hidden.dtype),
        column_sum(d * slope * z),
        column_sum(d * slope),
        column_sum(d_state),
        column_sum(d_gate),
    )


def _gate(x, gate):
    """The gate and its derivative."""
    if gate == "gelu":
        return gelu_and_slope(x)
    share = tf.sigmoid(x)
    return share, share * (1.0 - share)


def _in_steps(x, step_size, unroll):
    """`(batch, length, dim)` to `(batch, steps, step_size, dim)`, and `steps`.

    What is missing at the end is zero: masked. The number of steps is a multiple of
    `unroll`, as a Python number where the length is static: XLA needs a fixed bound.
    """
    length = tf.shape(x)[1] if x.shape[1] is None else x.shape[1]
    # Rounded up without a negative number, whose quotient ONNX rounds towards zero.
    each = step_size * unroll
    steps = (length + each - 1) // each * unroll
    padding = [[0, 0], [0, steps * step_size - length], [0, 0]]
    x = tf.reshape(tf.pad(x, padding), [tf.shape(x)[0], steps, step_size, x.shape[2]])
    return x, steps


def _positions(x, length):
    """Undoes `_in_steps` of what a loop stacked, `(steps, batch, step_size, dim)`."""
    dim = x.shape[3]
    x = tf.transpose(x, [1, 0, 2, 3])
    return tf.reshape(x, [tf.shape(x)[0], -1, dim])[:, :length]


_forward = with_and_without_xla(_gated_states)
_backward = with_and_without_xla(_gated_states_gradient)
