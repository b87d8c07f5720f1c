"""Losses and metrics of the heads of pre-training.

Batches weigh their elements so that the mean of a loss over all elements is its mean
over the real ones of a global batch. The metrics count each real element as one, so
that they are means over all real elements, however many a batch has.
"""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_recbert")
class TokenCrossentropy(keras.losses.Loss):
    """Binary cross-entropy of logits, an element each.

    `keras.losses.BinaryCrossentropy` takes the mean over the last axis before it
    weighs anything.

    Call arguments:
        y_true: 0 or 1, `(batch_size, sequence_length)`.
        y_pred: float logits, same shape.
        sample_weight: float, same shape.
    """

    def call(self, y_true, y_pred):
        y_true = ops.cast(y_true, y_pred.dtype)
        return ops.binary_crossentropy(y_true, y_pred, from_logits=True)


class _Counted:
    """A metric that counts elements whose weight is above 0, each as one."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        if sample_weight is not None:
            sample_weight = ops.cast(ops.greater(sample_weight, 0), "float32")
        return super().update_state(y_true, y_pred, sample_weight)


@keras.saving.register_keras_serializable("keras_recbert")
class CountedAccuracy(_Counted, keras.metrics.SparseCategoricalAccuracy):
    """Accuracy of logits over the real elements."""


@keras.saving.register_keras_serializable("keras_recbert")
class CountedCrossentropy(_Counted, keras.metrics.SparseCategoricalCrossentropy):
    """Mean cross-entropy over the real elements; `exp` of it is the perplexity."""


@keras.saving.register_keras_serializable("keras_recbert")
class CountedAUC(_Counted, keras.metrics.AUC):
    """Area under the ROC curve over the real elements; 0.5 is chance."""


@keras.saving.register_keras_serializable("keras_recbert")
class TokenAccuracy(_Counted, keras.metrics.MeanMetricWrapper):
    """Accuracy of one logit an element over the real elements."""

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(_is_right, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


@keras.saving.register_keras_serializable("keras_recbert")
class TokenBinaryCrossentropy(_Counted, keras.metrics.MeanMetricWrapper):
    """Mean binary cross-entropy of one logit an element over the real elements."""

    def __init__(self, name="cross_entropy", dtype=None):
        super().__init__(TokenCrossentropy().call, name=name, dtype=dtype)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


def _is_right(y_true, y_pred):
    said = ops.cast(ops.greater(y_pred, 0), "float32")
    return ops.cast(ops.equal(ops.cast(y_true, "float32"), said), "float32")
