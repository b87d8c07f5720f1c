"""Maximum over the real positions of a sequence."""

import keras
from keras import ops

from keras_recbert.layers.checked_layer import CheckedLayer


@keras.saving.register_keras_serializable("keras_recbert")
class MaxPooling(CheckedLayer):
    """Largest value of each unit over the positions whose mask is 1.

    Of all positions, if there is no mask. `keras.layers.GlobalMaxPooling1D` reads
    padding, too. A row that is all padding gives 0.

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
            return ops.max(inputs, axis=1)
        real = ops.cast(mask, "bool")[:, :, None]
        largest = ops.max(ops.where(real, inputs, -float("inf")), axis=1)
        return ops.where(ops.any(real, axis=1), largest, ops.zeros_like(largest))

    def compute_mask(self, inputs, previous_mask=None):
        return None  # no position is left

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (inputs_shape[0], inputs_shape[-1])
