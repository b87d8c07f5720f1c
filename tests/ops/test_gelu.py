"""The exact GELU and its gradient."""

import math

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference.numbers import gelu as expected_gelu

from keras_recbert.ops.gelu import gelu, gelu_and_slope

POINTS = np.concatenate([np.linspace(-9.0, 9.0, 61), [-40.0, -1e-9, 0.0, 1e-9, 40.0]])
UPSTREAM = np.random.default_rng(0).normal(size=POINTS.shape)


def expected_slope(x, step=1e-6):
    return (expected_gelu(x + step) - expected_gelu(x - step)) / (2 * step)


def outputs_and_gradient(x, xla, upstream=UPSTREAM):
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = gelu(x, xla)
    return outputs, tape.gradient(outputs, x, tf.cast(upstream, x.dtype))


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_outputs_and_gradient_match_the_error_function(dtype, xla):
    outputs, gradient = outputs_and_gradient(tf.constant(POINTS, dtype), xla)
    assert outputs.dtype == gradient.dtype == dtype
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    assert_close(outputs, expected_gelu(POINTS), tolerance)
    tolerance = 1e-7 if dtype == "float64" else 1e-5
    assert_close(gradient, UPSTREAM * expected_slope(POINTS), tolerance)


@pytest.mark.parametrize("xla", [False, True])
def test_bfloat16_is_rounded_once(xla):
    """Computed in float32, then rounded: off by at most 2 ** -8 of each entry."""
    x, upstream = tf.constant(POINTS, "bfloat16"), tf.constant(UPSTREAM, "bfloat16")
    outputs, gradient = outputs_and_gradient(x, xla, upstream)
    assert outputs.dtype == gradient.dtype == "bfloat16"
    rounded, upstream = (tf.cast(it, "float64").numpy() for it in (x, upstream))
    for found, exact in (
        (outputs, expected_gelu(rounded)),
        (gradient, upstream * expected_slope(rounded)),
    ):
        error = np.abs(tf.cast(found, "float64") - exact)
        assert np.all(error <= 2.0**-8 * np.abs(exact) + 1e-6)


def test_slope_is_that_of_the_outputs():
    outputs, slope = gelu_and_slope(tf.constant(POINTS))
    assert_close(outputs, expected_gelu(POINTS), 1e-12)
    assert_close(slope, expected_slope(POINTS), 1e-7)
    # Half at zero, 0 and 1 far out.
    at = [list(POINTS).index(it) for it in (0.0, -40.0, 40.0)]
    np.testing.assert_array_equal(slope.numpy()[at], [0.5, 0.0, 1.0])


def test_it_is_the_exact_gelu():
    """Not the approximation by tanh, which at 2 is off by 1e-4."""
    exact = 2.0 * 0.5 * (1.0 + math.erf(math.sqrt(2.0)))
    assert abs(float(gelu(tf.constant(2.0, "float64"))) - exact) < 1e-12
    by_tanh = tf.nn.gelu(tf.constant(2.0, "float64"), approximate=True)
    assert abs(float(by_tanh) - exact) > 5e-5


@pytest.mark.parametrize("xla", [False, True])
def test_shapes_unknown_to_the_graph(xla):
    spec = tf.TensorSpec((None, None), "float64")
    compiled = tf.function(
        lambda x, upstream: outputs_and_gradient(x, xla, upstream),
        input_signature=[spec, spec],
    )
    for rows in (6, 11):
        x, upstream = (it.reshape(rows, -1) for it in (POINTS, UPSTREAM))
        outputs, gradient = compiled(x, upstream)
        assert_close(outputs, expected_gelu(x), 1e-12)
        assert_close(gradient, upstream * expected_slope(x), 1e-7)
