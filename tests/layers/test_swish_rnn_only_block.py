"""The block of one SwishRNN, in both directions, against the loop of the paper."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference.numbers import layer_norm
from reference.swish_rnn import swish_rnn

from keras_recbert.layers import SwishRNNOnlyBlock

INPUTS = np.random.default_rng(0).normal(size=(4, 7, 12))
LENGTHS = (7, 4, 1, 0)  # the loop reads no empty row
PADDING_MASK = ragged_mask(LENGTHS, 7)


@pytest.mark.parametrize(
    ("backwards", "step_size", "dtype", "tolerance"),
    [
        (False, 2, "float64", 1e-11),
        (True, 2, "float64", 1e-11),
        (True, 1, "float32", 1e-5),
    ],
)
def test_each_row_is_read_in_its_direction(backwards, step_size, dtype, tolerance):
    keras.utils.set_random_seed(0)
    block = SwishRNNOnlyBlock(5, step_size, go_backwards=backwards, dtype=dtype)
    block.build(INPUTS.shape)
    randomize(block)
    weights = weights_of.swish_rnn(block.swish_rnn)
    gamma, beta = weights_of.norm(block.output_norm)
    outputs = block(INPUTS.astype(dtype), PADDING_MASK)
    turn = slice(None, None, -1 if backwards else 1)
    for row, length in enumerate(LENGTHS[:3]):
        text = INPUTS[row : row + 1, :length]
        ones = np.ones((1, length))
        update = swish_rnn(text[:, turn], weights, ones, step_size, "gelu")[:, turn]
        expected = layer_norm(text + update, gamma, beta)
        assert_close(outputs[row, :length], expected[0], tolerance)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recurrent_dim": 0}, "`recurrent_dim` must be a whole number of at least 1"),
        ({"dropout": 1.0}, "`dropout` must be a number in .*Received: dropout=1.0"),
        ({"gate": "relu"}, "`gate` must be one of .*Received: gate='relu'"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SwishRNNOnlyBlock(**{"recurrent_dim": 5, **arguments})
