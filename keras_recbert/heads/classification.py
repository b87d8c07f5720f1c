"""One of several classes."""

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.heads.head import Head, as_array, check_labels, register_head
from keras_recbert.metrics.glue import CLASSIFICATION_METRICS


@register_head
class ClassificationHead(Head):
    """Softmax over classes (Devlin et al. 2018, section 4.1).

    Args:
        num_classes: int. At least 2; by default the number of `label_names`, or 2.
        label_names: sequence of str, the class names in order of their ids; by
            default the labels that `fit` finds, sorted, if they are words, else
            `"0"`, `"1"`, ...
        relu_units: see `Head`.

    Raises:
        ValueError: if `num_classes` is below 2 or differs from `label_names`.
    """

    task = "classifier"
    more_metrics = CLASSIFICATION_METRICS

    def __init__(self, num_classes=None, label_names=None, relu_units=None):
        if num_classes is None:
            num_classes = 2 if label_names is None else len(label_names)
        check_positive(num_classes=num_classes)
        if num_classes < 2:
            raise ValueError(
                "A classifier tells at least 2 classes apart. Received: "
                f"num_classes={num_classes}. For one score use task='regressor'."
            )
        self.has_label_names = label_names is not None
        if label_names is None:
            label_names = [str(index) for index in range(num_classes)]
        if len(set(label_names)) != num_classes or len(label_names) != num_classes:
            raise ValueError(
                "`label_names` needs a different name for each class. Received: "
                f"num_classes={num_classes}, label_names={list(label_names)}."
            )
        super().__init__(num_classes, relu_units)
        self.num_classes = num_classes
        self.label_names = list(label_names)

    @classmethod
    def check_metrics(cls, names, arguments):
        super().check_metrics(names, arguments)
        labels = arguments.get("label_names") or ()
        num_classes = arguments.get("num_classes") or len(labels) or 2
        if "f1" in names and num_classes > 2:
            named = f" ({', '.join(map(str, labels))})" if labels else ""
            raise ValueError(
                "'f1' is the score of the second of two classes. Received: metrics="
                f"{tuple(names)} with {num_classes} classes{named}. Try 'macro_f1', "
                "the mean F1 of the classes."
            )

    def loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def metrics(self):
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def as_targets(self, labels, own_loss=False):
        labels = as_array(labels)
        if labels.dtype.kind in "OSU":
            return self._ids_of(labels)
        if own_loss:
            return labels
        if labels.ndim == 2 and labels.shape[1] == self.num_classes:
            is_one_hot = np.isin(labels, (0, 1)).all(1) & (labels.sum(1) == 1)
            if not is_one_hot.all():
                raise ValueError(
                    "Rows of `y` must be one-hot: one 1 and else 0. Received: "
                    f"{labels[~is_one_hot][0].tolist()} at index "
                    f"{np.flatnonzero(~is_one_hot)[0]}. For shares of classes compile "
                    "the model with CategoricalCrossentropy(from_logits=True); for "
                    "texts of several labels build it with "
                    "task='multilabel_classifier'."
                )
            return labels.argmax(1)
        ids = range(self.num_classes)
        check_labels(
            labels,
            lambda label: (
                np.ndim(label) == 0 and label.dtype.kind in "biuf" and label in ids
            ),
            f"whole numbers from 0 to {self.num_classes - 1}, the positions of the "
            f"classes in {self.label_names}, these names, or one-hot rows",
        )
        return labels

    def _ids_of(self, names):
        """Positions of names of classes; the first labels name classes without."""
        names = [n.decode() if isinstance(n, bytes) else n for n in names.tolist()]
        check_labels(names, lambda name: isinstance(name, str), "names of classes")
        found = sorted(set(names))
        if not self.has_label_names and len(found) == self.num_classes:
            self.label_names, self.has_label_names = found, True
        ids = {name: index for index, name in enumerate(self.label_names)}
        for index, name in enumerate(names):
            if name not in ids:
                raise ValueError(
                    f"`y` must hold the names of classes, {self.label_names}, or their "
                    f"positions. Received: {name!r} at index {index}. Name the "
                    "classes when the model is built: label_names=[...]."
                )
        return np.array([ids[name] for name in names])

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

    def predictions(self, logits):
        return np.argmax(logits, axis=-1)
