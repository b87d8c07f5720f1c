"""Both directions of an LSTM, with a gradient of its own."""

import tensorflow as tf

from keras_recbert.ops.implementation import at_least_float32, with_and_without_xla
from keras_recbert.ops.packed_lstm import packed_lstm
from keras_recbert.ops.time_loop import steps_of, time_loop


def bidirectional_lstm(
    inputs,
    kernel,
    recurrent_kernel,
    bias,
    padding_mask=None,
    implementation="loop",
    keep_states=True,
):
    """Runs an LSTM forwards and another backwards over the same sequence.

    For each direction, with gates in Keras's order (input, forget, cell, output):

        i, f, g, o = x[t] W + h[t - 1] U + b
        c[t] = sigmoid(f) * c[t - 1] + sigmoid(i) * tanh(g)
        h[t] = sigmoid(o) * tanh(c[t])

    Where the mask is 0 the state is carried, so the backward pass starts at the
    last real token. The products over all steps run in the type of `inputs`, the
    recurrence in float32 (float64 of float64).

    The directions do not depend on each other: TensorFlow runs their loops side by
    side, a core each. That is faster than one loop for both, whose product is two small
    ones with a copy before and after.

    `"reference"` is these equations, differentiated by TensorFlow. `"loop"` has a
    gradient of its own: backwards, only `dh` and `dc` run in sequence; the slopes of
    the gates and the gradient of U are computed for all steps at once. `"xla"` is the
    same, its loops compiled. `"packed"` reads the tokens without the padding, see
    `packed_lstm`; its gradient is TensorFlow's.

    Args:
        inputs: float tensor `(batch_size, sequence_length, input_dim)`.
        kernel: float tensor `(input_dim, 8 * units)`, W of the forward direction, then
            of the backward one.
        recurrent_kernel: float tensor `(2, units, 4 * units)`, U of both.
        bias: float tensor `(2, 4 * units)`.
        padding_mask: optional tensor `(batch_size, sequence_length)`; 1 = token.
        implementation: `"reference"`, `"loop"`, `"packed"` or `"xla"`.
        keep_states: bool. Keeps what the gradient needs of the forward pass; without,
            a gradient runs the forward pass again.

    Returns:
        float tensor `(batch_size, sequence_length, 2 * units)`, both directions
        concatenated, 0 at masked positions; the type of the recurrence.
    """
    dtype = at_least_float32(inputs.dtype)
    # Variables are read here: inside a custom gradient they would be captured.
    recurrent_kernel = tf.cast(recurrent_kernel, dtype)
    kernel, bias = tf.cast(kernel, inputs.dtype), tf.cast(bias, inputs.dtype)
    batch_size, length = inputs.shape[0], inputs.shape[1]
    batch_size = tf.shape(inputs)[0] if batch_size is None else batch_size
    length = tf.shape(inputs)[1] if length is None else length
    if padding_mask is None:
        padding_mask = tf.ones([batch_size, length], tf.bool)
    padding_mask = tf.cast(padding_mask, tf.bool)
    if implementation == "packed":
        return packed_lstm(inputs, kernel, recurrent_kernel, bias, padding_mask)
    mask = tf.transpose(padding_mask)[:, :, tf.newaxis]
    # Time first: what a step reads lies together.
    rows = tf.reshape(tf.transpose(inputs, [1, 0, 2]), [-1, inputs.shape[2]])

    outputs = []
    # Not by slices, whose gradients would be padded with zeros.
    weights = tf.split(kernel, 2, 1), tf.unstack(recurrent_kernel), tf.unstack(bias)
    for backwards, kernel, recurrent_kernel, bias in zip(
        (False, True), *weights, strict=True
    ):
        gates = tf.nn.bias_add(tf.matmul(rows, kernel), bias)
        gates = tf.reshape(gates, [length, batch_size, kernel.shape[1]])
        if implementation == "reference":
            states = _states(gates, recurrent_kernel, mask, backwards, False)[0]
        else:
            xla = implementation == "xla"
            states = _scan(gates, recurrent_kernel, mask, backwards, xla, keep_states)
        outputs.append(states)
    outputs = tf.concat(outputs, -1) * tf.cast(mask, dtype)
    return tf.transpose(outputs, [1, 0, 2])


