"""The attention-free block of Huang et al. 2020, section 4.3."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference import trans_blstm

from keras_recbert.layers import BLSTMBlock

INPUTS = np.random.default_rng(0).normal(size=(4, 7, 12))
PADDING_MASK = ragged_mask((7, 4, 1, 0), 7)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)]
)
def test_outputs_match_the_equations(dtype, tolerance):
    keras.utils.set_random_seed(0)
    block = BLSTMBlock(5, dtype=dtype)
    block.build(INPUTS.shape)
    randomize(block)
    weights = {
        "blstm": weights_of.blstm(block),
        "output_norm": weights_of.norm(block.output_norm),
    }
    expected = trans_blstm.blstm_block(INPUTS, weights, PADDING_MASK)
    assert_close(block(INPUTS.astype(dtype), PADDING_MASK), expected, tolerance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recurrent_dim": 0}, "`recurrent_dim` must be a whole number of at least 1"),
        ({"dropout": -0.1}, "`dropout` must be a number in .*Received: dropout=-0.1"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        BLSTMBlock(**{"recurrent_dim": 5, **arguments})
