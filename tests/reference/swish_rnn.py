"""SwishRNN as Lei et al. 2022 write it in section 2.2, in float64 loops."""

import numpy as np
from reference.numbers import gelu, sigmoid


def swish_states(x1, x2, alpha, beta, padding_mask, step_size):
    """Equation 3 with step size k: `c[i]` reads `c[i - k]`; `c[<= 0] = 0`.

    Padding, which the paper does not mention: a masked position hands on the
    state it would have read.
    """
    batch_size, length, dim = x1.shape
    states = np.zeros((batch_size, length, dim))
    for row in range(batch_size):
        for i in range(length):
            before = states[row, i - step_size] if i >= step_size else np.zeros(dim)
            if padding_mask[row, i]:
                z = before - x1[row, i]
                swish = sigmoid(alpha * z + beta) * z  # footnote 2
                states[row, i] = swish + x2[row, i]
            else:
                states[row, i] = before
    return states


def swish_rnn(x, weights, padding_mask, step_size, gate):
    """Equations 2 to 4."""
    x1 = x @ weights["w1"]
    x2 = x @ weights["w2"]
    states = swish_states(
        x1, x2, weights["alpha"], weights["beta"], padding_mask, step_size
    )
    sigma = {"gelu": gelu, "sigmoid": sigmoid}[gate]
    gated = (states + weights["b_c"]) * sigma(x2 + weights["b_sigma"])
    return gated @ weights["w3"] + weights["b_3"]
