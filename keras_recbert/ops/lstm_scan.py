"""Both directions of a bidirectional LSTM in one loop, with its own gradient."""

import tensorflow as tf

from keras_recbert.ops.time_loop import time_loop


def bidirectional_lstm_scan(gates, recurrent_kernel, padding_mask=None):
    """Runs the LSTM recurrence forwards and backwards in the same time loop.

    For each direction, with gates in Keras's order (input, forget, cell, output):

        i, f, g, o = gates[t] + h[t - 1] U
        c[t] = sigmoid(f) * c[t - 1] + sigmoid(i) * tanh(g)
        h[t] = sigmoid(o) * tanh(c[t])

    Where the mask is 0 the state is carried, so the backward pass starts at the
    last real token.

    Args:
        gates: float tensor `(batch_size, sequence_length, 2, 4 * units)`, inputs
            times kernel plus bias; `[:, :, 0]` forward, `[:, :, 1]` backward.
        recurrent_kernel: float tensor `(2, units, 4 * units)`.
        padding_mask: optional tensor `(batch_size, sequence_length)`; 1 = token.

    Returns:
        float tensor `(batch_size, sequence_length, 2 * units)`: both directions
        concatenated, 0 at masked positions.
    """
    # A variable is read here: inside a custom gradient it would be captured.
    recurrent_kernel = tf.convert_to_tensor(recurrent_kernel)
    batch_size, length = tf.unstack(tf.shape(gates)[:2])
    if padding_mask is None:
        mask = tf.ones([batch_size, length], gates.dtype)
    else:
        mask = tf.cast(padding_mask, gates.dtype)
    time_major = tf.transpose(gates, [1, 2, 0, 3])  # (time, 2, batch, 4 units)
    mask_forward = tf.transpose(mask)[:, :, tf.newaxis]  # (time, batch, 1)
    both_masks = tf.stack([mask_forward, mask_forward[::-1]], 1)
    outputs = _scan(_flip_backward(time_major), recurrent_kernel, both_masks)
    outputs = _flip_backward(outputs * both_masks)  # (time, 2, batch, units)
    outputs = tf.transpose(outputs, [2, 0, 1, 3])
    return tf.reshape(outputs, [batch_size, length, 2 * outputs.shape[3]])


def _flip_backward(x):
    """Reverses time for the second direction of `(time, 2, ...)`."""
    return tf.stack([x[:, 0], x[::-1, 1]], 1)


def _split(gates):
    i, f, g, o = tf.split(gates, 4, axis=-1)
    return tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)


@tf.custom_gradient
def _scan(gates, recurrent_kernel, mask):
    """The recurrence over the first axis of `(time, 2, batch, 4 * units)`."""
    steps = gates.shape[0] if gates.shape[0] is not None else tf.shape(gates)[0]
    units = recurrent_kernel.shape[1]
    zeros = tf.zeros_like(gates[0, :, :, :units])

    def forward(step, h, c, hs, cs):
        i, f, g, o = _split(gates[step] + tf.matmul(h, recurrent_kernel))
        new_c = f * c + i * g
        new_h = o * tf.tanh(new_c)
        real = tf.cast(mask[step], tf.bool)
        h, c = tf.where(real, new_h, h), tf.where(real, new_c, c)
        return step + 1, h, c, hs.write(step, h), cs.write(step, c)

    hs, cs = time_loop(forward, (zeros, zeros), (zeros, zeros), steps)

    def grad(upstream):
        # Everything that is no recurrence is computed for all steps at once.
        h_before = tf.concat([zeros[tf.newaxis], hs[:-1]], 0)
        c_before = tf.concat([zeros[tf.newaxis], cs[:-1]], 0)
        i, f, g, o = _split(gates + tf.matmul(h_before, recurrent_kernel))
        tanh_c = tf.tanh(f * c_before + i * g)
        to_cell = mask * o * (1.0 - tanh_c * tanh_c)
        # d gates before activation / d (cell, cell, cell, hidden)
        slopes = mask * tf.concat(
            [
                g * i * (1.0 - i),
                c_before * f * (1.0 - f),
                i * (1.0 - g * g),
                tanh_c * o * (1.0 - o),
            ],
            -1,
        )
        carried = 1.0 - mask
        keep = tf.where(tf.cast(mask, tf.bool), f, tf.ones_like(f))

        def backward(step, dh, dc, dgates):
            t = steps - 1 - step
            dh = dh + upstream[t]
            dc = dc + dh * to_cell[t]
            dz = tf.concat([dc, dc, dc, dh], -1) * slopes[t]
            dh = tf.matmul(dz, recurrent_kernel, transpose_b=True) + carried[t] * dh
            return step + 1, dh, keep[t] * dc, dgates.write(t, dz)

        (dgates,) = time_loop(backward, (zeros, zeros), (gates[0],), steps)
        dkernel = tf.einsum("tdbu,tdbg->dug", h_before, dgates)
        return dgates, dkernel, None

    return hs, grad
