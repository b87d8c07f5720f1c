"""The loop over time stacks what each step wrote."""

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.ops.time_loop import steps_of, time_loop


def running_sums(steps):
    """Sums 0, 1, 3, 6, ... and their squares, from two arrays at once."""

    def body(step, total, sums, squares):
        total += tf.cast(step, "float32")
        return step + 1, total, sums.write(step, total), squares.write(step, total**2)

    zero = tf.constant(0.0)
    return time_loop(body, (zero,), (zero, zero), steps)


@pytest.mark.parametrize("steps", [5, tf.constant(5)], ids=["int", "tensor"])
def test_each_step_is_stacked(steps):
    sums, squares = running_sums(steps)
    np.testing.assert_array_equal(sums, [0, 1, 3, 6, 10])
    np.testing.assert_array_equal(squares, [0, 1, 9, 36, 100])


def test_number_of_steps_unknown_to_the_graph():
    compiled = tf.function(running_sums, input_signature=[tf.TensorSpec((), "int32")])
    for steps in (1, 4):
        sums, _ = compiled(tf.constant(steps))
        assert sums.shape == (steps,)


def test_static_number_of_steps_compiles_with_xla():
    sums, _ = tf.function(lambda: running_sums(4), jit_compile=True)()
    np.testing.assert_array_equal(sums, [0, 1, 3, 6])


@pytest.mark.parametrize("axis", [0, 1])
def test_steps_are_slices_eagerly_and_in_a_graph(axis):
    x = np.arange(24.0).reshape(2, 3, 4)

    def last_to_first(x):
        steps = steps_of(x, axis)
        return [steps[step] for step in reversed(range(x.shape[axis]))]

    expected = np.flip(np.moveaxis(x, axis, 0), 0)
    np.testing.assert_array_equal(last_to_first(tf.constant(x)), expected)
    np.testing.assert_array_equal(tf.function(last_to_first)(x), expected)
