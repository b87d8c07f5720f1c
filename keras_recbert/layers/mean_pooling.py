"""Mean over the real positions of a sequence."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_recbert")
class MeanPooling(keras.layers.Layer):
    """Mean of a sequence over the positions whose mask is 1.

    `keras.layers.GlobalAveragePooling1D` gives NaN for a row that is all padding;
    this gives 0.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: bool or int, `(batch_size, sequence_length)`; 1 = token.

    Returns:
        float, `(batch_size, hidden_dim)`.
    """

    def call(self, inputs, padding_mask):
        mask = ops.cast(padding_mask, "float32")[:, :, None]
        total = ops.sum(ops.cast(inputs, "float32") * mask, axis=1)
        mean = total / ops.maximum(ops.sum(mask, axis=1), 1.0)
        return ops.cast(mean, self.compute_dtype)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (inputs_shape[0], inputs_shape[-1])
