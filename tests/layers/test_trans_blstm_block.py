"""The blocks of figure 2 of Huang et al. 2020, against float64 loops."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference import trans_blstm

from keras_recbert.layers import TransBLSTMBlock

INPUTS = np.random.default_rng(0).normal(size=(3, 7, 12))
PADDING_MASK = ragged_mask((7, 4, 1), 7)
# The softmax of attention runs in float32, also in a float64 layer.
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-5)]
)


def make_block(**arguments):
    keras.utils.set_random_seed(0)
    block = TransBLSTMBlock(num_heads=3, **arguments)
    block.build(INPUTS.shape)
    randomize(block)
    return block


@PRECISIONS
def test_variant_1_matches_the_left_of_figure_2(dtype, tolerance):
    block = make_block(variant=1, recurrent_dim=5, dtype=dtype)
    weights = {**weights_of.block_frame(block), "blstm": weights_of.blstm(block)}
    expected = trans_blstm.trans_blstm_1(INPUTS, weights, 3, PADDING_MASK)
    assert_close(block(INPUTS.astype(dtype), PADDING_MASK), expected, tolerance)


@PRECISIONS
@pytest.mark.parametrize("recurrent_dim", [12, 5, 6], ids=["H", "other", "H/2"])
def test_variant_2_matches_the_right_of_figure_2(recurrent_dim, dtype, tolerance):
    block = make_block(
        variant=2, recurrent_dim=recurrent_dim, intermediate_dim=20, dtype=dtype
    )
    weights = {
        **weights_of.block_frame(block),
        "blstm": weights_of.blstm(block),
        "feed_forward": weights_of.feed_forward(block.feed_forward),
    }
    assert ("w_project" in weights["blstm"]) == (recurrent_dim != 6)
    expected = trans_blstm.trans_blstm_2(INPUTS, weights, 3, PADDING_MASK)
    assert_close(block(INPUTS.astype(dtype), PADDING_MASK), expected, tolerance)


def test_variant_2_is_the_default():
    assert make_block(recurrent_dim=5, intermediate_dim=20).variant == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": 3}, "`variant` must be 1 or 2. Received: variant=3."),
        (
            {"variant": 1, "intermediate_dim": 20},
            "variant 2 has and variant 1 has not. Received: variant=1, intermed",
        ),
        ({"variant": 2}, "Received: variant=2, intermediate_dim=None."),
        (
            {"variant": 1, "recurrent_dim": 0},
            "`recurrent_dim` must be a whole number of at least 1",
        ),
        ({"variant": 1, "dropout": 1.0}, r"`dropout` must be a number in \[0, 1\)"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        TransBLSTMBlock(**{"num_heads": 3, "recurrent_dim": 5, **arguments})
