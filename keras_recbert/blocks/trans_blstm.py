"""The blocks of TRANS-BLSTM (Huang et al. 2020, section 3.2)."""

import numpy as np

from keras_recbert.blocks.block_kind import BlockKind, register_block
from keras_recbert.blocks.blstm import lstm_kept, lstm_weights
from keras_recbert.blocks.feed_forward_units import FeedForwardUnits
from keras_recbert.blocks.transformer import (
    attention_kept,
    attention_weights,
    default_heads,
    feed_forward_weights,
)
from keras_recbert.layers.trans_blstm_block import TransBLSTMBlock

# sigmoid(4) = 0.982: the gate is nearly open.
OPEN = 4.0
# Small, so that tanh(tanh(z)) is nearly z; not so small that the projection, which
# undoes it, multiplies every step of the optimizer.
LSTM_SCALE = 0.25


@register_block
class TransBLSTM(BlockKind):
    """Variant 2: a BiLSTM beside the two sub-layers.

    Started from a BERT its outputs are the BERT's: the projection behind the BiLSTM
    starts at zero. All else in it gets gradient once the projection has moved, after
    the first step.
    """

    name = "trans_blstm"
    layer = TransBLSTMBlock
    test_sizes = {
        "num_layers": 2,
        "hidden_dim": 12,
        "num_heads": 3,
        "intermediate_dim": 20,
        "recurrent_dim": 7,
    }

    def defaults(self, hidden_dim):
        return {
            "num_heads": default_heads(hidden_dim),
            "intermediate_dim": 4 * hidden_dim,
            "recurrent_dim": hidden_dim,
        }

    def units(self, config):
        """Units of each direction of the LSTM."""
        return config["recurrent_dim"]

    def count_weights(self, config):
        width, units = config["hidden_dim"], self.units(config)
        lstm = lstm_weights(width, units, projected=2 * units != width)
        return attention_weights(config) + feed_forward_weights(config) + lstm

    def count_kept(self, config, sequence_length):
        kept = attention_kept(config, sequence_length)
        return kept + 2 * config["intermediate_dim"] + lstm_kept(self.units(config))

    def start_from_bert(self, layer, name, checkpoint):
        if layer.projection is None:
            return start_silent(layer.bidirectional_lstm)
        report = {}
        for weight in layer.projection.weights:
            weight.assign(np.zeros(weight.shape))
            report[weight.path] = (), "zero: the LSTM adds nothing at the start"
        return report


@register_block
class TransBLSTMHalf(TransBLSTM):
    """Variant 2 of half width, `hidden_dim / 2` units a direction: no projection."""

    name = "trans_blstm_half"
    test_sizes = {
        key: size
        for key, size in TransBLSTM.test_sizes.items()
        if key != "recurrent_dim"
    }

    def defaults(self, hidden_dim):
        defaults = super().defaults(hidden_dim)
        del defaults["recurrent_dim"]
        return defaults

    def units(self, config):
        return config["hidden_dim"] // 2

    def check(self, config):
        hidden_dim = config["hidden_dim"]
        if hidden_dim % 2:
            raise ValueError(
                "`hidden_dim` must be even: each direction of the LSTM has half of "
                f"it. Received: hidden_dim={hidden_dim}. Try hidden_dim="
                f"{hidden_dim + 1}."
            )

    def make_layer(self, config, index, **shared):
        return super().make_layer(
            config, index, recurrent_dim=self.units(config), **shared
        )


@register_block
class TransBLSTM1(BlockKind):
    """Variant 1: the BiLSTM replaces the feed-forward sub-layer.

    Started from a BERT it is nearly that sub-layer, see `start_as_feed_forward`. Of
    half width, without a projection, it cannot be: its LSTM adds nothing at the start.
    """

    name = "trans_blstm_1"
    layer = TransBLSTMBlock
    test_sizes = {
        "num_layers": 2,
        "hidden_dim": 12,
        "num_heads": 3,
        "recurrent_dim": 7,
    }

    def defaults(self, hidden_dim):
        return {"num_heads": default_heads(hidden_dim), "recurrent_dim": hidden_dim}

    def make_layer(self, config, index, **shared):
        return super().make_layer(config, index, variant=1, **shared)

    def count_weights(self, config):
        width, units = config["hidden_dim"], config["recurrent_dim"]
        lstm = lstm_weights(width, units, projected=2 * units != width)
        return attention_weights(config) + lstm

    def count_kept(self, config, sequence_length):
        kept = attention_kept(config, sequence_length)
        return kept + lstm_kept(config["recurrent_dim"])

    def start_from_bert(self, layer, name, checkpoint):
        if layer.projection is None:
            return start_silent(layer.bidirectional_lstm)
        return start_as_feed_forward(
            layer.bidirectional_lstm,
            layer.projection,
            FeedForwardUnits(checkpoint, name, 2 * layer.recurrent_dim),
        )


def start_silent(lstm):
    """Has a BiLSTM without a projection add nothing: its cells stay 0.

    Args:
        lstm: `BidirectionalLSTM`, built. The weights of its candidate `g` become zero.

    Returns:
        dict, as `BlockKind.start_from_bert`.
    """
    report = {}
    for weight in lstm.weights:
        value = weight.numpy()
        gates = value.reshape(*value.shape[:-1], -1, 4, lstm.units)
        gates[..., 2, :] = 0.0
        weight.assign(gates.reshape(value.shape))
        report[weight.path] = (
            (),
            "random, but zero for the candidate g: the LSTM adds nothing at the start",
        )
    return report


def start_as_feed_forward(layer, projection, units):
    """Fills a BiLSTM and its projection so that they are nearly a feed-forward layer.

    A unit `gelu(z) v` with `z = x w + b` becomes a unit of the LSTM whose input gate
    is open, whose forget gate is nearly shut, and which is read through its output
    gate:

        sigmoid(1.702 z) * tanh(tanh(e z)) v / e,  near to sigmoid(1.702 z) z v

    for a small `e` (0.25); the last is the sigmoid form of the GELU (Hendrycks and
    Gimpel 2016). The recurrent kernel starts at zero and gets gradient at once.

    Args:
        layer: `BidirectionalLSTM`, built; half of the units go to each direction.
        projection: Dense layer behind it, built.
        units: `FeedForwardUnits`.

    Returns:
        dict, as `BlockKind.start_from_bert`.
    """
    width = layer.units
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
