"""A score for texts and pairs of texts."""

import keras
import numpy as np
from keras import ops

from keras_recbert.tasks.fine_tuned_model import check_labels
from keras_recbert.tasks.squared_error import MeanRowSquaredError, RowSquaredError
from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextRegressor(TextModel):
    """One linear output on the pooled output, trained on squared error.

    `predict` gives float32 scores `(num_examples,)`.

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions. Default: see `TextModel`.
        learning_rate: float. Highest learning rate of a `fit` that compiles by
            itself. Default: see `TextModel`.
        dropout: float. Dropout rate before the head; the encoder's by default.
        freeze: what is not trained: `"embeddings"`, `"encoder"` (everything but the
            head), or an int n, the embeddings and the lowest n blocks.
        lora_rank: int. Trains adapters of this rank and the head only: see
            `TextModel` for what that leaves out in recurrent blocks. Adapters take
            a higher learning rate than whole encoders.
        layerwise_decay: float in (0, 1]. Lower learning rates for lower layers: see
            `TextModel`.
        name: str.

    Raises:
        ValueError: if an argument does not fit the encoder.
    """

    def __init__(
        self,
        backbone,
        preprocessor=None,
        pooling=None,
        learning_rate=None,
        dropout=None,
        freeze=None,
        lora_rank=None,
        layerwise_decay=None,
        name="text_regressor",
    ):
        super().__init__(
            backbone,
            preprocessor,
            1,
            pooling=pooling,
            learning_rate=learning_rate,
            dropout=dropout,
            freeze=freeze,
            lora_rank=lora_rank,
            layerwise_decay=layerwise_decay,
            name=name,
        )

    def _shape_logits(self, logits):
        return ops.squeeze(logits, axis=-1)

    def _default_loss_and_metrics(self):
        return RowSquaredError(), [MeanRowSquaredError("mse")]

    def _as_targets(self, labels, own_loss):
        if labels.dtype.kind not in "biuf":
            check_labels(labels, lambda label: False, "finite numbers")
        if not own_loss:
            check_labels(
                labels, lambda label: np.isfinite(label).all(), "finite numbers"
            )
        return labels

    def answer(self, logits):
        """What the SavedModel gives: `scores`, float32 `(batch_size,)`."""
        return {"scores": logits}
