"""A score for texts and pairs of texts."""

import keras

from keras_recbert.heads.regression import RegressionHead
from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextRegressor(TextModel):
    """One linear output on the pooled output, trained on squared error.

    `predict` gives float32 scores `(num_examples,)`. The SavedModel gives `scores`,
    float32 `(batch_size,)`.

    Args:
        encoder: `RecBertEncoder`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        relu_units: int or None. Width of a layer with ReLU below the score, see
            `keras_recbert.heads.Head`.
        name: str.
        **kwargs: others of `TextModel`: `pooling`, `layer`, `combine`, `concatenate`,
            `learning_rate`, `dropout`, `freeze`, `lora_rank`, `layerwise_decay`,
            `long_texts`, `window_pooling`.

    Raises:
        ValueError: if an argument does not fit the encoder.
    """

    TASK_ARGUMENTS = (*TextModel.TASK_ARGUMENTS, *RegressionHead.arguments())

    def __init__(
        self,
        encoder,
        preprocessor=None,
        *,
        relu_units=None,
        name="text_regressor",
        **kwargs,
    ):
        head = RegressionHead(relu_units)
        super().__init__(encoder, preprocessor, head, name=name, **kwargs)

    def _head_config(self):
        return self.head.get_config()
