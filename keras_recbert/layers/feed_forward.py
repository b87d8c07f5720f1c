"""Position-wise feed-forward sub-layer."""

import keras

from keras_recbert.layers.common import bert_initializer, check_positive


@keras.saving.register_keras_serializable("keras_recbert")
class FeedForward(keras.layers.Layer):
    """`gelu(x W1 + b1) W2 + b2` with the exact (erf) GELU.

    Devlin et al. 2018, section 3 and appendix A.2.

    Args:
        intermediate_dim: int. Width between the two products.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: if `intermediate_dim` is not positive.
    """

    def __init__(self, intermediate_dim, **kwargs):
        super().__init__(**kwargs)
        check_positive(intermediate_dim=intermediate_dim)
        self.intermediate_dim = intermediate_dim

    def build(self, inputs_shape):
        def dense(units, activation, name):
            return keras.layers.Dense(
                units,
                activation=activation,
                kernel_initializer=bert_initializer(),
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

    def call(self, inputs):
        return self.output_dense(self.intermediate_dense(inputs))

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "intermediate_dim": self.intermediate_dim}
