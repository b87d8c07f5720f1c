"""BERT's block, and the SwishRNN block in the same frame."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference import bert
from reference.numbers import layer_norm
from reference.swish_rnn import swish_rnn

from keras_recbert.layers import (
    BLSTMBlock,
    FeedForward,
    SwishRNNBlock,
    TransBLSTMBlock,
    TransformerBlock,
)

INPUTS = np.random.default_rng(0).normal(size=(3, 11, 12))
PADDING_MASK = ragged_mask((11, 7, 1), 11)
# The softmax of attention runs in float32, also in a float64 layer.
PRECISIONS = pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-5)]
)


def make(cls, **arguments):
    keras.utils.set_random_seed(0)
    layer = cls(**arguments)
    layer.build(INPUTS.shape)
    randomize(layer)
    return layer


@PRECISIONS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relative", [False, True])
def test_transformer_block_matches_the_equations(relative, causal, dtype, tolerance):
    block = make(
        TransformerBlock,
        num_heads=3,
        intermediate_dim=20,
        relative_attention_bias=relative,
        causal=causal,
        dtype=dtype,
    )
    weights = {
        **weights_of.block_frame(block),
        "feed_forward": weights_of.feed_forward(block.feed_forward),
    }
    expected = bert.transformer_block(INPUTS, weights, 3, PADDING_MASK, causal)
    assert_close(block(INPUTS.astype(dtype), PADDING_MASK), expected, tolerance)


@PRECISIONS
@pytest.mark.parametrize("step_size", [1, 2, 4])
def test_swish_rnn_block_matches_the_equations(step_size, dtype, tolerance):
    block = make(
        SwishRNNBlock, num_heads=3, recurrent_dim=5, step_size=step_size, dtype=dtype
    )
    frame = weights_of.block_frame(block)
    assert "relative" in frame["attention"]  # on, as in the paper
    attended = bert.attention(INPUTS, frame["attention"], 3, PADDING_MASK)
    hidden = layer_norm(INPUTS + attended, *frame["attention_norm"])
    update = swish_rnn(
        hidden,
        weights_of.swish_rnn(block.feed_forward),
        PADDING_MASK,
        step_size,
        "gelu",
    )
    expected = layer_norm(hidden + update, *frame["output_norm"])
    assert_close(block(INPUTS.astype(dtype), PADDING_MASK), expected, tolerance)


@pytest.mark.parametrize(
    # TensorFlow's GELU knows the root of 2 in float32 only, whatever its input.
    ("dtype", "tolerance"),
    [("float64", 1e-7), ("float32", 1e-5)],
)
def test_feed_forward_matches_the_equation_with_exact_gelu(dtype, tolerance):
    layer = make(FeedForward, intermediate_dim=20, dtype=dtype)
    expected = bert.feed_forward(INPUTS, weights_of.feed_forward(layer))
    assert_close(layer(INPUTS.astype(dtype)), expected, tolerance)


@pytest.mark.parametrize(
    ("cls", "sizes"),
    [
        (TransformerBlock, {"num_heads": 3, "intermediate_dim": 20}),
        (SwishRNNBlock, {"num_heads": 3, "recurrent_dim": 5}),
        (TransBLSTMBlock, {"num_heads": 3, "recurrent_dim": 5, "variant": 1}),
        (TransBLSTMBlock, {"num_heads": 3, "recurrent_dim": 5, "intermediate_dim": 20}),
        (BLSTMBlock, {"recurrent_dim": 5}),
    ],
)
def test_every_sub_layer_is_dropped_before_it_is_added(cls, sizes):
    """At a rate of nearly 1 nothing but the residual path is left."""
    block = make(cls, **sizes, dropout=1.0 - 1e-9)
    inputs = INPUTS.astype("float32")
    left = INPUTS
    if cls is not BLSTMBlock:
        left = layer_norm(left, *weights_of.norm(block.attention_norm))
    left = layer_norm(left, *weights_of.norm(block.output_norm))
    assert_close(block(inputs, PADDING_MASK, training=True), left)


@pytest.mark.parametrize("intermediate_dim", [0, None, 8.0])
def test_impossible_intermediate_dim(intermediate_dim):
    with pytest.raises(ValueError, match="`intermediate_dim` must be a whole number"):
        TransformerBlock(num_heads=3, intermediate_dim=intermediate_dim)


def test_impossible_dropout():
    message = r"`dropout` must be a number in \[0, 1\). Received: dropout=1.5."
    for cls, width in ((TransformerBlock, "intermediate_dim"), (SwishRNNBlock, None)):
        sizes = {width or "recurrent_dim": 5}
        with pytest.raises(ValueError, match=message):
            cls(num_heads=3, dropout=1.5, **sizes)
