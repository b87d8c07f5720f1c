"""Examples that a run predicts: scored at the end of each epoch, or written."""

from types import MappingProxyType

import numpy as np

from keras_recbert.heads import Head
from keras_recbert.tasks.example_rows import ExampleRows, padded_targets
from keras_recbert.tasks.row_answers import answers_of_rows, has_several_rows
from keras_recbert.tasks.text_batches import columns, ordered_batches
from keras_recbert.train.even_batches import even_features


class ValidationSplit:
    """A validation split, packed once.

    Args:
        run: `keras_recbert.train.run.Run`.
        model: the model of the run.
        examples: `Examples`.
        scale: optional `LabelScale`.
        own_metrics: those of `TaskSpec`.
    """

    def __init__(self, run, model, examples, scale, own_metrics=MappingProxyType({})):
        self._examples, self._own_metrics = examples, own_metrics
        self._loss = model.head.loss()  # of labels, whatever training learns from
        self._labels = labels_of(examples)
        self._targets = learned_labels(model, examples, scale)
        self._predicted = _Predicted(run, model, examples, self._targets)

    def scores(self, model, metrics):
        """The loss and the scores of a model.

        Args:
            model: the model of the run.
            metrics: sequence of names of metrics.

        Returns:
            dict of `loss` and of each metric, to float.
        """
        logits = self._predicted.logits(model)
        loss = float(self._loss(self._predicted.targets, logits))
        return {"loss": loss, **self._scores(model.head, metrics, logits)}

    def _scores(self, head, metrics, logits):
        labels, predicted = self._targets, logits
        if self._predicted.rows is not None:
            labels, predicted = self._labels, self._predicted.of(head, logits)
        shared = [name for name in metrics if name not in self._own_metrics]
        found = head.scores(shared, labels, predicted) if shared else {}
        if self._own_metrics:
            predictions = head.predictions(predicted)
            for name, metric in self._own_metrics.items():
                found[name] = metric(self._examples, predictions)
        return {name: found[name] for name in metrics}

    def tune(self, model):
        """Lets the head choose what follows from this split, see `Head.tune`."""
        if type(model.head).tune is Head.tune:
            return
        logits = self._predicted.logits(model)
        model.head.tune(self._labels, self._predicted.of(model.head, logits))


def predict_examples(run, model, examples):
    """What a model says of examples, in their order.

    Args:
        run: `keras_recbert.train.run.Run`.
        model: the model of the run.
        examples: `Examples`, with targets or without.

    Returns:
        Array of logits; where an example may have several rows, the dict of arrays that
        the head answers.
    """
    predicted = _Predicted(run, model, examples)
    return predicted.of(model.head, predicted.logits(model))


def labels_of(examples):
    """What the head learns: the values of the only target, or the dict of several."""
    targets = examples.targets
    return next(iter(targets.values())) if len(targets) == 1 else targets


def learned_labels(model, examples, scale):
    """Labels as the head learns them, on the scale of training if there is one."""
    labels = labels_of(examples)
    labels = labels if scale is None else scale.apply(labels)
    return model.head.read_labels(examples.fields, labels)


class _Predicted:
    """Examples, packed for `predict`.

    Attributes:
        rows: `ExampleRows`, or None where an example is one row.
        targets: those of rows.
    """

    def __init__(self, run, model, examples, targets=None):
        packer, head = model.preprocessor, model.head
        texts = tuple(examples.fields.values())
        num_devices = run.strategy.num_replicas_in_sync
        # So only the last batch may have rows too many.
        size = 2 * min(run.config.batch_size, len(examples))
        size = -(-size // num_devices) * num_devices
        self.rows = None
        self.targets = targets
        self._place = slice(len(examples))
        if has_several_rows(packer):
            self._columns = columns(packer, texts)
            given = () if targets is None else (targets,)
            self.rows = ExampleRows(packer, self._columns, given, head.row_targets)
            if targets is not None:
                (self.targets,) = padded_targets(self.rows.targets, packer.limit)
            order = self.rows.longest_first
            self._place = np.argsort(order)
            features = self.rows.batches(size, order=order)
        else:
            features = ordered_batches(packer, texts, None, size)
        self._batches = even_features(features, run.strategy)

    def logits(self, model):
        """Those of the rows, in their order."""
        return model.predict(self._batches, verbose=0)[self._place]

    def of(self, head, logits):
        """Logits of examples, or what the head answers to those of several rows."""
        if self.rows is None:
            return logits
        return answers_of_rows(head, self.rows, logits, self._columns)
