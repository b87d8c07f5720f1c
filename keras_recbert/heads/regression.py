"""One score."""

import keras
import numpy as np
from keras import ops

from keras_recbert.heads.head import Head, as_array, check_labels, register_head
from keras_recbert.metrics.glue import REGRESSION_METRICS


@register_head
class RegressionHead(Head):
    """One linear output, trained on squared error. Logits are `(batch_size,)`.

    Args:
        relu_units: see `Head`.
    """

    task = "regressor"
    metric_names = ("pearson", "spearman")
    more_metrics = REGRESSION_METRICS

    def __init__(self, relu_units=None):
        super().__init__(1, relu_units)

    def logits(self, rows):
        return ops.squeeze(super().logits(rows), axis=-1)

    def loss(self):
        return RowSquaredError()

    def metrics(self):
        return [MeanRowSquaredError("mse")]

    def as_targets(self, labels, own_loss=False):
        def is_valid(label):
            label = np.asarray(label)
            return label.dtype.kind in "biuf" and (own_loss or np.isfinite(label).all())

        check_labels(labels, is_valid, "finite numbers")
        labels = as_array(labels)
        return labels if labels.dtype.kind in "biuf" else labels.astype("float64")


# Keras takes the mean over the last axis before it weighs anything, which of labels
# `(num_examples,)` leaves nothing to weigh.


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
