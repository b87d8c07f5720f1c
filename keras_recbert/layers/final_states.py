"""The states with which both directions of an LSTM end."""

import keras
import tensorflow as tf
from keras import ops

from keras_recbert.layers.checked_layer import CheckedLayer


@keras.saving.register_keras_serializable("keras_recbert")
class FinalStates(CheckedLayer):
    """What each direction puts out at its last step, concatenated.

    Of the outputs of a `BidirectionalLSTM`, forward direction first: the forward half
    at the last position whose mask is 1, the backward half at the first (Liu 2020,
    section 3.1.2, `h_s` of equation 3.1). A row that is all padding gives 0.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, 2 * units)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, `(batch_size, 2 * units)`.
    """

    built_axis = None

    def call(self, inputs, padding_mask=None, mask=None):
        mask = self.agreed_mask(inputs, padding_mask, mask)
        forward, backward = ops.split(inputs, 2, axis=-1)
        if mask is None:
            return ops.concatenate([forward[:, -1], backward[:, 0]], axis=-1)
        real = ops.cast(mask, "int32")
        first = ops.argmax(real, axis=1)
        last = ops.shape(real)[1] - 1 - ops.argmax(ops.flip(real, axis=1), axis=1)
        # Keras's `take_along_axis` is a dozen ops, which a single text would wait for.
        ends = [
            tf.gather(outputs, position, axis=1, batch_dims=1)
            for outputs, position in ((forward, last), (backward, first))
        ]
        states = ops.concatenate(ends, axis=-1)
        return ops.where(ops.any(real > 0, axis=1)[:, None], states, 0.0)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # no position is left

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (inputs_shape[0], inputs_shape[-1])
