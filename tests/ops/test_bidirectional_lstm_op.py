"""Every implementation of the BiLSTM against float64 loops of the textbook's."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from reference import lstm
from reference.numbers import finite_differences

from keras_recbert.ops.bidirectional_lstm import bidirectional_lstm

IMPLEMENTATIONS = ("reference", "loop", "packed", "xla")
NAMES = ("inputs", "kernel", "recurrent_kernel", "bias")
UNITS = 2


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


def make_arguments(length, units=UNITS, input_dim=3):
    """Random inputs, kernel, recurrent kernel and bias, a mask, and an upstream."""
    rng = np.random.default_rng(length)
    mask = make_mask(length)
    arguments = (
        rng.normal(size=(*mask.shape, input_dim)),
        rng.normal(size=(input_dim, 8 * units)),
        rng.normal(size=(2, units, 4 * units)),
        rng.normal(size=(2, 4 * units)),
    )
    return arguments, mask, rng.normal(size=(*mask.shape, 2 * units))


def equations(inputs, kernel, recurrent_kernel, bias, mask):
    gates = inputs @ kernel + bias.reshape(-1)
    gates = gates.reshape(*mask.shape, 2, -1)
    return lstm.bidirectional_lstm(gates, recurrent_kernel, mask)


@functools.cache
def equations_and_differences(length):
    """Outputs of the equations and their gradients by finite differences."""
    arguments, mask, upstream = make_arguments(length)

    def total(*arguments):
        return np.sum(equations(*arguments, mask) * upstream)

    found = [finite_differences(total, arguments, index) for index in range(4)]
    return equations(*arguments, mask), found


def outputs_and_gradients(arguments, mask, upstream, implementation, **options):
    arguments = [tf.convert_to_tensor(argument) for argument in arguments]
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        outputs = bidirectional_lstm(
            *arguments, mask, implementation=implementation, **options
        )
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


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("length", [1, 3, 7])
def test_outputs_and_gradients_match_the_equations(length, implementation):
    arguments, mask, upstream = make_arguments(length)
    outputs, found = outputs_and_gradients(arguments, mask, upstream, implementation)
    expected, differences = equations_and_differences(length)
    assert outputs.dtype == "float64"
    assert_close(outputs, expected, 1e-12)
    for name, gradient, difference in zip(NAMES, found, differences, strict=True):
        # One step from a state of zeros: the recurrent kernel has nothing to do.
        assert np.any(difference != 0.0) == (name != "recurrent_kernel" or length > 1)
        assert_close(gradient, difference, 1e-7, f"gradient of {name}")


@pytest.mark.parametrize("length", [1, 13])
def test_implementations_agree_in_float32(length):
    *given, mask, upstream = make_arguments(length, units=5, input_dim=4)
    arguments = [argument.astype("float32") for argument in given[0]]
    expected = outputs_and_gradients(arguments, mask, upstream, "reference")
    assert_close(expected[0], equations(*given[0], mask), 1e-5, "the reference")
    for implementation in IMPLEMENTATIONS[1:]:
        found = outputs_and_gradients(arguments, mask, upstream, implementation)
        assert found[0].dtype == "float32"
        assert_all_close(found, expected, 1e-5)


def test_recurrence_of_bfloat16_inputs_is_float32():
    """bfloat16 rounds the gates, once, before the implementations part.

    So with gates rounded that way the float64 loops give the same to 1e-5, where a
    recurrence in bfloat16 would be off by 1e-2. Backwards the gradient of the gates is
    rounded to bfloat16 before it meets inputs, kernel and bias. Where float32 noise
    tips that rounding, neighbours differ by up to 2 ** -7 of themselves. For the
    gradient of the recurrent kernel, which the reference sums in float32, the others
    round both factors and the product, each by up to 2 ** -8.
    """
    (inputs, kernel, *others), mask, upstream = make_arguments(7)
    inputs = tf.constant(inputs, "bfloat16")
    arguments = [inputs, *(x.astype("float32") for x in (kernel, *others))]
    recurrent_kernel, bias = others

    rows = tf.matmul(tf.reshape(inputs, [-1, 3]), tf.cast(kernel, "bfloat16"))
    rows += tf.cast(bias.reshape(-1), "bfloat16")
    gates = tf.cast(rows, "float64").numpy().reshape(*mask.shape, 2, 4 * UNITS)
    expected = lstm.bidirectional_lstm(gates, recurrent_kernel, mask)

    all_found = {
        implementation: outputs_and_gradients(arguments, mask, upstream, implementation)
        for implementation in IMPLEMENTATIONS
    }
    wanted = all_found["reference"][1]
    for outputs, found in all_found.values():
        assert outputs.dtype == "float32"
        assert_close(outputs, expected, 1e-5)
        for name, gradient, other in zip(NAMES, found, wanted, strict=True):
            assert gradient.dtype == ("bfloat16" if name == "inputs" else "float32")
            gradient, other = (tf.cast(x, "float64") for x in (gradient, other))
            scale = np.max(np.abs(other))
            relative = (3 if name == "recurrent_kernel" else 2) * 2.0**-8
            assert_close(gradient, other, relative * scale, f"gradient of {name}")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_no_mask_is_a_mask_of_ones(implementation):
    arguments, mask, _ = make_arguments(7)
    outputs = bidirectional_lstm(
        *map(tf.constant, arguments), implementation=implementation
    )
    assert_close(outputs, equations(*arguments, np.ones_like(mask)), 1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_backward_pass_starts_at_the_last_real_token(implementation):
    (inputs, *weights), _, _ = make_arguments(7)
    weights = [tf.constant(weight) for weight in weights]
    mask = np.array([[1, 1, 1, 0, 0, 0, 0]] * len(inputs))
    padded = bidirectional_lstm(inputs, *weights, mask, implementation)
    cut = bidirectional_lstm(
        inputs[:, :3], *weights, mask[:, :3], implementation=implementation
    )
    assert_close(padded[:, :3], cut, 1e-12)
    np.testing.assert_array_equal(padded[:, 3:], 0.0)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_backwards_is_forwards_of_the_reversed_sequence(implementation):
    (inputs, kernel, recurrent_kernel, bias), mask, _ = make_arguments(7)

    def run(inputs, kernel, recurrent_kernel, bias, mask):
        return bidirectional_lstm(
            *map(tf.constant, (inputs, kernel, recurrent_kernel, bias)),
            mask,
            implementation,
        ).numpy()

    outputs = run(inputs, kernel, recurrent_kernel, bias, mask)
    swapped = run(
        inputs[:, ::-1],
        np.roll(kernel, 4 * UNITS, axis=1),
        recurrent_kernel[::-1],
        bias[::-1],
        mask[:, ::-1],
    )[:, ::-1]
    assert_close(swapped[:, :, :UNITS], outputs[:, :, UNITS:], 1e-12)
    assert_close(swapped[:, :, UNITS:], outputs[:, :, :UNITS], 1e-12)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3), (1, 1), (2, 0)])
def test_packed_rows_may_have_no_token(shape):
    arguments = [tf.constant(one) for one in make_arguments(3)[0][1:]]
    none = tf.ones((*shape, 3), tf.float64), *arguments, np.zeros(shape, bool)
    outputs = bidirectional_lstm(*none, implementation="packed")
    np.testing.assert_array_equal(outputs, np.zeros((*shape, 2 * UNITS)))


@pytest.mark.parametrize("implementation", ["loop", "xla"])
def test_gradients_need_no_kept_states(implementation):
    arguments, mask, upstream = make_arguments(7)
    kept, not_kept = (
        outputs_and_gradients(arguments, mask, upstream, implementation, keep_states=it)
        for it in (True, False)
    )
    assert_all_close(not_kept, kept, 1e-12)


def test_states_are_kept_only_if_asked():
    """What the graph of a training step hands from forwards to backwards."""
    arguments, mask, _ = make_arguments(7)

    def stacked(keep_states):
        graph = tf.Graph()
        with graph.as_default():
            bidirectional_lstm(
                *map(tf.constant, arguments), mask, keep_states=keep_states
            )
        return [op.type for op in graph.get_operations()].count("TensorListStack")

    # Of each direction: the hidden states; the cells' and the gates as well.
    assert (stacked(False), stacked(True)) == (2, 6)


COMPILED = [(name, xla) for name in IMPLEMENTATIONS for xla in (False, True)]
COMPILED.remove(("packed", True))  # the rows of its steps have no fixed number


@pytest.mark.parametrize(("implementation", "jit_compile"), COMPILED)
def test_compiled_equals_eager(implementation, jit_compile):
    arguments, mask, upstream = make_arguments(7)

    @tf.function(jit_compile=jit_compile)
    def compiled(arguments, mask, upstream):
        return outputs_and_gradients(arguments, mask, upstream, implementation)

    tensors = [tf.convert_to_tensor(argument) for argument in arguments]
    found = compiled(tensors, tf.constant(mask), tf.constant(upstream))
    expected = outputs_and_gradients(arguments, mask, upstream, implementation)
    assert_all_close(found, expected, 1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_batch_and_length_unknown_to_the_graph(implementation):
    spec = [
        [
            tf.TensorSpec((None, None, 3), "float64"),
            tf.TensorSpec((3, 8 * UNITS), "float64"),
            tf.TensorSpec((2, UNITS, 4 * UNITS), "float64"),
            tf.TensorSpec((2, 4 * UNITS), "float64"),
        ],
        tf.TensorSpec((None, None), "int32"),
        tf.TensorSpec((None, None, 2 * UNITS), "float64"),
    ]

    @tf.function(input_signature=spec)
    def compiled(arguments, mask, upstream):
        return outputs_and_gradients(arguments, mask, upstream, implementation)

    for length in (3, 7):
        arguments, mask, upstream = make_arguments(length)
        tensors = [tf.constant(argument) for argument in arguments]
        found = compiled(tensors, tf.constant(mask), tf.constant(upstream))
        expected = outputs_and_gradients(arguments, mask, upstream, "reference")
        assert_all_close(found, expected, 1e-12)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_variables_get_the_gradients_of_tensors(implementation):
    (inputs, *weights), mask, upstream = make_arguments(7)
    variables = [tf.Variable(weight) for weight in weights]

    @tf.function
    def compiled(inputs):
        with tf.GradientTape() as tape:
            outputs = bidirectional_lstm(inputs, *variables, mask, implementation)
        return tape.gradient(outputs, variables, tf.constant(upstream))

    _, (_, *expected) = outputs_and_gradients(
        (inputs, *weights), mask, upstream, implementation
    )
    for one, other in zip(compiled(tf.constant(inputs)), expected, strict=True):
        assert_close(one, other, 1e-12)
