"""What ends every sub-layer, against Keras's dropout, sum and LayerNormalization."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, randomize

from keras_recbert.layers import AddNorm
from keras_recbert.ops.dropout import keep_mask

RNG = np.random.default_rng(0)
X, UPDATE, UPSTREAM = RNG.normal(size=(3, 4, 5, 12)).astype("float32")


def make_layer(**arguments):
    keras.utils.set_random_seed(0)
    layer = AddNorm(**arguments)
    layer.build(X.shape)
    randomize(layer)
    return layer


def like_keras(layer):
    """Keras's LayerNormalization with the same weights."""
    norm = keras.layers.LayerNormalization(epsilon=1e-12)
    norm.build(X.shape)
    norm.set_weights(layer.get_weights())
    return norm


def outputs_and_gradients(function, weights):
    x, update = tf.constant(X), tf.constant(UPDATE)
    with tf.GradientTape() as tape:
        tape.watch([x, update])
        outputs = function(x, update)
    sources = [x, update, *(weight.value for weight in weights)]
    return [outputs, *tape.gradient(outputs, sources, UPSTREAM)]


@pytest.mark.parametrize("implementation", ["auto", "reference", "loop", "xla"])
def test_equals_keras(implementation):
    layer = make_layer(dropout=0.3, implementation=implementation)
    norm = like_keras(layer)
    found = outputs_and_gradients(layer, layer.weights)
    expected = outputs_and_gradients(lambda x, update: norm(x + update), norm.weights)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.parametrize("implementation", ["auto", "xla"])
def test_training_equals_keras_after_the_same_dropout(implementation):
    layer = make_layer(dropout=0.4, implementation=implementation)
    norm = like_keras(layer)
    for _ in range(2):  # each call drops something else
        seed = layer.seed_generator.state.value.numpy().astype("int32")
        keep, scale = keep_mask(X.shape, 0.4, seed)
        assert np.any(keep)
        assert not np.all(keep)

        def expected_outputs(x, update, keep=keep, scale=scale):
            return norm(x + tf.where(keep, scale * update, 0.0))

        found = outputs_and_gradients(
            lambda x, update: layer(x, update, training=True), layer.weights
        )
        expected = outputs_and_gradients(expected_outputs, norm.weights)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, 1e-5)


def test_only_the_update_is_dropped():
    layer = make_layer(dropout=0.999)
    outputs = layer(X, UPDATE, training=True)
    untouched = np.mean(
        np.abs(outputs - like_keras(layer)(X)).max(axis=-1) < 1e-5
    )  # rows that kept nothing of their update
    assert untouched > 0.8


def test_bfloat16_is_computed_in_float32():
    """From the rounded inputs on: off by the rounding of the outputs, 2 ** -8."""
    layer = make_layer()
    mixed = make_layer(dtype="mixed_bfloat16")
    mixed.set_weights(layer.get_weights())
    outputs = mixed(X, UPDATE)
    assert outputs.dtype == "bfloat16"
    rounded = [tf.cast(tf.cast(it, "bfloat16"), "float32") for it in (X, UPDATE)]
    exact = layer(*rounded).numpy()
    error = np.abs(tf.cast(outputs, "float32") - exact)
    assert np.all(error <= 2.0**-8 * np.abs(exact) + 1e-5)


def test_weights_bear_the_names_of_keras():
    layer = AddNorm(name="norm")
    norm = keras.layers.LayerNormalization(name="norm")
    for it in (layer, norm):
        it.build(X.shape)
    assert [it.path for it in layer.weights] == [it.path for it in norm.weights]


def test_epsilon_is_that_of_bert():
    assert AddNorm().epsilon == 1e-12
    assert AddNorm(epsilon=1e-6).get_config()["epsilon"] == 1e-6


def test_config_round_trip():
    layer = AddNorm(0.3, "loop", epsilon=1e-6, name="norm")
    config = layer.get_config()
    assert (config["dropout"], config["implementation"]) == (0.3, "loop")
    assert AddNorm.from_config(config).get_config() == config
    layer.build(X.shape)  # which Keras lets change its axis
    clone = AddNorm.from_config(layer.get_config())
    clone.build(X.shape)
    clone.set_weights(layer.get_weights())
    assert_close(clone(X, UPDATE), layer(X, UPDATE), 0.0)


def test_bad_arguments_are_told():
    for rate in (-0.1, 1.0, "0.1"):
        with pytest.raises(ValueError, match=r"`dropout` must be a number in \[0, 1\)"):
            AddNorm(rate)
    with pytest.raises(ValueError, match="must be one of auto, .*: impl.*='fast'"):
        AddNorm(implementation="fast")
