"""The loop over time stacks what each step wrote."""

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.ops.time_loop import time_loop


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
