"""Every implementation of SwishRNN against float64 loops of the paper's equations."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference import numbers
from reference.numbers import finite_differences
from reference.swish_rnn import swish_states

from keras_recbert.ops.swish_rnn import UNROLL, swish_rnn

IMPLEMENTATIONS = ("reference", "loop", "xla")
NAMES = ("hidden", "alpha", "beta", "state_bias", "gate_bias")
# Lengths below, equal to and no multiple of the step size, and of the number of steps
# in a turn of the compiled loop.
CASES = [
    (1, 1, "gelu"),
    (1, 4, "sigmoid"),
    (3, 1, "sigmoid"),
    (3, 2, "gelu"),
    (3, 3, "sigmoid"),
    (3, 4, "gelu"),
    *[(7, step_size, "gelu") for step_size in (1, 2, 3, 4)],
    *[(7, step_size, "sigmoid") for step_size in (1, 2, 3, 4)],
]
# Compiling takes a second a case.
FAST = [(1, 4, "sigmoid"), (3, 2, "gelu"), (7, 1, "gelu"), (7, 3, "sigmoid")]
CASES_AND_IMPLEMENTATIONS = [
    pytest.param(
        *case,
        implementation,
        marks=() if implementation != "xla" or case in FAST else pytest.mark.slow,
    )
    for case in CASES
    for implementation in IMPLEMENTATIONS
]


def make_mask(length):
    """Rows that differ: full, ragged, with holes, starting late, all padding."""
    positions = np.arange(length)
    rows = [
        positions >= 0,
        positions < (length + 1) // 2,
        positions % 3 != 1,
        positions % 2 == 1,
        positions < 0,
    ]
    return np.array(rows).astype("int32")


def make_arguments(length, dim=2):
    """Random hidden, alpha, beta, state_bias, gate_bias, a mask and an upstream."""
    rng = np.random.default_rng(length)
    mask = make_mask(length)
    arguments = (
        rng.normal(size=(*mask.shape, 2 * dim)),
        rng.normal(1.0, 0.5, dim),
        *rng.normal(0.0, 0.5, (3, dim)),
    )
    return arguments, mask, rng.normal(size=(*mask.shape, dim))


def equations(hidden, alpha, beta, state_bias, gate_bias, mask, step_size, gate):
    x1, x2 = np.split(hidden, 2, axis=-1)
    states = swish_states(x1, x2, alpha, beta, mask, step_size)
    sigma = {"gelu": numbers.gelu, "sigmoid": numbers.sigmoid}[gate]
    return (states + state_bias) * sigma(x2 + gate_bias)


def differences(arguments, mask, upstream, *options):
    """Gradients of the equations by finite differences."""

    def total(*arguments):
        return np.sum(equations(*arguments, mask, *options) * upstream)

    return [finite_differences(total, arguments, i) for i in range(len(NAMES))]


@functools.cache
def cached_differences(length, *options):
    return differences(*make_arguments(length), *options)


def outputs_and_gradients(arguments, mask, upstream, *options):
    arguments = [tf.convert_to_tensor(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = swish_rnn(*arguments, mask, *options)
    found = tape.gradient(outputs, arguments, tf.cast(upstream, outputs.dtype))
    return outputs, found


def assert_all_close(found, expected, tolerance):
    for name, one, other in zip(
        ("outputs", *NAMES),
        tf.nest.flatten(found),
        tf.nest.flatten(expected),
        strict=True,
    ):
        assert_close(one, other, tolerance, name)


@pytest.mark.parametrize(
    ("length", "step_size", "gate", "implementation"), CASES_AND_IMPLEMENTATIONS
)
def test_outputs_and_gradients_match_the_equations(
    length, step_size, gate, implementation
):
    options = (step_size, gate)
    arguments, mask, upstream = make_arguments(length)
    outputs, found = outputs_and_gradients(
        arguments, mask, upstream, *options, implementation
    )
    assert outputs.dtype == "float64"
    assert_close(outputs, equations(*arguments, mask, *options), 1e-12)
    wanted = cached_differences(length, *options)
    for name, gradient, difference in zip(NAMES, found, wanted, strict=True):
        assert np.any(difference != 0.0)
        assert_close(gradient, difference, 1e-7, f"gradient of {name}")


@pytest.mark.parametrize(
    ("length", "step_size", "gate"),
    [(13, 1, "gelu"), (13, 3, "sigmoid"), (2 * UNROLL, 2, "gelu")],
)
def test_implementations_agree_in_float32(length, step_size, gate):
    options = (step_size, gate)
    given, mask, upstream = make_arguments(length, dim=5)
    arguments = [argument.astype("float32") for argument in given]
    expected = outputs_and_gradients(arguments, mask, upstream, *options, "reference")
    assert_close(expected[0], equations(*given, mask, *options), 1e-5, "the reference")
    for implementation in ("loop", "xla"):
        found = outputs_and_gradients(
            arguments, mask, upstream, *options, implementation
        )
        assert found[0].dtype == "float32"
        assert_all_close(found, expected, 1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_bfloat16_is_rounded_once(implementation):
    """Computed in float32, then rounded: off by at most 2 ** -8 of each entry.

    So are the gradients of `hidden`; those of the vectors are float32 and exact to
    1e-5. Hence any two implementations agree to one step of bfloat16, 2 ** -7. Only the
    reference, where TensorFlow adds two gradients of `hidden` that were rounded before,
    is up to three such errors off, of the largest entry as the two may cancel.
    """
    options = (2, "gelu")
    arguments, mask, upstream = make_arguments(7)

    def in_bfloat16(x):
        return tf.cast(tf.cast(x, "bfloat16"), "float64").numpy()

    hidden, upstream = in_bfloat16(arguments[0]), in_bfloat16(upstream)
    exact = (hidden, *arguments[1:])
    given = (tf.cast(hidden, "bfloat16"), *(x.astype("float32") for x in exact[1:]))
    outputs, found = outputs_and_gradients(
        given, mask, upstream, *options, implementation
    )
    wanted = differences(exact, mask, upstream, *options)
    assert [x.dtype for x in (outputs, *found)] == ["bfloat16"] * 2 + ["float32"] * 4

    def assert_rounded_once(found, exact):
        error = np.abs(tf.cast(found, "float64") - exact)
        assert np.all(error <= 2.0**-8 * np.abs(exact) + 1e-5)

    assert_rounded_once(outputs, equations(*exact, mask, *options))
    if implementation == "reference":
        tolerance = 3 * 2.0**-8 * np.max(np.abs(wanted[0]))
        assert_close(tf.cast(found[0], "float64"), wanted[0], tolerance)
    else:
        assert_rounded_once(found[0], wanted[0])
    for name, one, other in zip(NAMES[1:], found[1:], wanted[1:], strict=True):
        assert_close(one, other, 1e-5, f"gradient of {name}")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_no_mask_is_a_mask_of_ones(implementation):
    arguments, mask, _ = make_arguments(7)
    outputs = swish_rnn(
        *map(tf.constant, arguments), None, 2, implementation=implementation
    )
    expected = equations(*arguments, np.ones_like(mask), 2, "gelu")
    assert_close(outputs, expected, 1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_masked_position_hands_the_state_on(implementation):
    (hidden, *vectors), _, _ = make_arguments(7)
    hidden[:, :, 2:] = hidden[:, :1, 2:]  # one x2 everywhere, so one open gate
    mask = np.array([[1, 1, 0, 0, 0, 0, 1]] * len(hidden))
    outputs = swish_rnn(
        *map(tf.constant, (hidden, *vectors)), mask, 2, implementation=implementation
    ).numpy()
    for i in (2, 4):
        assert_close(outputs[:, i], outputs[:, 0], 1e-12)
    for i in (3, 5):
        assert_close(outputs[:, i], outputs[:, 1], 1e-12)
    for i in (1, 6):
        assert np.all(np.abs(outputs[:, i] - outputs[:, 0]) > 1e-6)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_chains_of_a_step_size_do_not_mix(implementation):
    """With step size 3, position 1 reaches positions 4 and so on, no others."""
    (hidden, *vectors), _, _ = make_arguments(7)
    moved = hidden.copy()
    moved[:, 1] += 1.0
    before, after = (
        swish_rnn(
            *map(tf.constant, (x, *vectors)), None, 3, implementation=implementation
        ).numpy()
        for x in (hidden, moved)
    )
    changed = np.any(before != after, axis=(0, 2))
    assert list(changed) == [False, True, False, False, True, False, False]


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_compiled_equals_eager(implementation, jit_compile):
    arguments, mask, upstream = make_arguments(7)
    options = (4, "gelu", implementation)

    @tf.function(jit_compile=jit_compile)
    def compiled(arguments, mask, upstream):
        return outputs_and_gradients(arguments, mask, upstream, *options)

    tensors = [tf.convert_to_tensor(argument) for argument in arguments]
    found = compiled(tensors, tf.constant(mask), tf.constant(upstream))
    expected = outputs_and_gradients(arguments, mask, upstream, *options)
    assert_all_close(found, expected, 1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_batch_and_length_unknown_to_the_graph(implementation):
    vector = tf.TensorSpec((2,), "float64")
    spec = [
        [tf.TensorSpec((None, None, 4), "float64"), *[vector] * 4],
        tf.TensorSpec((None, None), "int32"),
        tf.TensorSpec((None, None, 2), "float64"),
    ]

    @tf.function(input_signature=spec)
    def compiled(arguments, mask, upstream):
        options = (3, "gelu", implementation)
        return outputs_and_gradients(arguments, mask, upstream, *options)

    for length in (3, 7):
        arguments, mask, upstream = make_arguments(length)
        tensors = [tf.constant(argument) for argument in arguments]
        outputs, found = compiled(tensors, tf.constant(mask), tf.constant(upstream))
        assert_close(outputs, equations(*arguments, mask, 3, "gelu"), 1e-12)
        wanted = cached_differences(length, 3, "gelu")
        for name, gradient, difference in zip(NAMES, found, wanted, strict=True):
            assert_close(gradient, difference, 1e-7, f"gradient of {name}")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_variables_get_the_gradients_of_tensors(implementation):
    (hidden, *vectors), mask, upstream = make_arguments(7)
    variables = [tf.Variable(vector) for vector in vectors]

    @tf.function
    def compiled(hidden):
        with tf.GradientTape() as tape:
            outputs = swish_rnn(hidden, *variables, mask, implementation=implementation)
        return tape.gradient(outputs, variables, tf.constant(upstream))

    _, (_, *expected) = outputs_and_gradients(
        (hidden, *vectors), mask, upstream, 1, "gelu", implementation
    )
    for one, other in zip(compiled(tf.constant(hidden)), expected, strict=True):
        assert_close(one, other, 1e-12)


def test_long_sequence_stays_finite_and_exact():
    """1,000 steps with swish and gates that saturate both ways."""
    rng = np.random.default_rng(3)
    hidden = rng.normal(0.0, 8.0, (2, 1000, 6))
    vectors = np.array([[5.0, -1.0, 0.1], [0.0, 3.0, -30.0], [1.0] * 3, [-2.0] * 3])
    mask = np.ones((2, 1000), "int32")
    upstream = rng.normal(size=(2, 1000, 3))
    expected = equations(hidden, *vectors, mask, 1, "gelu")

    @tf.function
    def run(implementation):
        options = (1, "gelu", implementation)
        return outputs_and_gradients((hidden, *vectors), mask, upstream, *options)

    _, wanted = run("reference")
    for implementation in IMPLEMENTATIONS:
        outputs, found = run(implementation)
        scale = np.max(np.abs(expected))
        assert_close(outputs / scale, expected / scale, 1e-12)
        for name, one, other in zip(NAMES, found, wanted, strict=True):
            scale = np.max(np.abs(other))
            assert_close(one / scale, other / scale, 1e-11, f"gradient of {name}")
