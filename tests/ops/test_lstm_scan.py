"""`bidirectional_lstm_scan` against float64 loops of the textbook's LSTM."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference.lstm import bidirectional_lstm
from reference.numbers import finite_differences

from keras_recbert.ops.lstm_scan import bidirectional_lstm_scan

MASKS = {
    1: [[1], [0]],
    3: [[1, 1, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0]],
    7: [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 1, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0],
    ],
}
UNITS = 2


def make_arguments(length):
    rng = np.random.default_rng(length)
    mask = np.array(MASKS[length], "int32")
    gates = rng.normal(size=(*mask.shape, 2, 4 * UNITS))
    return (gates, rng.normal(size=(2, UNITS, 4 * UNITS))), mask


def make_upstream(mask):
    return np.random.default_rng(9).normal(size=(*mask.shape, 2 * UNITS))


def scan_and_gradients(arguments, mask, upstream):
    arguments = [tf.convert_to_tensor(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = bidirectional_lstm_scan(*arguments, mask)
        total = tf.reduce_sum(outputs * upstream)
    return outputs, tape.gradient(total, arguments)


@pytest.mark.parametrize("length", MASKS)
def test_outputs_match_the_equations(length):
    arguments, mask = make_arguments(length)
    outputs = bidirectional_lstm_scan(*map(tf.constant, arguments), mask)
    assert outputs.dtype == "float64"
    assert_close(outputs, bidirectional_lstm(*arguments, mask), 1e-12)


@pytest.mark.parametrize("length", MASKS)
def test_gradients_match_finite_differences_of_the_equations(length):
    arguments, mask = make_arguments(length)
    upstream = make_upstream(mask)
    _, found = scan_and_gradients(arguments, mask, upstream)

    def total(*arguments):
        return np.sum(bidirectional_lstm(*arguments, mask) * upstream)

    for index, name in enumerate(("gates", "recurrent_kernel")):
        expected = finite_differences(total, arguments, index)
        # One step from a state of zeros: the recurrent kernel has nothing to do.
        assert np.any(expected != 0.0) == (name == "gates" or length > 1)
        assert_close(found[index], expected, 1e-7, f"gradient of {name}")


def test_no_mask_is_a_mask_of_ones():
    arguments, mask = make_arguments(7)
    outputs = bidirectional_lstm_scan(*map(tf.constant, arguments))
    assert_close(outputs, bidirectional_lstm(*arguments, np.ones_like(mask)), 1e-12)


def test_backward_pass_starts_at_the_last_real_token():
    (gates, kernel), _ = make_arguments(7)
    mask = np.array([[1, 1, 1, 1, 0, 0, 0]] * len(gates))
    padded = bidirectional_lstm_scan(tf.constant(gates), tf.constant(kernel), mask)
    cut = bidirectional_lstm_scan(tf.constant(gates[:, :4]), tf.constant(kernel))
    assert_close(padded[:, :4], cut, 1e-12)
    np.testing.assert_array_equal(padded[:, 4:], 0.0)


def test_backwards_is_forwards_of_the_reversed_sequence():
    (gates, kernel), _ = make_arguments(7)
    outputs = bidirectional_lstm_scan(tf.constant(gates), tf.constant(kernel))
    swapped = bidirectional_lstm_scan(
        tf.constant(gates[:, ::-1, ::-1].copy()), tf.constant(kernel[::-1].copy())
    )
    assert_close(swapped[:, ::-1, :UNITS], outputs[:, :, UNITS:], 1e-12)
    assert_close(swapped[:, ::-1, UNITS:], outputs[:, :, :UNITS], 1e-12)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_gradients_equal_eager_ones(jit_compile):
    arguments, mask = make_arguments(7)
    upstream = make_upstream(mask)
    compiled = tf.function(scan_and_gradients, jit_compile=jit_compile)
    tensors = [tf.convert_to_tensor(argument) for argument in arguments]
    found = compiled(tensors, tf.constant(mask), tf.constant(upstream))
    expected = scan_and_gradients(arguments, mask, upstream)
    for one, other in zip(
        tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
    ):
        assert_close(one, other, 1e-12)


def test_length_unknown_to_the_graph():
    arguments, mask = make_arguments(7)
    spec = [
        tf.TensorSpec((None, None, 2, 4 * UNITS), "float64"),
        tf.TensorSpec((2, UNITS, 4 * UNITS), "float64"),
        tf.TensorSpec((None, None), "int32"),
        tf.TensorSpec((None, None, 2 * UNITS), "float64"),
    ]

    @tf.function(input_signature=spec)
    def compiled(gates, kernel, mask, upstream):
        return scan_and_gradients((gates, kernel), mask, upstream)

    upstream = make_upstream(mask)
    found = compiled(*map(tf.constant, (*arguments, mask, upstream)))
    expected = scan_and_gradients(arguments, mask, upstream)
    for one, other in zip(
        tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
    ):
        assert_close(one, other, 1e-12)
