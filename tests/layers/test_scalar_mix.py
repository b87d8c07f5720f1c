"""The weighted sum of layers, against a loop written from the paper."""

import math

import numpy as np
from harness import assert_close, randomize

from keras_recbert.layers import ScalarMix


def loop(inputs, logits, gamma):
    """Peters et al. 2018, eq. 1, in float64, one number after the other."""
    total = sum(math.exp(one) for one in logits)
    mixed = np.zeros(inputs.shape[:-1])
    for place in np.ndindex(*mixed.shape):
        for j, one in enumerate(logits):
            mixed[place] += math.exp(one) / total * float(inputs[place][j])
        mixed[place] *= gamma
    return mixed


def test_it_is_equation_1():
    stacked = np.random.default_rng(0).normal(size=(2, 5, 3, 4)).astype("float32")
    layer = ScalarMix()
    assert_close(layer(stacked), stacked.mean(axis=-1), 1e-6)  # where it starts
    randomize(layer)
    logits = layer.layer_logits.numpy().astype("float64")
    assert_close(layer(stacked), loop(stacked, logits, float(layer.gamma)), 1e-6)
    # Far from 0 one layer is read alone, and nothing overflows.
    layer.layer_logits.assign([0.0, 0.0, 200.0, 0.0])
    layer.gamma.assign(2.0)
    assert_close(layer(stacked), 2 * stacked[..., 2], 1e-6)
