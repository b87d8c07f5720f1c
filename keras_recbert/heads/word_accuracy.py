"""The accuracy of heads whose rows have targets that do not count."""

import keras
from keras import ops

from keras_recbert.heads.token_loss import IGNORED


@keras.saving.register_keras_serializable("keras_recbert")
class WordAccuracy(keras.metrics.SparseCategoricalAccuracy):
    """Accuracy of logits over the targets that are not -1.

    Call arguments:
        y_true: int `(num_rows, number)`: a tag for each token, or a start and an end.
        y_pred: float `(num_rows, number, num_classes)`.
        sample_weight: optional float `(num_rows,)`.
    """

    def update_state(self, y_true, y_pred, sample_weight=None):
        counts = ops.cast(ops.not_equal(y_true, IGNORED), "float32")
        if sample_weight is not None:
            counts *= ops.cast(sample_weight, "float32")[:, None]
        return super().update_state(y_true, y_pred, counts)
