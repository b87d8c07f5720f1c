"""What a task model computes from its encoder, and which heads there are."""

import inspect

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.core.names import check_arguments, nearest
from keras_recbert.core.registry import Registry
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
        metric_names: tuple of str. What validation sets are scored by unless a data set
            says otherwise; the first decides which epoch is kept. See `scores`.
        more_metrics: tuple of str. Others that `scores` knows.
        packer: str. Class of the preprocessor, see `keras_recbert.text.Packer`: what
            fields an example of the task has.
        reads: `"sentence"`, one vector of a row, or `"tokens"`, all of them.
        token_axis: int. Axis of the tokens in the logits of a head that reads tokens.
        padding_logit: float. Logit of a token, or of a choice, that is padding.
        dense: `keras.layers.Dense`, from rows to `units` logits.
        relu: `keras.layers.Dense` below it, or None.
        reading: `keras_recbert.heads.reading.Reading`, what it reads of the encoder;
            the model sets it.
        own_reading: dict of `pooling`, `layer`, `combine`, `concatenate`, where they
            are those of this head and not of all heads of its model.
        own_fields: tuple of str, the fields of its examples, where heads of one model
            differ in them; None, those of the model.
        dataset_elements: str. What the elements of a `tf.data.Dataset` to learn from
            are, in messages.
        checks_batches: bool. Whether `read_labels` checks each batch of a
            `tf.data.Dataset` of texts, too: where labels are about the texts.

    Args:
        units: int. Logits of an example.
        relu_units: int or None. Width of a layer with ReLU between what is read and the
            logits, as each task of a student of several has (Liu 2020, section 4.2).
    """

    task = None
    metric_names = ("accuracy",)
    more_metrics = METRICS
    packer = "TextPreprocessor"
    reads = "sentence"
    token_axis = 1
    padding_logit = 0.0
    reading = None
    own_reading = {}
    own_fields = None
    dataset_elements = "(text, label) or ((text, text), label), with numbers as labels"
    checks_batches = False

    def __init__(self, units, relu_units=None):
        self.relu_units, self.relu = relu_units, None
        if relu_units is not None:
            check_positive(relu_units=relu_units)
            self.relu = keras.layers.Dense(
                relu_units, activation="relu", name="head_relu"
            )
        self.dense = keras.layers.Dense(
            units,
            kernel_initializer=bert_initializer(),
            dtype="float32",  # losses read float32 logits in every precision
            name="head",
        )

    @property
    def heads(self):
        """The head by its name, which is its task where a model has no other."""
        return {self.task: self}

    def inputs(self, encoder):
        """Inputs of a model with this head, and what its encoder reads of them.

        Args:
            encoder: `keras_recbert.models.encoder.Encoder`.

        Returns:
            Tuple of two dicts of Keras tensors: the inputs, and the `inputs` of
            `EncoderOutputs`, with what `connect` reads beside. By default both are
            those of the encoder.
        """
        return encoder.input, encoder.input

    def logits(self, rows):
        """Logits of rows of the encoder.

        Args:
            rows: float, `(batch_size, hidden_dim)`. BERT's pooled output, or a mean.

        Returns:
            float32, `(batch_size, units)` or another shape that the loss reads.
        """
        return self.dense(rows if self.relu is None else self.relu(rows))

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

    def read_labels(self, fields, labels, own_loss=False):
        """As `as_targets`, for a head whose labels are about the texts themselves.

        Args:
            fields: dict of field to its column.
            labels, own_loss: as for `as_targets`.

        Returns:
            array, `(num_examples, ...)`.
        """
        return self.as_targets(labels, own_loss)

    def row_targets(self, rows, targets):
        """Targets of rows, where an example may have several; called in a graph.

        Args:
            rows: dict of the `row_features` of the packer, and `padding_mask`.
            targets: tensor, what `read_labels` gave.

        Returns:
            tensor `(num_rows, ...)`; by default each row has the target of its example.
            Targets of tokens are a `tf.RaggedTensor` `(num_rows, None)`, as long as the
            rows; batches pad them with -1.
        """
        return tf.gather(targets, rows["example"])

    def as_weights(self, sample_weight):
        """Weights of examples, or None, as the loss takes them."""
        return sample_weight

    def check_elements(self, spec):
        """Raises `ValueError` for a data set whose labels are not those of the head.

        Args:
            spec: tuple of the specs of texts or ids, labels, and weights if any.
        """

    def answer(self, logits):
        """What the SavedModel gives for logits: a dict of tensors, a row an example."""
        return {"scores": logits}

    def padded_logits(self, logits, length):
        """Logits of tokens, padded to a length: batches can be joined."""
        more = [[0, 0] for _ in logits.shape]
        more[self.token_axis][1] = length - tf.shape(logits)[self.token_axis]
        return tf.pad(logits, more, constant_values=self.padding_logit)

    def answer_rows(self, logits, rows, columns):
        """What the SavedModel gives for texts; by default what `answer` gives.

        Args:
            logits: tensor of logits, of rows where an example may have several.
            rows: dict of the `row_features` of the packer.
            columns: tuple of string tensors, the fields of examples, see
                `keras_recbert.text.Packer.columns`.

        Returns:
            dict of tensors, a row an example.
        """
        return self.answer(logits)

    def answer_text(self, answers, texts, *places):
        """What the SavedModel gives for raw texts, where its packer splits them.

        Args:
            answers: dict, as of `answer_rows`, for what the texts were split into.
            texts: string tensor `(batch_size,)`.
            *places: what `split_text` of the packer gave.

        Returns:
            dict of tensors, a row an example.
        """
        raise NotImplementedError

    def answers_by_head(self):
        """Functions from logits to answers, by the signatures of single heads."""
        return {}

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

    def tune(self, labels, predictions):
        """Chooses what follows from a validation set, not from training; by default
        nothing.

        Args:
            labels, predictions: as for `scores`.
        """

    @classmethod
    def check_metrics(cls, names, arguments):
        """Raises what is wrong with the metrics of a data set, before any training.

        Args:
            names: sequence of str. What validation sets will be scored by.
            arguments: dict of the arguments of the constructor.

        Raises:
            ValueError: if `scores` will not know one of them.
        """
        valid = dict.fromkeys((*cls.metric_names, *cls.more_metrics))
        for name in names:
            if name not in valid:
                raise ValueError(
                    f"The head {cls.task!r} has no metric {name!r}. "
                    f"{nearest(name, valid)}Valid: {', '.join(valid)}."
                )

    @classmethod
    def arguments(cls):
        """Names of the arguments of the constructor, a tuple."""
        return tuple(inspect.signature(cls).parameters)

    def get_config(self):
        """Arguments that make an equal head: a dict of JSON."""
        return {name: getattr(self, name) for name in self.arguments()}

    def describe(self, encoder):
        """What makes the head again on an encoder: a dict of JSON."""
        return {"task": self.task, **self.get_config()}


_HEADS = Registry("task", reserved=["pretrainer"])


def register_head(cls):
    """Class decorator: adds a head under its `task`.

    Args:
        cls: subclass of `Head`.

    Returns:
        `cls`.

    Raises:
        ValueError: if the name is taken, or there is none.
    """
    _HEADS.add(cls.task, cls)
    return cls


def list_heads():
    """Names of the tasks that have a head, in the order of their registration."""
    return _HEADS.names()


def get_head(task):
    """The class of the head of a task.

    Raises:
        UnknownNameError: if there is none.
    """
    return _HEADS[task]


def make_head(task, arguments):
    """The head of a task.

    Args:
        task: str.
        arguments: dict of the arguments of its constructor.

    Raises:
        ValueError: if there is no such task, or it takes other arguments.
    """
    cls = get_head(task)
    check_arguments(f"task={task!r}", arguments, cls.arguments())
    try:
        return cls(**arguments)
    except TypeError as error:
        for name, parameter in inspect.signature(cls).parameters.items():
            if parameter.default is parameter.empty and name not in arguments:
                raise ValueError(
                    f"task={task!r} needs `{name}`. Give it beside the task, "
                    f"{name}=..., as the docstring of {cls.__name__} describes it."
                ) from error
        raise ValueError(
            f"task={task!r} needs other arguments ({error}). It takes: "
            f"{', '.join(cls.arguments())}."
        ) from error


def as_array(labels):
    """Labels or weights of examples as an array.

    Raises:
        ValueError: for rows that differ in length.
    """
    try:
        return np.asarray(labels)
    except ValueError as error:
        raise ValueError(
            "Labels and weights are arrays with a row an example, and rows as long as "
            f"each other; a weight is of an example. Received: {labels!r:.80}."
        ) from error


def check_labels(labels, is_valid, valid):
    """Raises `ValueError` for the first of `labels` that is not `is_valid`."""
    for index, label in enumerate(labels):
        if not is_valid(label):
            raise ValueError(
                f"`y` must hold {valid}. Received: {np.asarray(label).tolist()!r} at "
                f"index {index}."
            )
