"""One sequence of several: a trained weighted mean, times a trained factor."""

import keras
from keras import ops

from keras_recbert.layers.checked_layer import ROWS, CheckedLayer


@keras.saving.register_keras_serializable("keras_recbert")
class ScalarMix(CheckedLayer):
    """Weighted sum of the outputs of several layers (Peters et al. 2018, eq. 1).

    With one trained number `w_j` for each layer j, and a trained `gamma`:

        mix[t] = gamma * sum_j softmax(w)_j * h[t, j]

    It starts as the mean of the layers: `w` at 0, `gamma` at 1.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, dim, num_layers)`: what the layers
            gave, stacked on a last axis.

    Returns:
        float, `(batch_size, sequence_length, dim)`.

    Example:

    >>> low, high = keras.Input((None, 8)), keras.Input((None, 8))
    >>> mixed = ScalarMix()(keras.ops.stack([low, high], axis=-1))
    """

    call_shapes = {"inputs": (*ROWS, "dim", "num_layers")}
    built_axis = "num_layers"

    def build(self, inputs_shape):
        # Not cast to bfloat16: the softmax is of float32 numbers in mixed precision.
        logits = "zeros", "layer_logits"
        self.layer_logits = self.add_float32_weight((inputs_shape[-1],), *logits)
        self.gamma = self.add_float32_weight((), "ones", "gamma")

    def call(self, inputs):
        weights = self.gamma * ops.softmax(self.layer_logits)
        weights = ops.cast(weights, self.compute_dtype)
        return ops.matmul(inputs, weights[:, None])[..., 0]

    def compute_output_shape(self, inputs_shape):
        return inputs_shape[:-1]
