"""BidirectionalLSTM against the equations and against Keras's own layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import weights_of
from harness import assert_close, ragged_mask, randomize
from reference.trans_blstm import blstm

from keras_recbert.layers import BidirectionalLSTM

INPUTS = np.random.default_rng(0).normal(size=(4, 7, 6))
PADDING_MASK = ragged_mask((7, 4, 2, 1), 7)
UNITS = 5


def make_layer(**arguments):
    keras.utils.set_random_seed(0)
    layer = BidirectionalLSTM(UNITS, **arguments)
    layer.build(INPUTS.shape)
    randomize(layer)
    return layer


@pytest.mark.parametrize(
    "mask",
    [PADDING_MASK, np.eye(4, 7, 2), 1 - PADDING_MASK],
    ids=["ragged", "one token", "left padding and an empty row"],
)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)]
)
def test_outputs_match_the_equations(mask, dtype, tolerance):
    layer = make_layer(dtype=dtype)
    expected = blstm(INPUTS, weights_of.bidirectional_lstm(layer), mask)
    outputs = layer(INPUTS.astype(dtype), mask)
    assert outputs.dtype == dtype
    assert_close(outputs, expected, tolerance)


@pytest.mark.parametrize("masked", [True, False])
def test_equals_the_bidirectional_lstm_of_keras(masked):
    layer = make_layer()
    theirs = keras.layers.Bidirectional(
        keras.layers.LSTM(UNITS, return_sequences=True, use_cudnn=False)
    )
    theirs.build(INPUTS.shape)
    kernels = np.split(layer.kernel.numpy(), 2, axis=1)
    for d, direction in enumerate((theirs.forward_layer, theirs.backward_layer)):
        direction.cell.kernel.assign(kernels[d])
        direction.cell.recurrent_kernel.assign(layer.recurrent_kernel[d])
        direction.cell.bias.assign(layer.bias[d])

    mask = PADDING_MASK if masked else np.ones_like(PADDING_MASK)
    inputs = tf.constant(INPUTS, "float32")
    factors = np.random.default_rng(1).normal(size=(4, 7, 2 * UNITS))
    factors = tf.constant(factors * mask[:, :, None], "float32")

    def outputs_and_gradients(layer, *args, **kwargs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs, *args, **kwargs) * mask[:, :, None]
            total = tf.reduce_sum(outputs * factors)
        weights = [weight.value for weight in layer.trainable_weights]
        return outputs, *tape.gradient(total, [inputs, *weights])

    outputs, dx, dkernel, drecurrent, dbias = outputs_and_gradients(
        layer, mask if masked else None
    )
    expected, expected_dx, *rest = outputs_and_gradients(
        theirs, mask=tf.constant(mask, "bool")
    )
    assert_close(outputs, expected, 1e-6, "outputs")
    assert_close(dx, expected_dx, 1e-5, "gradients of the inputs")
    forward, backward = rest[:3], rest[3:]
    dkernels = np.split(dkernel, 2, axis=1)
    for d, direction in enumerate((forward, backward)):
        ours = (dkernels[d], drecurrent[d], dbias[d])
        names = ("kernel", "recurrent kernel", "bias")
        for name, one, other in zip(names, ours, direction, strict=True):
            assert_close(one, other, 1e-5, f"gradients of the {name}")


def test_starting_values():
    """Glorot's range of one direction for both kernels; forget gates lean to 1."""
    keras.utils.set_random_seed(1)
    layer = BidirectionalLSTM(40)
    layer.build((None, None, 30))
    for kernel, fan_in in ((layer.kernel, 30), (layer.recurrent_kernel, 40)):
        limit = np.sqrt(6.0 / (fan_in + 4 * 40))
        kernel = kernel.numpy()
        assert 0.99 * limit < np.max(np.abs(kernel)) <= limit
        assert abs(np.mean(kernel)) < 0.05 * limit
    expected = [[0] * 40 + [1] * 40 + [0] * 80] * 2
    np.testing.assert_array_equal(layer.bias.numpy(), expected)


def test_row_of_padding_gives_zeros_and_moves_no_weight():
    layer = make_layer()
    mask = np.zeros((4, 7), "int32")
    with tf.GradientTape() as tape:
        outputs = layer(INPUTS, mask)
        total = tf.reduce_sum(outputs)
    np.testing.assert_array_equal(outputs, 0.0)
    for gradient in tape.gradient(total, [w.value for w in layer.weights]):
        np.testing.assert_array_equal(gradient, 0.0)


def test_graph_holds_no_fused_lstm_op():
    """A cuDNN op in a SavedModel would tie it to the device that wrote it."""
    layer = make_layer()
    call = tf.function(lambda x, mask: layer(x, mask))
    graph = call.get_concrete_function(
        tf.TensorSpec((None, None, 6)), tf.TensorSpec((None, None), "int32")
    ).graph
    functions = graph.as_graph_def().library.function
    ops = {op.type for op in graph.get_operations()}
    ops |= {node.op for function in functions for node in function.node_def}
    assert "While" in ops or "StatelessWhile" in ops
    assert not [op for op in ops if "cudnn" in op.lower() or "LSTM" in op]


def test_impossible_units():
    message = "`units` must be a whole number of at least 1. Received: units=-3."
    with pytest.raises(ValueError, match=message):
        BidirectionalLSTM(-3)
