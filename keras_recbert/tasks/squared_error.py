"""Squared error of one score a row.

Keras takes the mean over the last axis before it weighs anything, which of labels
`(num_examples,)` leaves nothing to weigh.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_recbert")
class RowSquaredError(keras.losses.MeanSquaredError):
    """As `keras.losses.MeanSquaredError`, of scores `(num_examples,)`."""

    def call(self, y_true, y_pred):
        return super().call(ops.expand_dims(y_true, -1), ops.expand_dims(y_pred, -1))


@keras.saving.register_keras_serializable("keras_recbert")
class MeanRowSquaredError(keras.metrics.MeanSquaredError):
    """As `keras.metrics.MeanSquaredError`, of scores `(num_examples,)`."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = ops.expand_dims(y_true, -1), ops.expand_dims(y_pred, -1)
        return super().update_state(y_true, y_pred, sample_weight)
