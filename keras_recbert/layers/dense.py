"""`keras.layers.Dense`, arranged for the fused products of oneDNN."""

import keras
import tensorflow as tf
from keras import ops

from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.explain_row import chosen_row, training_row
from keras_recbert.ops.gelu import gelu
from keras_recbert.ops.implementation import check_implementation, use_xla
from keras_recbert.ops.matrix_product import matrix_product


@keras.saving.register_keras_serializable("keras_recbert")
class Dense(CheckedLayer, keras.layers.Dense):
    """`activation(x W + b)` over the last axis, as `keras.layers.Dense`.

    All leading axes are folded into one, so that product, bias and exact GELU stand
    beside each other in the graph. On a CPU TensorFlow turns the three into one
    oneDNN op then; Keras's reshape between product and bias keeps them apart. In
    training, where the gradient needs what stands before the GELU, that is an op of
    its own.

    Args:
        units: int. Width of the output.
        implementation: str. See `keras_recbert.ops.implementation`.
        **kwargs: those of `keras.layers.Dense`.

    Call arguments, returns, raises: as `keras.layers.Dense`.
    """

    call_shapes = {"inputs": (..., "input_dim")}
    built_axis = "input_dim"

    def __init__(self, units, implementation="auto", **kwargs):
        super().__init__(units, **kwargs)
        check_implementation(implementation)
        self.implementation = implementation

    def call(self, inputs, training=None):
        shape = ops.shape(inputs)
        x = ops.matmul(ops.reshape(inputs, (-1, shape[-1])), self.kernel)
        if self.bias is not None:
            x = tf.nn.bias_add(x, ops.convert_to_tensor(self.bias, x.dtype))
        if self.activation is keras.activations.gelu and training:
            x = gelu(x, use_xla(self.implementation, self.units))
        elif self.activation is not None:
            x = self.activation(x)
        return ops.reshape(x, (*shape[:-1], self.units))

    def quantize(self, mode=None, type_check=False, config=None):
        """As `keras.layers.Dense.quantize`, which refuses subclasses by default."""
        super().quantize(mode, type_check=False, config=config)

    def explain_row(self):
        """What runs for a GELU, see `keras_recbert.explain`; None without one."""
        if self.activation is not keras.activations.gelu:
            return None
        row = chosen_row("GELU", self.implementation, self.units)
        _, fused = matrix_product(self.compute_dtype)
        inference = "in the product" if fused else "TensorFlow"
        return training_row(row, inference, "TensorFlow")

    def get_config(self):
        return {**super().get_config(), "implementation": self.implementation}
