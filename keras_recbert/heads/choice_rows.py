"""From examples with choices to rows of the encoder, and back."""

import keras
from keras import ops


class ChoiceRows(keras.layers.Layer):
    """Puts the choices of all examples behind each other, padding included.

    Padding choices are left in: batches have few shapes, which is what XLA compiles
    for.

    Call arguments:
        ids: int, `(batch_size, num_choices, sequence_length)`.

    Returns:
        int, `(batch_size * num_choices, sequence_length)`.
    """

    def call(self, ids):
        batch_size, num_choices, length = ops.shape(ids)
        return ops.reshape(ids, (batch_size * num_choices, length))

    def compute_output_spec(self, ids):
        return keras.KerasTensor((None, ids.shape[2]), ids.dtype)


class ChoiceLogits(keras.layers.Layer):
    """Logits of rows to those of the choices of examples.

    Args:
        padding_logit: float. That of a choice that is padding.
        **kwargs: as for `keras.layers.Layer`.

    Call arguments:
        logits: float, `(batch_size * num_choices, 1)`.
        padding_mask: bool or int, `(batch_size, num_choices, sequence_length)`;
            1 = token. A choice without one is padding.

    Returns:
        float, `(batch_size, num_choices)`.
    """

    def __init__(self, padding_logit, **kwargs):
        super().__init__(**kwargs)
        self.padding_logit = padding_logit

    def call(self, logits, padding_mask):
        is_choice = ops.any(padding_mask, axis=-1)
        logits = ops.reshape(logits, ops.shape(is_choice))
        return ops.where(is_choice, logits, self.padding_logit)

    def compute_output_spec(self, logits, padding_mask):
        return keras.KerasTensor(padding_mask.shape[:2], logits.dtype)
