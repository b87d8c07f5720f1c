"""What ends every sub-layer of an encoder."""

import keras
from keras import ops

from keras_recbert.core.checks import check_rate
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.explain_row import chosen_row
from keras_recbert.ops.add_norm import add_norm
from keras_recbert.ops.dropout import keep_mask
from keras_recbert.ops.implementation import check_implementation, use_xla


@keras.saving.register_keras_serializable("keras_recbert")
class AddNorm(CheckedLayer):
    """`LayerNorm(x + dropout(update))`: dropout, residual and LayerNorm in one.

    Devlin et al. 2018, section 3 (the frame of Vaswani et al. 2017, section 5.4).
    Computed in float32 in every precision.

    Args:
        dropout: float. Dropout rate of the update.
        implementation: str. See `keras_recbert.ops.implementation`.
        epsilon: float. Added to the variance.

    Call arguments:
        x: float, `(batch_size, sequence_length, dim)`. The residual. Its Keras mask
            is passed on.
        update: float, shape of `x`.

    Returns:
        float, shape of `x`.

    Raises:
        ValueError: if `dropout` is not in [0, 1) or `implementation` is unknown.
    """

    call_shapes = {"x": (..., "dim"), "update": (..., "dim")}
    built_axis = "dim"

    def __init__(self, dropout=0.0, implementation="auto", epsilon=1e-12, **kwargs):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        check_implementation(implementation)
        self.dropout_rate = dropout
        self.implementation = implementation
        self.epsilon = epsilon
        if dropout:
            self.seed_generator = keras.random.SeedGenerator()

    def build(self, x_shape, update_shape=None):
        def vector(name, initializer):
            return self.add_float32_weight((x_shape[-1],), initializer, name)

        self.gamma, self.beta = vector("gamma", "ones"), vector("beta", "zeros")
        self.built = True

    def call(self, x, update, training=None):
        keep, scale = None, 1.0
        if training and self.dropout_rate:
            seed = self.seed_generator.next()
            keep, scale = keep_mask(ops.shape(update), self.dropout_rate, seed)
        xla = use_xla(self.implementation, x.shape[-1])
        return add_norm(
            x, update, self.gamma, self.beta, keep, scale, self.epsilon, xla
        )

    def compute_output_shape(self, x_shape, update_shape=None):
        return x_shape

    def explain_row(self):
        """What runs, see `keras_recbert.explain`."""
        what = "dropout, residual, LayerNorm"
        if not self.dropout_rate:
            what = "residual, LayerNorm"
        return chosen_row(what, self.implementation, self.gamma.shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "dropout": self.dropout_rate,
            "implementation": self.implementation,
            "epsilon": self.epsilon,
        }
