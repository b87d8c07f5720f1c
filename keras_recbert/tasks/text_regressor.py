"""A score for texts and pairs of texts."""

import keras
from keras import ops

from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextRegressor(TextModel):
    """One linear output on the pooled output, trained on squared error.

    `predict` gives float32 scores `(num_examples,)`.

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        dropout: float. Dropout rate before the head; the encoder's by default.
        name: str.
    """

    def __init__(
        self, backbone, preprocessor=None, dropout=None, name="text_regressor"
    ):
        super().__init__(backbone, preprocessor, 1, dropout, name)

    def _shape_logits(self, logits):
        return ops.squeeze(logits, axis=-1)

    def _default_loss_and_metrics(self):
        return keras.losses.MeanSquaredError(), [keras.metrics.MeanSquaredError("mse")]

    def answer(self, logits):
        """What the SavedModel gives: `scores`, float32 `(batch_size,)`."""
        return {"scores": logits}
