"""Dropout, residual and LayerNorm in one against their formula and against Keras."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference.numbers import finite_differences, layer_norm

from keras_recbert.ops.add_norm import add_norm

NAMES = ("x", "update", "gamma", "beta")
EPSILON = 1e-12
SCALE = 1.25


def make_arguments(shape=(2, 3, 5)):
    """Random x, update, gamma and beta, what dropout keeps, and an upstream."""
    rng = np.random.default_rng(sum(shape))
    x, update, upstream = rng.normal(size=(3, *shape))
    gamma, beta = rng.normal(1.0, 0.5, shape[-1]), rng.normal(0.0, 0.5, shape[-1])
    keep = rng.random(shape) < 0.7
    keep[..., 0, :] = False  # all of a row is dropped
    return (x, update, gamma, beta), keep, upstream


def formula(x, update, gamma, beta, keep=None):
    kept = update if keep is None else SCALE * np.where(keep, update, 0.0)
    return layer_norm(x + kept, gamma, beta, EPSILON)


def outputs_and_gradients(arguments, upstream, function):
    arguments = [tf.convert_to_tensor(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = function(*arguments)
    return outputs, tape.gradient(outputs, arguments, tf.cast(upstream, outputs.dtype))


def call(arguments, upstream, keep=None, xla=False):
    scale = 1.0 if keep is None else SCALE
    return outputs_and_gradients(
        arguments,
        upstream,
        lambda *arguments: add_norm(*arguments, keep, scale, EPSILON, xla),
    )


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("with_keep", [False, True])
@pytest.mark.parametrize("shape", [(1, 2, 7), (2, 3, 5)])
def test_outputs_and_gradients_match_the_formula(shape, with_keep, xla):
    arguments, keep, upstream = make_arguments(shape)
    keep = keep if with_keep else None
    outputs, found = call(arguments, upstream, keep, xla)
    assert outputs.dtype == "float64"
    assert_close(outputs, formula(*arguments, keep), 1e-12)

    def total(*arguments):
        return np.sum(formula(*arguments, keep) * upstream)

    for index, (name, gradient) in enumerate(zip(NAMES, found, strict=True)):
        expected = finite_differences(total, arguments, index)
        assert np.any(expected != 0.0)
        assert_close(gradient, expected, 1e-7, f"gradient of {name}")
    if with_keep:
        np.testing.assert_array_equal(found[1].numpy()[~keep], 0.0)


@pytest.mark.parametrize("xla", [False, True])
def test_float32_equals_keras(xla):
    arguments, keep, upstream = make_arguments((2, 3, 40))
    arguments = [argument.astype("float32") for argument in arguments]

    def of_keras(x, update, gamma, beta):
        total = x + tf.where(keep, SCALE * update, 0.0)
        return keras.ops.layer_normalization(total, gamma, beta, epsilon=EPSILON)

    found = call(arguments, upstream, keep, xla)
    expected = outputs_and_gradients(arguments, upstream, of_keras)
    for name, one, other in zip(
        ("outputs", *NAMES),
        tf.nest.flatten(found),
        tf.nest.flatten(expected),
        strict=True,
    ):
        assert one.dtype == "float32"
        assert_close(one, other, 1e-5, name)


@pytest.mark.parametrize("xla", [False, True])
def test_bfloat16_is_rounded_once(xla):
    """Computed in float32, then rounded: off by at most 2 ** -8 of each entry."""
    (x, update, *vectors), keep, upstream = make_arguments()
    x, update, upstream = (
        tf.cast(tf.cast(it, "bfloat16"), "float64").numpy()
        for it in (x, update, upstream)
    )
    given = [tf.cast(it, "bfloat16") for it in (x, update)]
    given += [vector.astype("float32") for vector in vectors]
    found = tf.nest.flatten(call(given, upstream, keep, xla))
    exact = tf.nest.flatten(call((x, update, *vectors), upstream, keep))
    assert [it.dtype for it in found] == ["bfloat16"] * 3 + ["float32"] * 2
    for one, other in zip(found[:3], exact[:3], strict=True):
        error = np.abs(tf.cast(one, "float64") - other)
        assert np.all(error <= 2.0**-8 * np.abs(other) + 1e-5)
    for one, other in zip(found[3:], exact[3:], strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("xla", [False, True])
def test_no_digits_are_lost_far_from_zero(xla):
    """A variance as mean of squares minus square of the mean would keep none."""
    (x, update, *vectors), _, upstream = make_arguments()
    # 1 / 64 is the distance of neighbours there, so that inputs are exact.
    x, update = (np.round(it * 64) / 64 for it in (x, update))
    arguments = [(x + 2.0**17), update, *vectors]
    outputs, _ = call([it.astype("float32") for it in arguments], upstream, xla=xla)
    # The mean of 5 numbers is off by a neighbour at most.
    assert_close(outputs, formula(*arguments), 0.1)
    assert_close(outputs - outputs[:1], formula(*arguments) - outputs[:1], 0.1)


@pytest.mark.parametrize("xla", [False, True])
def test_row_without_variance_is_finite(xla):
    (x, update, gamma, beta), keep, upstream = make_arguments()
    x[:, 0] = 0.0  # and all of its update is dropped
    arguments = [it.astype("float32") for it in (x, update, gamma, beta)]
    keep[:, 0] = False
    outputs, found = call(arguments, upstream, keep, xla)
    np.testing.assert_array_equal(outputs[:, 0], [beta.astype("float32")] * 2)
    for gradient in found:
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("xla", [False, True])
def test_shapes_unknown_to_the_graph(xla):
    vector = tf.TensorSpec((5,), "float64")
    some = tf.TensorSpec((None, None, 5), "float64")
    keep_spec = tf.TensorSpec((None, None, 5), "bool")

    @tf.function(input_signature=[some, some, vector, vector, keep_spec, some])
    def compiled(x, update, gamma, beta, keep, upstream):
        return call((x, update, gamma, beta), upstream, keep, xla)

    for shape in ((2, 3, 5), (3, 1, 5)):
        arguments, keep, upstream = make_arguments(shape)
        found = compiled(*map(tf.constant, (*arguments, keep, upstream)))
        expected = call(arguments, upstream, keep)
        for one, other in zip(
            tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
        ):
            assert_close(one, other, 1e-12)


@pytest.mark.parametrize("xla", [False, True])
def test_variables_get_the_gradients_of_tensors(xla):
    (x, update, gamma, beta), keep, upstream = make_arguments()
    variables = [tf.Variable(gamma), tf.Variable(beta)]

    @tf.function
    def compiled():
        with tf.GradientTape() as tape:
            outputs = add_norm(x, update, *variables, keep, SCALE, EPSILON, xla)
        return tape.gradient(outputs, variables, tf.constant(upstream))

    _, (*_, d_gamma, d_beta) = call((x, update, gamma, beta), upstream, keep)
    for one, other in zip(compiled(), (d_gamma, d_beta), strict=True):
        assert_close(one, other, 1e-12)
