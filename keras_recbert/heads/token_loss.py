"""The loss of heads that answer for each token, or for a start and an end."""

import keras
from keras import ops

IGNORED = -1  # target of what does not count


@keras.saving.register_keras_serializable("keras_recbert")
class TokenLoss(keras.losses.Loss):
    """Softmax cross-entropy of the targets of a row, mean over those that count.

    Each row has one value, so that weights of rows act, and the mean over several
    devices is that over one. A row without a target that counts has the loss 0.

    Call arguments:
        y_true: int `(num_rows, number)`; -1 does not count.
        y_pred: float `(num_rows, number, num_classes)`, logits.
        sample_weight: optional float `(num_rows,)`.
    """

    def __init__(self, name="token_loss", **kwargs):
        super().__init__(name=name, **kwargs)

    def call(self, y_true, y_pred):
        counts = ops.not_equal(y_true, IGNORED)
        losses = ops.sparse_categorical_crossentropy(
            ops.where(counts, y_true, 0), y_pred, from_logits=True
        )
        counts = ops.cast(counts, losses.dtype)
        number = ops.maximum(ops.sum(counts, axis=-1), 1.0)
        return ops.sum(losses * counts, axis=-1) / number