def _scan(gates, kernel, mask, backwards, xla, keep_states):
    """`h`, `(time, batch, units)`, of one direction, with its gradient."""

    # The mask is closed over: it is no differentiable argument.
    @tf.custom_gradient
    def scan(gates, kernel):
        states = _forward[xla](gates, kernel, mask, backwards, keep_states)

        def grad(upstream):
            kept = states
            if not keep_states:
                kept = _forward[xla](gates, kernel, mask, backwards, True)
            d_gates = _backward[xla](upstream, kernel, mask, backwards, *kept)
            d_gates = tf.cast(d_gates, gates.dtype)
            # Left to TensorFlow, whose large products are faster than XLA's.
            read = tf.cast(_before(kept[0], backwards), gates.dtype)
            d_kernel = tf.matmul(
                tf.reshape(read, [-1, read.shape[2]]),
                tf.reshape(d_gates, [-1, d_gates.shape[2]]),
                transpose_a=True,
            )
            return d_gates, tf.cast(d_kernel, kernel.dtype)

        return states[0], grad

    return scan(gates, kernel)


def _before(x, backwards):
    """The states that the steps read."""
    zeros = tf.zeros_like(x[:1])
    return tf.concat([x[1:], zeros] if backwards else [zeros, x[:-1]], 0)


def _num_steps(x):
    """As a Python number where it is known: XLA needs a fixed bound."""
    return tf.shape(x)[0] if x.shape[0] is None else x.shape[0]


def _states(gates, kernel, mask, backwards, keep_states):
    """`h` of each step; with `keep_states` also `c` and the gates before activation."""
    steps, units = _num_steps(gates), kernel.shape[0]
    zeros = tf.zeros_like(gates[0, :, :units], kernel.dtype)
    gates_of, mask_of = steps_of(gates), steps_of(mask)

    def body(s, h, c, *arrays):
        t = steps - 1 - s if backwards else s
        update = tf.cast(gates_of[t], kernel.dtype) + tf.matmul(h, kernel)
        i, f, g, o = tf.split(update, 4, axis=-1)
        new_c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        new_h = tf.sigmoid(o) * tf.tanh(new_c)
        real = mask_of[t]
        h, c = tf.where(real, new_h, h), tf.where(real, new_c, c)
        written = zip(arrays, (h, c, update), strict=False)
        place = t if keep_states else s
        return s + 1, h, c, *(array.write(place, x) for array, x in written)

    if keep_states:
        kept = zeros, zeros, tf.cast(gates[0], kernel.dtype)
        return time_loop(body, (zeros, zeros), kept, steps)
    # What is served: a loop of ONNX stacks in the order of its steps.
    (hs,) = time_loop(body, (zeros, zeros), (zeros,), steps)
    return (tf.reverse(hs, [0]) if backwards else hs,)


def _gradients(upstream, kernel, mask, backwards, hs, cs, gates):
    """Gradient of the gates."""
    steps = _num_steps(hs)
    zeros = tf.zeros_like(hs[0])
    real = tf.cast(mask, hs.dtype)

    # Everything that is no recurrence is computed for all steps at once.
    i, f, g, o = tf.split(gates, 4, axis=-1)
    i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
    tanh_c = tf.tanh(cs)
    to_cell = real * o * (1.0 - tanh_c * tanh_c)
    # d (gates before activation) / d (cell, cell, cell, hidden)
    slopes = real * tf.concat(
        [
            g * i * (1.0 - i),
            _before(cs, backwards) * f * (1.0 - f),
            i * (1.0 - g * g),
            tanh_c * o * (1.0 - o),
        ],
        -1,
    )
    keep = tf.where(mask, f, 1.0)
    transposed = tf.transpose(kernel)
    read = (upstream, to_cell, slopes, mask, keep)
    upstream, to_cell, slopes, mask, keep = map(steps_of, read)

    def body(s, dh, dc, d_gates):
        t = s if backwards else steps - 1 - s
        dh += upstream[t]
        dc += dh * to_cell[t]
        dz = tf.concat([dc, dc, dc, dh], -1) * slopes[t]
        dh = tf.where(mask[t], tf.matmul(dz, transposed), dh)
        return s + 1, dh, keep[t] * dc, d_gates.write(t, dz)

    return time_loop(body, (zeros, zeros), (gates[0],), steps)[0]


_forward, _backward = with_and_without_xla(_states), with_and_without_xla(_gradients)
