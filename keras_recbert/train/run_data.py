"""What a run learns, and what it is scored on: the examples of one task."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable

import numpy as np

from keras_recbert.data.examples import Examples
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.train.labelled_batches import LabelledBatches
from keras_recbert.train.run_model import LabelScale, build_model
from keras_recbert.train.validation_split import (
    ValidationSplit,
    labels_of,
    predict_examples,
)


@dataclasses.dataclass(frozen=True, eq=False)
class RunData:
    """The examples of a task.

    Args:
        task: `TaskSpec`.
        train: `Examples`.
        validation: dict of split name to `Examples`.
        notes: list of sentences, which were printed; they go into the results.
        test: dict of split name to `Examples` that `finish` reads, with labels or
            without, or None; a run that resumes has to read the same.
        finish: optional function that is called once the model is that of the best
            epoch, with the folder of the run, the training examples and a function
            from `Examples` to logits; it gives a dict of scores to add.
    """

    task: TaskSpec
    train: Examples
    validation: dict
    notes: list = dataclasses.field(default_factory=list)
    test: dict | None = None
    finish: Callable | None = None

    @property
    def name(self):
        return self.task.name

    @property
    def version(self):
        return self.task.version

    @property
    def metrics(self):
        return self.task.metrics

    @property
    def main_metric(self):
        return self.task.main_metric

    def limited(self, limit):
        """These examples, but for those of train behind the first `limit`, if any."""
        if limit is None:
            return self
        rows = range(min(limit, len(self.train)))
        return dataclasses.replace(self, train=self.train.take(rows))

    def labelled(self, config):
        """Batches of texts and labels."""
        return LabelledBatches(config, self.task, self.train)

    def checksums(self):
        """Checksum of each split, a dict."""
        splits = {"train": self.train, **self.validation, **(self.test or {})}
        return {name: _checksum(examples) for name, examples in splits.items()}

    def label_scale(self):
        """`LabelScale` of the labels to train on, or None."""
        return LabelScale.of(labels_of(self.train)) if self.task.scales_labels else None

    def build(self, config, vocabulary, vectors, precision):
        """The model of the task, untrained."""
        model = build_model(config, self.task, vocabulary, precision, vectors)
        model.fields = model.preprocessor.fields[: len(self.train.fields)]
        return model

    def splits(self, run, model, scale):
        """What scores the model after each epoch: a dict by validation split."""
        return {
            split: ValidationSplit(run, model, examples, scale, self.task.own_metrics)
            for split, examples in self.validation.items()
        }

    def sizes(self):
        """What results say of the number of examples: a dict of JSON."""
        sizes = {key: len(value) for key, value in self.validation.items()}
        return {"train_examples": len(self.train), "validation_examples": sizes}

    def final_scores(self, run, model):
        """Writes what comes of predictions, and gives the scores to add: a dict."""
        if self.finish is None:
            return {}
        predict = functools.partial(predict_examples, run, model)
        return self.finish(run.folder, self.train, predict)

    def warnings(self):
        """What will keep a model from learning, printed and returned as sentences."""
        labels, task = labels_of(self.train), self.task
        if not isinstance(labels, np.ndarray):
            return []
        labels = np.unique(labels, axis=0)
        if len(labels) > 1:
            return []
        if task.label_names and np.ndim(labels[0]):
            names = zip(task.label_names, labels[0], strict=True)
            label = [name for name, has in names if has]
        else:
            label = task.label_names[labels[0]] if task.label_names else labels[0]
        warning = (
            f"All {len(self.train):,} training examples have the label {label!s}: the "
            "model can learn nothing but to answer it."
        )
        print(f"Warning: {warning}", flush=True)
        return [warning]


def _checksum(examples):
    """Checksum of fields and targets."""
    digest = hashlib.sha256()
    for columns in (examples.fields, examples.targets or {}):
        for name, column in columns.items():
            for value in (name, *column):
                digest.update(str(value).encode() + b"\0")
    return digest.hexdigest()
