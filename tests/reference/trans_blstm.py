"""The blocks of Huang et al. 2020 (figure 2, section 3.2), in float64 loops."""

import numpy as np
from reference import bert
from reference.lstm import bidirectional_lstm
from reference.numbers import layer_norm


def blstm(x, weights, padding_mask):
    """BiLSTM from H to 2H and, where there is one, the linear layer back to H."""
    gates = np.stack([x @ weights["w"][d] + weights["b"][d] for d in range(2)], axis=2)
    outputs = bidirectional_lstm(gates, weights["u"], padding_mask)
    if "w_project" not in weights:  # TRANS-BLSTM-SMALL: H / 2 units, no projection
        return outputs
    return outputs @ weights["w_project"] + weights["b_project"]


def trans_blstm_1(x, weights, num_heads, padding_mask):
    """Left of figure 2: the BLSTM replaces the feed-forward layer."""
    attended = bert.attention(x, weights["attention"], num_heads, padding_mask)
    hidden = layer_norm(x + attended, *weights["attention_norm"])
    update = blstm(hidden, weights["blstm"], padding_mask)
    return layer_norm(hidden + update, *weights["output_norm"])


def trans_blstm_2(x, weights, num_heads, padding_mask):
    """Right of figure 2: a BLSTM of the block's input joins before the last norm."""
    attended = bert.attention(x, weights["attention"], num_heads, padding_mask)
    hidden = layer_norm(x + attended, *weights["attention_norm"])
    update = bert.feed_forward(hidden, weights["feed_forward"])
    parallel = blstm(x, weights["blstm"], padding_mask)
    return layer_norm(hidden + update + parallel, *weights["output_norm"])


def blstm_block(x, weights, padding_mask):
    """Section 4.3: a BLSTM layer in place of the whole block."""
    update = blstm(x, weights["blstm"], padding_mask)
    return layer_norm(x + update, *weights["output_norm"])
