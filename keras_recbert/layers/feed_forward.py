"""Position-wise feed-forward sub-layer."""

import keras

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.dense import Dense
from keras_recbert.ops.implementation import check_implementation


@keras.saving.register_keras_serializable("keras_recbert")
class FeedForward(CheckedLayer):
    """`gelu(x W1 + b1) W2 + b2` with the exact (erf) GELU.

    Devlin et al. 2018, section 3 and appendix A.2.

    Args:
        intermediate_dim: int. Width between the two products.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: if `intermediate_dim` is not positive.
    """

    call_shapes = {"inputs": (..., "hidden_dim")}

    def __init__(self, intermediate_dim, implementation="auto", **kwargs):
        super().__init__(**kwargs)
        check_positive(intermediate_dim=intermediate_dim)
        check_implementation(implementation)
        self.intermediate_dim = intermediate_dim
        self.implementation = implementation

    def build(self, inputs_shape):
        def dense(units, activation, name):
            return Dense(
                units,
                activation=activation,
                kernel_initializer=bert_initializer(),
                implementation=self.implementation,
                dtype=self.dtype_policy,
                name=name,
            )

        self.intermediate_dense = dense(
            self.intermediate_dim, "gelu", "intermediate_dense"
        )
        self.output_dense = dense(inputs_shape[-1], None, "output_dense")
        self.intermediate_dense.build(inputs_shape)
        self.output_dense.build((*inputs_shape[:-1], self.intermediate_dim))
        self.built = True

    def call(self, inputs, training=None):
        hidden = self.intermediate_dense(inputs, training=training)
        return self.output_dense(hidden)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "implementation": self.implementation,
        }
