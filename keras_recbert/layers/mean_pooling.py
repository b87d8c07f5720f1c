"""Mean over the real positions of a sequence."""

import keras
from keras import ops

from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.ops.implementation import at_least_float32


@keras.saving.register_keras_serializable("keras_recbert")
class MeanPooling(CheckedLayer):
    """Mean of a sequence over the positions whose mask is 1.

    Of all positions, if there is no mask. `keras.layers.GlobalAveragePooling1D` gives
    NaN for a row that is all padding; this gives 0.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, `(batch_size, hidden_dim)`.
    """

    built_axis = None

    def call(self, inputs, padding_mask=None, mask=None):
        mask = self.agreed_mask(inputs, padding_mask, mask)
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:2])
        dtype = at_least_float32(inputs.dtype)
        mask = ops.cast(mask, dtype)[:, :, None]
        total = ops.sum(ops.cast(inputs, dtype) * mask, axis=1)
        mean = total / ops.maximum(ops.sum(mask, axis=1), 1.0)
        return ops.cast(mean, self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # no position is left

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (inputs_shape[0], inputs_shape[-1])
