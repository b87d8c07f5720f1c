"""The LSTM of the textbooks, both directions, in float64 loops.

Hochreiter and Schmidhuber 1997 with the forget gate of Gers et al. 2000. The four
gates lie side by side in the order input, forget, cell, output.
"""

import numpy as np
from reference.numbers import sigmoid


def lstm(gates, recurrent_kernel, padding_mask):
    """One direction; `gates` is `x W + b`, `(batch, length, 4 * units)`.

    A masked position changes no state and puts out 0.
    """
    batch_size, length, _ = gates.shape
    units = recurrent_kernel.shape[0]
    outputs = np.zeros((batch_size, length, units))
    for row in range(batch_size):
        h, c = np.zeros(units), np.zeros(units)
        for t in range(length):
            if not padding_mask[row, t]:
                continue
            i, f, g, o = np.split(gates[row, t] + h @ recurrent_kernel, 4)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs[row, t] = h
    return outputs


def bidirectional_lstm(gates, recurrent_kernel, padding_mask):
    """Both directions of `(batch, length, 2, 4 * units)`, outputs concatenated.

    The second direction reads each row from its last real token to its first.
    """
    forward = lstm(gates[:, :, 0], recurrent_kernel[0], padding_mask)
    backward = lstm(gates[:, ::-1, 1], recurrent_kernel[1], padding_mask[:, ::-1])
    return np.concatenate([forward, backward[:, ::-1]], axis=-1)
