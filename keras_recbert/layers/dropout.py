"""Dropout whose random numbers cost little."""

import keras
from keras import ops

from keras_recbert.core.checks import check_rate
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.ops.dropout import drop, keep_mask
from keras_recbert.ops.implementation import check_implementation, use_xla


@keras.saving.register_keras_serializable("keras_recbert")
class Dropout(CheckedLayer):
    """As `keras.layers.Dropout`, from 16 random bits an element.

    The rate is met to 1 / 65,536. What is kept is scaled by the inverse of its share,
    rounded to the precision.

    Args:
        rate: float in [0, 1). Dropout rate.
        implementation: str. See `keras_recbert.ops.implementation`.
        seed: optional int. Seed of the masks; by default that of Keras.

    Call arguments, returns: as `keras.layers.Dropout`.

    Raises:
        ValueError: if `rate` is not in [0, 1) or `implementation` is unknown.
    """

    call_shapes = {"inputs": (...,)}
    built_axis = None

    def __init__(self, rate, implementation="auto", seed=None, **kwargs):
        super().__init__(**kwargs)
        check_rate(rate=rate)
        check_implementation(implementation)
        self.rate = rate
        self.implementation = implementation
        self.seed = seed
        if rate:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.built = True

    def call(self, inputs, training=None):
        if not training or not self.rate:
            return inputs
        seed = self.seed_generator.next()
        keep, scale = keep_mask(ops.shape(inputs), self.rate, seed)
        xla = use_xla(self.implementation, inputs.shape[-1] or 0)
        return drop(inputs, keep, scale, xla)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "rate": self.rate,
            "implementation": self.implementation,
            "seed": self.seed,
        }
