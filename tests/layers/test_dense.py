"""The Dense of this package is the one of Keras, arranged for oneDNN."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference, randomize

from keras_recbert.layers import Dense

SHAPES = {2: (4, 6), 3: (2, 3, 6), 4: (2, 3, 2, 6)}


def cubed(x):
    return x * x * x


def pair(shape=SHAPES[3], **arguments):
    """Ours and Keras's with the same weights."""
    layers = []
    for cls in (Dense, keras.layers.Dense):
        keras.utils.set_random_seed(0)
        layer = cls(5, **arguments)
        layer.build(shape)
        randomize(layer)
        layers.append(layer)
    return layers


def outputs_and_gradients(layer, inputs, upstream, **arguments):
    """Of the weights in their order, then of the inputs."""
    inputs = tf.convert_to_tensor(inputs)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, **arguments)
    sources = [weight.value for weight in layer.trainable_weights] + [inputs]
    return outputs, tape.gradient(outputs, sources, tf.cast(upstream, outputs.dtype))


def assert_equal(ours, keras_layer, shape, tolerance=1e-5, dtype="float32", **given):
    rng = np.random.default_rng(1)
    inputs = tf.constant(rng.normal(size=shape), dtype)
    upstream = rng.normal(size=(*shape[:-1], 5))
    found, of_keras = (
        tf.nest.flatten(outputs_and_gradients(layer, inputs, upstream, **arguments))
        for layer, arguments in ((ours, given), (keras_layer, {}))
    )
    assert found[0].shape == (*shape[:-1], 5)
    for one, other in zip(found, of_keras, strict=True):
        assert one.dtype == other.dtype
        one, other = (tf.cast(it, "float64") for it in (one, other))
        assert np.any(other != 0.0)
        assert_close(one, other, tolerance * max(1.0, np.max(np.abs(other))))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("activation", [None, "gelu", "tanh", cubed])
@pytest.mark.parametrize("rank", SHAPES)
def test_equals_keras(rank, activation, use_bias, training):
    arguments = {"activation": activation, "use_bias": use_bias}
    ours, of_keras = pair(SHAPES[rank], **arguments)
    assert_equal(ours, of_keras, SHAPES[rank], training=training)


@pytest.mark.parametrize("implementation", ["reference", "loop", "xla"])
def test_every_implementation_equals_keras(implementation):
    ours, of_keras = pair(activation="gelu")
    ours.implementation = implementation
    assert_equal(ours, of_keras, SHAPES[3], training=True)


@pytest.mark.parametrize("training", [False, True])
def test_bfloat16_equals_keras(training):
    """To a few roundings: Keras's GELU rounds each of its steps to bfloat16."""
    ours, of_keras = pair(activation="gelu", dtype="mixed_bfloat16")
    assert ours.kernel.dtype == "float32"
    assert_equal(ours, of_keras, SHAPES[3], 0.02, training=training)
    ours, of_keras = pair(dtype="mixed_bfloat16")
    assert_equal(ours, of_keras, SHAPES[3], 0.0, training=training)


def test_shapes_unknown_to_the_graph():
    ours, of_keras = pair(activation="gelu")
    spec = tf.TensorSpec((None, None, 6))
    compiled = tf.function(lambda x: ours(x, training=True), input_signature=[spec])
    for shape in ((2, 3, 6), (4, 1, 6)):
        inputs = np.random.default_rng(2).normal(size=shape).astype("float32")
        assert_close(compiled(inputs), of_keras(inputs), 1e-5)
    assert compiled.get_concrete_function().output_shapes.as_list() == [None, None, 5]


def test_lora_adapts_it_as_it_adapts_that_of_keras():
    ours, of_keras = pair(activation="gelu")
    inputs = np.random.default_rng(3).normal(size=SHAPES[3]).astype("float32")
    before = ours(inputs)
    for layer in (ours, of_keras):
        layer.enable_lora(2)
    assert_close(ours(inputs), before, 1e-6)  # it starts at no change
    randomize(ours, seed=5)
    of_keras.set_weights(ours.get_weights())
    assert largest_difference(ours(inputs), before) > 0.1
    assert [weight.name for weight in ours.trainable_weights] == [
        weight.name for weight in of_keras.trainable_weights
    ]
    assert len(ours.trainable_weights) == 3  # bias, A and B
    assert_equal(ours, of_keras, SHAPES[3], training=True)


def test_kernel_and_bias_bear_the_names_of_keras():
    ours, of_keras = pair(name="dense")
    assert [weight.path for weight in ours.weights] == [
        weight.path for weight in of_keras.weights
    ]


def test_config_round_trip():
    layer = Dense(
        5,
        activation="gelu",
        use_bias=False,
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
        implementation="loop",
    )
    config = layer.get_config()
    assert config["implementation"] == "loop"
    clone = Dense.from_config(config)
    assert clone.get_config() == config
    assert clone.activation is keras.activations.gelu
    assert clone.implementation == "loop"
    assert not clone.use_bias


def test_unknown_implementation_is_told():
    with pytest.raises(ValueError, match="must be one of auto, .*: impl.*='fast'"):
        Dense(5, implementation="fast")
