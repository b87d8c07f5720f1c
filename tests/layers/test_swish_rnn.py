"""SwishRNN against equations 2 to 4 of Lei et al. 2022."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference.swish_rnn import swish_rnn

from keras_recbert.layers import SwishRNN

INPUTS = np.random.default_rng(0).normal(size=(4, 7, 6))
PADDING_MASK = ragged_mask((7, 4, 1, 0), 7)


def make_layer(**arguments):
    keras.utils.set_random_seed(0)
    layer = SwishRNN(**{"recurrent_dim": 5, **arguments})
    layer.build(INPUTS.shape)
    randomize(layer)
    return layer


@pytest.mark.parametrize("gate", ["gelu", "sigmoid"])
@pytest.mark.parametrize("step_size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_outputs_match_the_equations(gate, step_size, dtype):
    # TensorFlow's GELU knows the root of 2 in float32 only, whatever its input.
    double = {"gelu": 1e-7, "sigmoid": 1e-12}[gate]
    tolerance = double if dtype == "float64" else 1e-5
    layer = make_layer(gate=gate, step_size=step_size, dtype=dtype)
    expected = swish_rnn(
        INPUTS, weights_of.swish_rnn(layer), PADDING_MASK, step_size, gate
    )
    outputs = layer(INPUTS.astype(dtype), PADDING_MASK)
    assert outputs.dtype == dtype
    assert_close(outputs, expected, tolerance)


def test_hole_in_the_mask_is_skipped():
    mask = np.array([[1, 0, 1, 1, 0, 0, 1]] * 4)
    layer = make_layer(dtype="float64", gate="sigmoid")
    expected = swish_rnn(INPUTS, weights_of.swish_rnn(layer), mask, 1, "sigmoid")
    assert_close(layer(INPUTS, mask), expected, 1e-12)
    # The state carried past a hole is that of the sequence without it.
    kept = layer(INPUTS[:, [0, 2, 3, 6]])
    assert_close(layer(INPUTS, mask)[:, 6], kept[:, 3], 1e-12)


def test_starting_values_are_those_of_the_paper():
    layer = SwishRNN(5)
    layer.build((None, None, 6))
    np.testing.assert_array_equal(layer.alpha, 1.0)
    for vector in (layer.beta, layer.state_bias, layer.gate_bias):
        np.testing.assert_array_equal(vector, 0.0)


def test_number_of_weights_is_that_of_the_paper():
    """Three matrices, alpha, beta, b_c, b_sigma of width d', and b_3."""
    layer = SwishRNN(2048)
    with keras.StatelessScope(initialize_variables=False):
        layer.build((None, None, 768))
        assert layer.count_params() == 3 * 768 * 2048 + 4 * 2048 + 768


def test_recurrence_keeps_float32_under_a_mixed_policy():
    """Two hundred steps in bfloat16 would drift by far more than one rounding."""
    inputs = np.random.default_rng(1).normal(size=(2, 200, 6)).astype("float32")
    layer = make_layer()
    mixed = make_layer(dtype="mixed_bfloat16")
    mixed.set_weights(layer.get_weights())
    # What enters the recurrence is rounded for both, so only the recurrence differs.
    for one in (layer, mixed):
        for dense in (one.input_dense, one.output_dense):
            kernel = keras.ops.cast(keras.ops.cast(dense.kernel, "bfloat16"), "float32")
            dense.kernel.assign(kernel)
    seen = {}

    def spy(name):
        def output_dense(gated):
            seen[name] = np.array(keras.ops.cast(gated, "float32"))
            return gated

        return output_dense

    hidden = keras.ops.cast(mixed.input_dense(inputs), "float32")
    layer.input_dense = lambda _: hidden
    layer.output_dense, mixed.output_dense = spy("single"), spy("mixed")
    layer(inputs)
    mixed(inputs)
    rounding = np.abs(seen["single"]) * 2.0**-8
    assert np.all(np.abs(seen["mixed"] - seen["single"]) <= rounding + 1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recurrent_dim": 0}, "`recurrent_dim` must be a whole number of at least 1"),
        ({"step_size": 0}, "`step_size` must be a whole number of at least 1"),
        ({"step_size": True}, "Received: step_size=True"),
        ({"step_size": 2.0}, "Received: step_size=2.0"),
        ({"gate": "relu"}, "must be one of .'gelu', 'sigmoid'.. Received: gate='relu'"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SwishRNN(**{"recurrent_dim": 5, **arguments})
