"""What a task model computes from its encoder, and which heads there are."""

import inspect

import keras
import numpy as np

from keras_recbert.core.names import UnknownNameError, nearest
from keras_recbert.layers.common import bert_initializer
from keras_recbert.metrics.glue import METRICS, glue_scores


class Head:
    """Logits of a row of an encoder, and everything that is particular to their task.

    Subclass it, and decorate the subclass with `register_head`. Then
    `keras_recbert.build(name, task=...)` builds models with it; `fit`, `evaluate` and
    `predict`, files, presets and SavedModels follow.

    Arguments of the constructor become arguments of `build`; each is kept as an
    attribute of its name, as Python values that JSON can hold.

    Attributes:
        task: str. Value of `task` in `build`.
        metric_names: tuple of str. What dev sets are scored by unless a data set says
            otherwise; the first decides which epoch is kept. See `scores`.
        more_metrics: tuple of str. Others that `scores` knows.
        packer: str. Class of the preprocessor, see `keras_recbert.text.Packer`: what
            fields an example of the task has.
        dense: `keras.layers.Dense`, from rows to `units` logits.
        reading: `keras_recbert.heads.reading.Reading`, what it reads of the encoder;
            the model sets it.

    Args:
        units: int. Logits of an example.
    """

    task = None
    metric_names = ("accuracy",)
    more_metrics = METRICS
    packer = "TextPreprocessor"
    reading = None

    def __init__(self, units):
        self.dense = keras.layers.Dense(
            units,
            kernel_initializer=bert_initializer(),
            dtype="float32",  # losses read float32 logits in every precision
            name="head",
        )

    def logits(self, rows):
        """Logits of rows of the encoder.

        Args:
            rows: float, `(batch_size, hidden_dim)`. BERT's pooled output, or a mean.

        Returns:
            float32, `(batch_size, units)` or another shape that the loss reads.
        """
        return self.dense(rows)

    def connect(self, outputs, dropout=None):
        """Logits of an encoder, from where the head reads.

        Args:
            outputs: `keras_recbert.models.encoder_outputs.EncoderOutputs`.
            dropout: optional layer between what is read and the head.

        Returns:
            As `logits`.
        """
        rows = self.reading.rows(outputs)
        return self.logits(rows if dropout is None else dropout(rows))

    def loss(self):
        """A new `keras.losses.Loss` of targets and logits."""
        raise NotImplementedError

    def metrics(self):
        """New metrics of targets and logits, a list of `keras.metrics.Metric`."""
        return []

    def as_targets(self, labels, own_loss=False):
        """Labels of any form that users have, as the loss takes them.

        Args:
            labels: array or list.
            own_loss: bool. The loss is the user's, who knows what it takes.

        Returns:
            array.

        Raises:
            ValueError: for labels that the loss cannot read; names the first.
        """
        return np.asarray(labels)

    def answer(self, logits):
        """What the SavedModel gives for logits: a dict of tensors, a row an example."""
        return {"scores": logits}

    def predictions(self, logits):
        """What is predicted, in the form of the labels.

        Args:
            logits: NumPy array of logits, a row an example.

        Returns:
            NumPy array.
        """
        return logits

    def scores(self, metric_names, labels, logits):
        """Scores of logits.

        Args:
            metric_names: sequence of str.
            labels: NumPy array, as `as_targets` gives them.
            logits: NumPy array.

        Returns:
            dict of metric name to float.
        """
        return glue_scores(metric_names, labels, self.predictions(logits))

    @classmethod
    def arguments(cls):
        """Names of the arguments of the constructor, a tuple."""
        return tuple(inspect.signature(cls).parameters)

    def get_config(self):
        """Arguments that make an equal head: a dict of JSON."""
        return {name: getattr(self, name) for name in self.arguments()}


_HEADS: dict[str, type[Head]] = {}


def register_head(cls):
    """Class decorator: adds a head under its `task`.

    Args:
        cls: subclass of `Head`.

    Returns:
        `cls`.

    Raises:
        ValueError: if the name is taken, or there is none.
    """
    if not cls.task or cls.task in (*_HEADS, "pretrainer"):
        raise ValueError(
            "A head needs a task of its own. Received: "
            f"{cls.__name__}.task={cls.task!r}. Taken: {', '.join(_HEADS)}, pretrainer."
        )
    _HEADS[cls.task] = cls
    return cls


def list_heads():
    """Names of the tasks that have a head, in the order of their registration."""
    return list(_HEADS)


def get_head(task):
    """The class of the head of a task.

    Raises:
        UnknownNameError: if there is none.
    """
    if task not in _HEADS:
        raise UnknownNameError(
            f"No task is called {task!r}. {nearest(task, _HEADS)}"
            f"Valid: {', '.join(_HEADS)}."
        )
    return _HEADS[task]


def check_labels(labels, is_valid, valid):
    """Raises `ValueError` for the first of `labels` that is not `is_valid`."""
    for index, label in enumerate(labels):
        if not is_valid(label):
            raise ValueError(
                f"`y` must hold {valid}. Received: {np.asarray(label).tolist()!r} at "
                f"index {index}."
            )
