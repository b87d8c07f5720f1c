"""The block of Lei et al. 2022: SwishRNN in place of the feed-forward sub-layer."""

import numpy as np

from keras_recbert.blocks.block_kind import BlockKind, register_block
from keras_recbert.blocks.feed_forward_units import FeedForwardUnits
from keras_recbert.blocks.transformer import (
    attention_kept,
    attention_weights,
    default_heads,
)
from keras_recbert.core.checks import check_positive
from keras_recbert.layers.swish_rnn_block import SwishRNNBlock

# sigmoid(4) = 0.982: a memory moves by 1.8 % of the way to its input at each step.
OPEN = 4.0


@register_block
class SwishRNNKind(BlockKind):
    """Self-attention with T5's bias, and a SwishRNN.

    Started from a BERT it is nearly the feed-forward sub-layer, see
    `start_as_feed_forward`.
    """

    name = "swish_rnn"
    layer = SwishRNNBlock
    # Three layers, as cards interleave three step sizes.
    test_sizes = {
        "num_layers": 3,
        "hidden_dim": 12,
        "num_heads": 3,
        "recurrent_dim": 20,
    }

    def defaults(self, hidden_dim):
        return {
            "num_heads": default_heads(hidden_dim),
            # 2 d h (feed-forward, h = 4 d) equals 3 d r (SwishRNN) at r = 8 / 3 d.
            "recurrent_dim": 32 * -(-8 * hidden_dim // (3 * 32)),
            "step_size": 1,
            "gate": "gelu",
        }

    def check(self, config):
        steps = config["step_size"]
        steps = list(steps) if isinstance(steps, (list, tuple)) else [steps]
        if not steps:
            raise ValueError("`step_size` must name at least one step. Received: [].")
        for step in steps:
            check_positive(step_size=step)
        config["step_size"] = steps

    def make_layer(self, config, index, **shared):
        steps = config["step_size"]
        step_size = steps[index % len(steps)]  # interleaved across the layers
        return super().make_layer({**config, "step_size": step_size}, index, **shared)

    def count_weights(self, config):
        swish = 3 * config["hidden_dim"] * config["recurrent_dim"]
        return attention_weights(config) + swish

    def count_kept(self, config, sequence_length):
        # Of SwishRNN two products, the states and the gate.
        kept = attention_kept(config, sequence_length)
        return kept + 4 * config["recurrent_dim"]

    def start_from_bert(self, layer, name, checkpoint):
        swish = layer.feed_forward
        units = FeedForwardUnits(checkpoint, name, swish.recurrent_dim)
        return start_as_feed_forward(swish, units)


def start_as_feed_forward(layer, units):
    """Fills a `SwishRNN` so that it computes nearly what a feed-forward layer did.

    With `W1 = W2` (so `x1 = x2`), `alpha = 0` and `beta = 4`, the recurrence of Lei
    et al. 2022, eq. 2, is a leaky mean of its own input:

        c[i] = s (c[i - k] - x2[i]) + x2[i] = s c[i - k] + (1 - s) x2[i]

    with `s = sigmoid(4)`, so `c` stays near 0. With `b_c = 1` the output (eq. 4)

        y[i] = ((c[i] + 1) * gelu(x2[i] + b_sigma)) W3 + b_3

    is that of the feed-forward sub-layer `gelu(x W + b) V + b_3` whose units are
    `W2 = W`, `b_sigma = b`, `W3 = V`, times `1 + c`: a slow memory, all of whose
    weights get gradient at once.

    A SwishRNN of as many weights has 2/3 of the units, see `FeedForwardUnits`.

    Args:
        layer: `SwishRNN`, built. With the gate `"sigmoid"` the same weights are
            taken, but the output is another one.
        units: `FeedForwardUnits`.

    Returns:
        dict, as `BlockKind.start_from_bert`.
    """
    width = layer.recurrent_dim
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
