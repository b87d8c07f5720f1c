"""`swish_scan` against float64 loops of the paper's equation 3."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference.numbers import finite_differences
from reference.swish_rnn import swish_states

from keras_recbert.ops.swish_scan import swish_scan

# Rows that differ: full, ragged, holes in the middle, nothing but padding.
MASKS = {
    1: [[1], [0]],
    3: [[1, 1, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0]],
    7: [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 1, 1, 0, 1],
        [0, 1, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ],
}
# Lengths below, equal to, and no multiple of the step size are all among these.
CASES = [(length, step_size) for length in MASKS for step_size in (1, 2, 3, 4)]
NAMES = ("x1", "x2", "alpha", "beta")


def make_arguments(length, dim=3, seed=0):
    """Random x1, x2, alpha, beta, and a mask."""
    rng = np.random.default_rng(seed + length)
    mask = np.array(MASKS[length], "int32")
    shape = (*mask.shape, dim)
    x1, x2 = rng.normal(size=shape), rng.normal(size=shape)
    alpha, beta = rng.normal(1.0, 0.5, dim), rng.normal(0.0, 0.5, dim)
    return (x1, x2, alpha, beta), mask


def scan_and_gradients(arguments, mask, step_size, upstream):
    arguments = [tf.convert_to_tensor(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        states = swish_scan(*arguments, mask, step_size)
        total = tf.reduce_sum(states * upstream)
    return states, tape.gradient(total, arguments)


@pytest.mark.parametrize(("length", "step_size"), CASES)
def test_states_match_the_equation(length, step_size):
    arguments, mask = make_arguments(length)
    states = swish_scan(*map(tf.constant, arguments), mask, step_size)
    assert states.dtype == "float64"
    assert_close(states, swish_states(*arguments, mask, step_size), 1e-12, "states")


@pytest.mark.parametrize(("length", "step_size"), CASES)
def test_gradients_match_finite_differences_of_the_equation(length, step_size):
    arguments, mask = make_arguments(length)
    upstream = np.random.default_rng(9).normal(size=arguments[0].shape)
    _, found = scan_and_gradients(arguments, mask, step_size, upstream)

    def total(*arguments):
        return np.sum(swish_states(*arguments, mask, step_size) * upstream)

    for index, (name, gradient) in enumerate(zip(NAMES, found, strict=True)):
        expected = finite_differences(total, arguments, index)
        assert np.any(expected != 0.0)
        assert_close(gradient, expected, 1e-7, f"gradient of {name}")


def test_no_mask_is_a_mask_of_ones():
    arguments, mask = make_arguments(7)
    ones = np.ones_like(mask)
    assert_close(
        swish_scan(*map(tf.constant, arguments), None, 2),
        swish_states(*arguments, ones, 2),
        1e-12,
    )


def test_masked_position_hands_the_state_on():
    arguments, _ = make_arguments(7)
    mask = np.array([[1, 1, 0, 0, 0, 0, 1]] * 5)
    states = swish_scan(*map(tf.constant, arguments), mask, 2).numpy()
    for i in (2, 4):
        np.testing.assert_array_equal(states[:, i], states[:, 0])
    for i in (3, 5):
        np.testing.assert_array_equal(states[:, i], states[:, 1])


def test_chains_of_a_step_size_do_not_mix():
    """With step size 3, position 1 reaches positions 4 and so on, no others."""
    (x1, x2, alpha, beta), _ = make_arguments(7)
    moved = x2.copy()
    moved[:, 1] += 1.0
    before = swish_scan(*map(tf.constant, (x1, x2, alpha, beta)), None, 3).numpy()
    after = swish_scan(*map(tf.constant, (x1, moved, alpha, beta)), None, 3).numpy()
    changed = np.any(before != after, axis=(0, 2))
    assert list(changed) == [False, True, False, False, True, False, False]


def test_scan_of_float32_is_close_to_float64():
    arguments, mask = make_arguments(7)
    single = [tf.constant(argument, "float32") for argument in arguments]
    states = swish_scan(*single, mask, 2)
    assert states.dtype == "float32"
    assert_close(states, swish_states(*arguments, mask, 2), 1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_compiled_gradients_equal_eager_ones(jit_compile):
    arguments, mask = make_arguments(7)
    upstream = np.random.default_rng(9).normal(size=arguments[0].shape)
    compiled = tf.function(scan_and_gradients, jit_compile=jit_compile)
    tensors = [tf.convert_to_tensor(argument) for argument in arguments]
    found = compiled(tensors, tf.constant(mask), 4, tf.constant(upstream))
    expected = scan_and_gradients(arguments, mask, 4, upstream)
    for one, other in zip(
        tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
    ):
        assert_close(one, other, 1e-12)


def test_length_unknown_to_the_graph():
    arguments, mask = make_arguments(7)
    some = tf.TensorSpec((None, None, 3), "float64")
    vector = tf.TensorSpec((3,), "float64")
    spec = [some, some, vector, vector, tf.TensorSpec((None, None), "int32")]

    @tf.function(input_signature=spec)
    def compiled(*args):
        *arguments, mask = args
        return scan_and_gradients(arguments, mask, 3, tf.ones_like(arguments[0]))

    states, found = compiled(*map(tf.constant, arguments), tf.constant(mask))
    ones = np.ones_like(arguments[0])
    expected_states, expected = scan_and_gradients(arguments, mask, 3, ones)
    assert_close(states, expected_states, 1e-12)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 1e-12)


def test_long_sequence_stays_finite_and_exact():
    """1,000 steps with gates that saturate both ways."""
    rng = np.random.default_rng(3)
    x1, x2 = rng.normal(0.0, 8.0, (2, 2, 1000, 3))
    alpha, beta = np.array([5.0, -1.0, 0.1]), np.array([0.0, 3.0, -30.0])
    mask = np.ones((2, 1000), "int32")
    states, found = scan_and_gradients((x1, x2, alpha, beta), mask, 1, np.ones_like(x1))
    expected = swish_states(x1, x2, alpha, beta, mask, 1)
    scale = np.max(np.abs(expected))
    assert_close(states / scale, expected / scale, 1e-12)
    for gradient in found:
        assert np.all(np.isfinite(gradient))
