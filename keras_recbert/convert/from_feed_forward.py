"""Recurrent sub-layers that start as the feed-forward sub-layer they replace."""

import numpy as np

# sigmoid(4) = 0.982: a memory moves by 1.8 % of the way to its input at each step.
OPEN = 4.0
# Small, so that tanh(tanh(z)) is nearly z; not so small that the projection, which
# undoes it, multiplies every step of the optimizer.
LSTM_SCALE = 0.25


def swish_from_feed_forward(checkpoint, block, layer):
    """Fills a `SwishRNN` so that it computes nearly what a feed-forward layer did.

    With `W1 = W2` (so `x1 = x2`), `alpha = 0` and `beta = 4`, the recurrence of Lei
    et al. 2022, eq. 2, is a leaky mean of its own input:

        c[i] = s (c[i - k] - x2[i]) + x2[i] = s c[i - k] + (1 - s) x2[i]

    with `s = sigmoid(4)`, so `c` stays near 0. With `b_c = 1` the output (eq. 4)

        y[i] = ((c[i] + 1) * gelu(x2[i] + b_sigma)) W3 + b_3

    is that of the feed-forward sub-layer `gelu(x W + b) V + b_3` whose units are
    `W2 = W`, `b_sigma = b`, `W3 = V`, times `1 + c`: a slow memory, all of whose
    weights get gradient at once.

    A SwishRNN of as many weights has 2/3 of the units, see `_Units`.

    Args:
        checkpoint: `Checkpoint` of a plain BERT.
        block: str. Prefix of its weights, `"block_0"`.
        layer: `SwishRNN`, built. With the gate `"sigmoid"` the same weights are
            taken, but the output is another one.

    Returns:
        dict of weight path to a tuple of names of tensors, and how, in words.
    """
    width = layer.recurrent_dim
    units = _Units(checkpoint, block, width)
    input_kernel = layer.input_dense.kernel.numpy().reshape(-1, 2, width)
    input_kernel[:, :, : units.num_kept] = units.kernel[:, None]
    gate_bias = np.zeros(width)
    gate_bias[: units.num_kept] = units.bias
    output_kernel = np.zeros(layer.output_dense.kernel.shape)
    output_kernel[: units.num_kept] = units.out
    return units.assign(
        (
            layer.input_dense.kernel,
            input_kernel.reshape(-1, 2 * width),
            "kernel",
            f"{units}, for x1 and for x2",
        ),
        (layer.gate_bias, gate_bias, "bias", str(units)),
        (layer.output_dense.kernel, output_kernel, "out", str(units)),
        (layer.output_dense.bias, units.out_bias, "out_bias", "equal"),
        (layer.alpha, np.zeros(width), None, "0: linear at the start"),
        (layer.beta, np.full(width, OPEN), None, f"{OPEN}: slow at the start"),
        (layer.state_bias, np.ones(width), None, "1: the gate alone at the start"),
    )


def lstm_from_feed_forward(checkpoint, block, layer, projection):
    """Fills a BiLSTM and its projection so that they are nearly a feed-forward layer.

    For TRANS-BLSTM-1, where they take its place. A unit `gelu(z) v` with
    `z = x w + b` becomes a unit of the LSTM whose input gate is open, whose forget
    gate is nearly shut, and which is read through its output gate:

        sigmoid(1.702 z) * tanh(tanh(e z)) v / e,  near to sigmoid(1.702 z) z v

    for a small `e` (0.25); the last is the sigmoid form of the GELU (Hendrycks and
    Gimpel 2016). The recurrent kernel starts at zero and gets gradient at once.

    Args:
        checkpoint, block: see `swish_from_feed_forward`.
        layer: `BidirectionalLSTM`, built; half of the units go to each direction.
        projection: Dense layer behind it, built.

    Returns:
        dict of weight path to a tuple of names of tensors, and how, in words.
    """
    width = layer.units
    units = _Units(checkpoint, block, 2 * width)
    kept = np.arange(2 * width) < units.num_kept
    kernel = layer.kernel.numpy().reshape(-1, 2, 4, width).swapaxes(2, 3)
    kernel = kernel.reshape(-1, 2 * width, 4)  # (hidden_dim, unit, gate i f g o)
    kernel[:, kept] = units.kernel[..., None] * [0.0, 0.0, LSTM_SCALE, 1.702]
    bias = layer.bias.numpy().reshape(2, 4, width).swapaxes(1, 2).reshape(-1, 4)
    bias[kept] = units.bias[:, None] * [0.0, 0.0, LSTM_SCALE, 1.702]
    bias[kept] += [OPEN, -OPEN, 0.0, 0.0]
    output_kernel = np.zeros(projection.kernel.shape)
    opening = 1.0 / (1.0 + np.exp(-OPEN))
    output_kernel[kept] = units.out / (LSTM_SCALE * opening)
    kernel = kernel.reshape(-1, 2, width, 4).swapaxes(2, 3)
    bias = bias.reshape(2, width, 4).swapaxes(1, 2)
    return units.assign(
        (
            layer.kernel,
            kernel.reshape(layer.kernel.shape),
            "kernel",
            f"{units}, as g, o",
        ),
        (layer.bias, bias.reshape(layer.bias.shape), "bias", f"{units}, as g, o"),
        (
            layer.recurrent_kernel,
            np.zeros(layer.recurrent_kernel.shape),
            None,
            "0: no memory of its own at the start",
        ),
        (projection.kernel, output_kernel, "out", f"{units}, rescaled"),
        (projection.bias, units.out_bias, "out_bias", "equal"),
    )


class _Units:
    """The strongest units of a feed-forward sub-layer, in their order.

    Those with the largest `|W[:, j]| |V[j, :]|`. What a recurrent layer has beyond
    them adds nothing at the start: it is as it was built, and its outputs are
    multiplied with zero.
    """

    PATHS = {
        "kernel": "intermediate_dense/kernel",
        "bias": "intermediate_dense/bias",
        "out": "output_dense/kernel",
        "out_bias": "output_dense/bias",
    }

    def __init__(self, checkpoint, block, width):
        paths = {
            key: f"{block}/feed_forward/{path}" for key, path in self.PATHS.items()
        }
        self.names = {
            key: checkpoint.origins[path].names for key, path in paths.items()
        }
        kernel, bias, out, self.out_bias = map(checkpoint.weight, paths.values())
        strength = np.linalg.norm(kernel, axis=0) * np.linalg.norm(out, axis=1)
        kept = np.sort(np.argsort(-strength, kind="stable")[:width])
        self.kernel, self.bias, self.out = kernel[:, kept], bias[kept], out[kept]
        self.num_kept, self.num_units = len(kept), len(bias)

    def __str__(self):
        return f"{self.num_kept} of {self.num_units} units"

    def assign(self, *changes):
        """Assigns `(weight, value, source, how)` and reports it."""
        report = {}
        for weight, value, source, how in changes:
            weight.assign(value)
            report[weight.path] = self.names.get(source, ()), how
        return report
