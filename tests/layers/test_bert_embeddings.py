"""Input embeddings against a loop over positions."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import weights_of
from harness import assert_close, randomize
from reference import bert

from keras_recbert.layers import BertEmbeddings

RNG = np.random.default_rng(0)
TOKEN_IDS = RNG.integers(0, 11, (3, 7)).astype("int32")
SEGMENT_IDS = RNG.integers(0, 3, (3, 7)).astype("int32")
SIZES = {
    "vocabulary_size": 11,
    "hidden_dim": 12,
    "max_sequence_length": 7,
    "num_segments": 3,
}


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)]
)
def test_outputs_match_figure_2(dtype, tolerance):
    keras.utils.set_random_seed(0)
    layer = BertEmbeddings(**SIZES, dtype=dtype)
    layer(TOKEN_IDS, SEGMENT_IDS)
    randomize(layer)
    weights = weights_of.embeddings(layer)
    expected = bert.embeddings(TOKEN_IDS, SEGMENT_IDS, weights)
    assert_close(layer(TOKEN_IDS, SEGMENT_IDS), expected, tolerance)


def test_dropout_comes_after_the_norm():
    layer = BertEmbeddings(**SIZES, dropout=1.0 - 1e-9)
    dropped = layer(TOKEN_IDS, SEGMENT_IDS, training=True)
    np.testing.assert_array_equal(dropped, 0.0)


def test_input_longer_than_the_table_of_positions():
    layer = BertEmbeddings(**SIZES)
    message = (
        "Received: sequence_length=8, max_sequence_length=7. Truncate the input, or "
        "build the model with max_sequence_length=8."
    )
    ids = np.zeros((2, 8), "int32")
    with pytest.raises(ValueError, match=message):
        layer(ids, ids)


def test_input_longer_than_the_table_is_found_when_its_length_shows_at_run_time():
    layer = BertEmbeddings(**SIZES)
    unknown = tf.TensorSpec((None, None), "int32")
    call = tf.function(layer, input_signature=[unknown, unknown])
    ids = np.zeros((2, 8), "int32")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[7,12\]"):
        call(ids, ids)


def test_the_gradient_of_positions_is_a_whole_table():
    """Devices add it up before it is clipped; rows would be clipped as they are."""
    layer = BertEmbeddings(**SIZES)
    ids = TOKEN_IDS[:, :5]
    layer.build(ids.shape)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(ids, SEGMENT_IDS[:, :5]) ** 3)
    table = layer.position_embedding.embeddings
    gradient = tape.gradient(total, table.value)
    assert not isinstance(gradient, tf.IndexedSlices)
    assert gradient.shape == table.shape
    assert np.any(gradient[:5]) and not np.any(gradient[5:])


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_positions_are_those_that_a_lookup_gives(dtype):
    layer = BertEmbeddings(**SIZES, dtype=dtype)
    layer.build(TOKEN_IDS.shape)
    rows, expected = layer._positions(5), layer.position_embedding(np.arange(5))
    assert rows.dtype == expected.dtype
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("name", SIZES)
def test_impossible_sizes(name):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at leas"):
        BertEmbeddings(**{**SIZES, name: 0})


def test_impossible_dropout():
    with pytest.raises(ValueError, match=r"in \[0, 1\). Received: dropout='half'."):
        BertEmbeddings(**SIZES, dropout="half")
