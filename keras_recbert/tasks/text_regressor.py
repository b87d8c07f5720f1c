"""A score for texts and pairs of texts."""

import keras
import numpy as np
from keras import ops

from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextRegressor(TextModel):
    """One linear output on the pooled output, trained on squared error.

    `predict` gives float32 scores `(num_examples,)`.

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions, which learns faster from scratch.
        dropout: float. Dropout rate before the head; the encoder's by default.
        name: str.
    """

    def __init__(
        self,
        backbone,
        preprocessor=None,
        pooling="first",
        dropout=None,
        name="text_regressor",
    ):
        super().__init__(backbone, preprocessor, 1, pooling, dropout, name)

    def _shape_logits(self, logits):
        return ops.squeeze(logits, axis=-1)

    def _default_loss_and_metrics(self):
        return keras.losses.MeanSquaredError(), [keras.metrics.MeanSquaredError("mse")]

    def _is_label(self, label):
        return label.dtype.kind in "biuf" and np.isfinite(label)

    def _valid_labels(self):
        return "finite numbers"

    def answer(self, logits):
        """What the SavedModel gives: `scores`, float32 `(batch_size,)`."""
        return {"scores": logits}
