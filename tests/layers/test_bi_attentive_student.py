"""The bi-attentive student of Liu 2020, section 4.1.2."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, randomize
from reference.bi_attentive import bi_attentive_student

from keras_recbert.layers import BiAttentiveStudent

INPUTS = np.random.default_rng(0).normal(size=(5, 8, 6))
# Texts of 5 and 3, 1 and 4 and 3 and 1 tokens; a single one of 6; no text.
LENGTHS = ((5, 3), (1, 4), (3, 1), (6, 0), (0, 0))
MASK = np.array([[1] * (n + m) + [0] * (8 - n - m) for n, m in LENGTHS])
SECOND = np.array([[0] * n + [1] * m + [0] * (8 - n - m) for n, m in LENGTHS])


def student(dtype="float64", **arguments):
    keras.utils.set_random_seed(0)
    layer = BiAttentiveStudent(3, 4, dtype=dtype, **arguments)
    layer.build(INPUTS.shape)
    randomize(layer)
    return layer


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)]
)
def test_outputs_match_the_equations(dtype, tolerance):
    layer = student(dtype, return_sequences=True)
    found, states = layer(INPUTS.astype(dtype), MASK, SECOND)
    assert found.shape == (5, 36)
    weights = weights_of.bi_attentive_student(layer)
    for row, (n, m) in enumerate(LENGTHS[:4]):
        first = INPUTS[row, :n]
        second = INPUTS[row, n : n + m] if m else first
        pooled, x, y = bi_attentive_student(first, second, weights)
        assert_close(found[row], pooled, tolerance)
        assert_close(states[row, : n + m], [*x, *(y if m else [])], tolerance)
        assert_close(states[row, n + m :], 0.0 * INPUTS[row, n + m :], 0.0)
    assert_close(found[4], np.zeros(36), 0.0)


def test_a_single_text_needs_no_segments_and_sees_no_padding():
    layer = student()
    expected = layer(INPUTS[:, :4])
    assert_close(layer(INPUTS[:, :4], None, 0 * SECOND[:, :4]), expected, 1e-12)
    padded = np.concatenate([INPUTS[:, :4], INPUTS[:, ::2]], axis=1)
    mask = np.array([[1] * 4 + [0] * 4] * 5)
    assert_close(layer(padded, mask), expected, 1e-12)


def test_states_keep_the_mask_of_keras():
    ids = keras.Input((None,))
    words = keras.layers.Embedding(9, INPUTS.shape[-1], mask_zero=True)(ids)
    _, states = BiAttentiveStudent(4, 6, return_sequences=True)(words)
    model = keras.Model(ids, keras.layers.GlobalAveragePooling1D()(states))
    padded = np.array([[3, 4, 5, 0, 0]])
    assert_close(model(padded), model(padded[:, :3]), 1e-6)


@pytest.mark.parametrize("other", [2, -1, 0.5])
def test_segments_are_two(other):
    with pytest.raises(ValueError, match="`segment_ids` must be 0 at the first"):
        student()(INPUTS, MASK, np.where(SECOND > 0, other, 0))
    on_padding = np.where(MASK > 0, SECOND, other)
    assert_close(
        student()(INPUTS, MASK, on_padding), student()(INPUTS, MASK, SECOND), 0.0
    )


def test_it_is_as_large_as_the_thesis_says():
    """10.2 M in table 4.1, with the layer of 512 units and without word vectors."""
    layer = BiAttentiveStudent()
    layer.build((None, None, 300))
    fully_connected = (12 * 256 + 1) * 512
    assert layer.count_params() + fully_connected == pytest.approx(10.2e6, rel=0.01)


@pytest.mark.parametrize("name", ["recurrent_dim", "projection_dim"])
def test_impossible_arguments(name):
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at lea"):
        BiAttentiveStudent(**{name: 0})
