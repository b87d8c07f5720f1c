"""Any number of labels a text."""

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.core.extras import check_installed
from keras_recbert.heads.head import Head, check_labels, register_head

METRICS = ("micro_f1", "macro_f1", "accuracy")
_LISTS = (list, tuple, set, frozenset)  # of names


@register_head
class MultilabelHead(Head):
    """A sigmoid for each label: a text has those whose probability is at least 0.5.

    Labels come as lists of names, `[["comedy"], [], ["comedy", "war"]]`, or as rows of
    0 and 1, `(num_examples, num_labels)`.

    Args:
        label_names: sequence of str. At least one.
        relu_units: see `Head`.

    Raises:
        ValueError: if there is none, or a name comes twice.
    """

    task = "multilabel_classifier"
    metric_names = METRICS
    more_metrics = ()

    def __init__(self, label_names, relu_units=None):
        label_names = list(label_names)
        if not label_names or len(set(label_names)) < len(label_names):
            raise ValueError(
                "`label_names` needs a different name for each label, and at least "
                f"one. Received: label_names={label_names}."
            )
        super().__init__(len(label_names), relu_units)
        self.label_names = label_names

    def loss(self):
        return keras.losses.BinaryCrossentropy(from_logits=True)

    def metrics(self):
        # Thresholds are of logits: probability 0.5.
        return [keras.metrics.BinaryAccuracy(name="label_accuracy", threshold=0.0)]

    def as_targets(self, labels, own_loss=False):
        if own_loss:
            return np.asarray(labels)
        if any(map(_holds_names, labels)):
            return self._rows_of(labels)
        width = len(self.label_names)
        check_labels(
            labels,
            lambda row: np.shape(row) == (width,) and np.isin(row, (0, 1)).all(),
            f"lists of names among {self.label_names}, or rows of {width} numbers that "
            "are 0 or 1",
        )
        return np.asarray(labels, "float32")

    def _rows_of(self, names):
        """Rows of 0 and 1 from lists of names."""
        rows = np.zeros((len(names), len(self.label_names)), "float32")
        places = {name: place for place, name in enumerate(self.label_names)}
        for index, one in enumerate(names):
            if not isinstance(one, (*_LISTS, np.ndarray)):
                names = repr(one) if isinstance(one, (str, bytes)) else ""
                raise ValueError(
                    "`y` must hold a list of names for each text, an empty one for "
                    f"none. Received: {one!r} at index {index}. Write [{names}]."
                )
            for name in one:
                if not isinstance(name, str) or name not in places:
                    raise ValueError(
                        f"`y` must hold lists of names among {self.label_names}. "
                        f"Received: {name!r} at index {index}."
                    )
                rows[index, places[name]] = 1.0
        return rows

    def answer(self, logits):
        """Probabilities and names: what the SavedModel gives.

        Args:
            logits: float32, `(batch_size, num_labels)`.

        Returns:
            dict of `scores` (float32, `(batch_size, num_labels)`, each in [0, 1]),
            `label_names` (string, same shape) and `has_label` (bool, same shape).
        """
        names = tf.constant(self.label_names)
        return {
            "scores": tf.sigmoid(logits),
            "label_names": tf.tile(names[tf.newaxis], [tf.shape(logits)[0], 1]),
            "has_label": logits >= 0.0,
        }

    def predictions(self, logits):
        return (logits >= 0.0).astype("int32")

    def scores(self, metric_names, labels, logits):
        """F1 over all labels (`micro_f1`), mean F1 of the labels (`macro_f1`), and
        the part of the texts all of whose labels are right (`accuracy`)."""
        check_installed("Scoring", "train", "sklearn")
        from sklearn.metrics import accuracy_score, f1_score

        unknown = [name for name in metric_names if name not in METRICS]
        if unknown:
            raise ValueError(
                f"Unknown metrics: {unknown}. Valid: {', '.join(METRICS)}."
            )
        found = self.predictions(logits)
        every = {
            "micro_f1": lambda: f1_score(
                labels, found, average="micro", zero_division=0.0
            ),
            "macro_f1": lambda: f1_score(
                labels, found, average="macro", zero_division=0.0
            ),
            "accuracy": lambda: accuracy_score(labels, found),
        }
        return {name: float(every[name]()) for name in metric_names}


def _holds_names(row):
    """Whether a row of labels is a list of names, perhaps an empty one."""
    if isinstance(row, _LISTS):
        return not row or any(isinstance(name, str) for name in row)
    return isinstance(row, (str, bytes))
