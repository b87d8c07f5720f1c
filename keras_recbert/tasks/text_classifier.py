"""Classification of texts and pairs of texts."""

import keras

from keras_recbert.heads.classification import ClassificationHead
from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextClassifier(TextModel):
    """Softmax classifier on the pooled output (Devlin et al. 2018, section 4.1).

    `predict` gives float32 logits `(num_examples, num_classes)`. The SavedModel gives
    `scores`, `label_names` and `label`, see `ClassificationHead.answer`.

    Args:
        encoder: `RecBertEncoder`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        num_classes: int. At least 2; by default the number of `label_names`, or 2.
        label_names: sequence of str, the class names in order of their ids; by
            default the labels that `fit` finds, sorted, if they are words, else
            `"0"`, `"1"`, ...
        relu_units: int or None. Width of a layer with ReLU below the logits, see
            `keras_recbert.heads.Head`.
        name: str.
        **kwargs: others of `TextModel`: `pooling`, `layer`, `combine`, `concatenate`,
            `learning_rate`, `dropout`, `freeze`, `lora_rank`, `layerwise_decay`,
            `long_texts`, `window_pooling`.

    Raises:
        ValueError: if `num_classes` is below 2 or differs from `label_names`, or
            another argument does not fit the encoder.
    """

    TASK_ARGUMENTS = (*TextModel.TASK_ARGUMENTS, *ClassificationHead.arguments())

    def __init__(
        self,
        encoder,
        preprocessor=None,
        num_classes=None,
        label_names=None,
        *,
        relu_units=None,
        name="text_classifier",
        **kwargs,
    ):
        head = ClassificationHead(num_classes, label_names, relu_units)
        super().__init__(encoder, preprocessor, head, name=name, **kwargs)

    @property
    def num_classes(self):
        return self.head.num_classes

    @property
    def label_names(self):
        return self.head.label_names

    def _head_config(self):
        return self.head.get_config()
