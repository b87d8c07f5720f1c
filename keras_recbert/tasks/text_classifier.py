"""Classification of texts and pairs of texts."""

import keras
import tensorflow as tf

from keras_recbert.layers.common import check_positive
from keras_recbert.tasks.text_model import TextModel


@keras.saving.register_keras_serializable("keras_recbert")
class TextClassifier(TextModel):
    """Softmax classifier on the pooled output (Devlin et al. 2018, section 4.1).

    `predict` gives float32 logits `(num_examples, num_classes)`.

    Args:
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor`, or None for a model of packed ids only.
        num_classes: int. At least 2; by default the number of `label_names`, or 2.
        label_names: sequence of str, the class names in order of their ids; by
            default `"0"`, `"1"`, ...
        pooling: `"first"`, the encoder's pooled output (BERT's way), or `"mean"`, the
            mean of the outputs at real positions, which learns faster from scratch.
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
        ValueError: if `num_classes` is below 2 or differs from `label_names`, or
            another argument does not fit the encoder.
    """

    TASK_ARGUMENTS = (*TextModel.TASK_ARGUMENTS, "num_classes", "label_names")

    def __init__(
        self,
        backbone,
        preprocessor=None,
        num_classes=None,
        label_names=None,
        pooling="first",
        dropout=None,
        freeze=None,
        lora_rank=None,
        layerwise_decay=None,
        name="text_classifier",
    ):
        if num_classes is None:
            num_classes = 2 if label_names is None else len(label_names)
        check_positive(num_classes=num_classes)
        if num_classes < 2:
            raise ValueError(
                "A classifier tells at least 2 classes apart. Received: "
                f"num_classes={num_classes}. For one score use task='regressor'."
            )
        if label_names is None:
            label_names = [str(index) for index in range(num_classes)]
        if len(set(label_names)) != num_classes or len(label_names) != num_classes:
            raise ValueError(
                "`label_names` needs a different name for each class. Received: "
                f"num_classes={num_classes}, label_names={list(label_names)}."
            )
        super().__init__(
            backbone,
            preprocessor,
            num_classes,
            pooling=pooling,
            dropout=dropout,
            freeze=freeze,
            lora_rank=lora_rank,
            layerwise_decay=layerwise_decay,
            name=name,
        )
        self.num_classes = num_classes
        self.label_names = list(label_names)

    def _default_loss_and_metrics(self):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return loss, [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def _is_label(self, label):
        return label.dtype.kind in "biuf" and label in range(self.num_classes)

    def _valid_labels(self):
        return (
            f"whole numbers from 0 to {self.num_classes - 1}, the positions of the "
            f"classes in {self.label_names}"
        )

    def answer(self, logits):
        """Probabilities and names: what the SavedModel gives.

        Args:
            logits: float32, `(batch_size, num_classes)`.

        Returns:
            dict of `scores` (float32, `(batch_size, num_classes)`, summing to 1),
            `label_names` (string, same shape) and `label` (string,
            `(batch_size,)`, the likeliest).
        """
        names = tf.constant(self.label_names)
        return {
            "scores": tf.nn.softmax(logits),
            # One row an example: TF Serving's row format needs a batch axis.
            "label_names": tf.tile(names[tf.newaxis], [tf.shape(logits)[0], 1]),
            "label": tf.gather(names, tf.argmax(logits, axis=-1)),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "label_names": self.label_names,
        }
