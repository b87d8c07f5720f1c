"""The Dropout of this package against what that of Keras promises."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.layers import Dropout

INPUTS = np.random.default_rng(0).normal(size=(64, 33, 17)).astype("float32")


@pytest.mark.parametrize("implementation", ["auto", "loop", "xla"])
def test_what_is_kept_is_scaled_and_the_rest_is_zero(implementation):
    layer = Dropout(0.3, implementation=implementation, seed=1)
    outputs = layer(INPUTS, training=True).numpy()
    kept = outputs != 0.0
    assert_close(outputs, np.where(kept, INPUTS / 0.7, 0.0), 1e-3)
    deviation = (0.3 * 0.7 / INPUTS.size) ** 0.5
    assert abs(np.mean(kept) - 0.7) <= 5 * deviation


def test_nothing_is_dropped_outside_of_training_or_at_rate_zero():
    for layer, arguments in (
        (Dropout(0.5), {}),
        (Dropout(0.5), {"training": False}),
        (Dropout(0.0), {"training": True}),
    ):
        np.testing.assert_array_equal(layer(INPUTS, **arguments), INPUTS)


def test_each_call_drops_something_else_and_a_seed_repeats_it():
    first, second = Dropout(0.5, seed=3), Dropout(0.5, seed=3)
    calls = [first(INPUTS, training=True).numpy() for _ in range(2)]
    assert 0.4 < np.mean((calls[0] == 0.0) == (calls[1] == 0.0)) < 0.6
    for outputs in calls:
        np.testing.assert_array_equal(second(INPUTS, training=True), outputs)


def test_each_step_of_a_compiled_function_drops_something_else():
    layer = Dropout(0.5, seed=3)
    compiled = tf.function(lambda x: layer(x, training=True))
    calls = [compiled(INPUTS).numpy() for _ in range(2)]
    assert 0.4 < np.mean((calls[0] == 0.0) == (calls[1] == 0.0)) < 0.6
    eager = Dropout(0.5, seed=3)
    np.testing.assert_array_equal(eager(INPUTS, training=True), calls[0])


@pytest.mark.parametrize("implementation", ["loop", "xla"])
def test_gradient_flows_where_outputs_do(implementation):
    layer = Dropout(0.3, implementation=implementation)
    inputs, upstream = tf.constant(INPUTS), tf.constant(INPUTS[::-1].copy())
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, training=True)
    gradient = tape.gradient(outputs, inputs, upstream)
    scale = 65536 / (65536 - round(0.3 * 65536))
    expected = np.where(outputs != 0.0, scale * upstream, 0.0)
    assert_close(gradient, expected, 1e-5)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_mean_is_that_of_keras_in_bfloat16_too(rate):
    ones = np.ones((1000, 1000), "float32")
    for cls in (Dropout, keras.layers.Dropout):
        outputs = cls(rate, seed=1, dtype="mixed_bfloat16")(ones, training=True)
        assert outputs.dtype == "bfloat16"
        # The scale is rounded to bfloat16: 1 / 0.9 by 1.6e-3.
        mean = np.mean(tf.cast(outputs, "float32"))
        noise = 5 * (rate / (1 - rate)) ** 0.5 / 1000
        assert abs(mean - 1.0) <= noise + 2.0**-9


def test_config_round_trip():
    config = Dropout(0.3, implementation="loop", seed=7).get_config()
    assert (config["rate"], config["implementation"]) == (0.3, "loop")
    clone = Dropout.from_config(config)
    assert clone.get_config() == config


def test_bad_arguments_are_told():
    with pytest.raises(ValueError, match="must be one of auto, .*: impl.*='fast'"):
        Dropout(0.5, implementation="fast")
    with pytest.raises(ValueError, match="rate"):
        Dropout(-0.1)
