"""Self-attention against a loop over heads and queries."""

import warnings

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference import bert

from keras_recbert.layers import SelfAttention

# Long enough for distances in the logarithmic buckets.
LENGTH = 29
INPUTS = np.random.default_rng(0).normal(size=(3, LENGTH, 12)).astype("float32")
PADDING_MASK = ragged_mask((LENGTH, 13, 1), LENGTH)
HOLES = PADDING_MASK * (np.arange(LENGTH) % 5 != 3)


def make_layer(num_heads=3, **arguments):
    keras.utils.set_random_seed(0)
    layer = SelfAttention(num_heads, **arguments)
    layer.build(INPUTS.shape)
    randomize(layer)
    return layer


@pytest.mark.parametrize("mask", [PADDING_MASK, HOLES], ids=["ragged", "holes"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("num_heads", [1, 3])
def test_outputs_match_the_equations(num_heads, relative, causal, mask):
    layer = make_layer(num_heads, relative_attention_bias=relative, causal=causal)
    weights = weights_of.self_attention(layer)
    expected = bert.attention(INPUTS, weights, num_heads, mask, causal)
    assert np.all(np.isfinite(expected))
    assert_close(layer(INPUTS, mask), expected)


def test_rows_of_one_token_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_layer()(INPUTS[:, :1]).shape == (3, 1, 12)


def test_no_mask_is_a_mask_of_ones():
    layer = make_layer(relative_attention_bias=True)
    expected = bert.attention(
        INPUTS, weights_of.self_attention(layer), 3, np.ones_like(PADDING_MASK)
    )
    assert_close(layer(INPUTS), expected)


def test_padding_gets_no_weight_at_all():
    layer = make_layer()
    moved = INPUTS + 100.0 * (1 - PADDING_MASK[:, :, None])
    before, after = layer(INPUTS, PADDING_MASK), layer(moved, PADDING_MASK)
    real = PADDING_MASK == 1
    np.testing.assert_array_equal(before.numpy()[real], after.numpy()[real])


@pytest.mark.parametrize("causal", [False, True])
def test_row_of_padding_is_finite(causal):
    layer = make_layer(causal=causal, relative_attention_bias=True)
    outputs = layer(INPUTS, np.zeros_like(PADDING_MASK))
    assert np.all(np.isfinite(outputs))


def test_width_that_heads_do_not_divide():
    message = (
        "`hidden_dim` must be a multiple of `num_heads`. Received: hidden_dim=12, "
        "num_heads=5. Try hidden_dim=15."
    )
    with pytest.raises(ValueError, match=message):
        SelfAttention(5)(INPUTS)


@pytest.mark.parametrize("num_heads", [0, -1, 2.0, "2", None])
def test_impossible_number_of_heads(num_heads):
    with pytest.raises(ValueError, match="`num_heads` must be a whole number of at"):
        SelfAttention(num_heads)
