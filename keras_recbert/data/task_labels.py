"""Checks of what the reader of a task gives, and labels as heads take them."""

import dataclasses
import math

import numpy as np

from keras_recbert.data.examples import Examples

SHOWN = 20  # names of classes in a message


def check_examples(task, path, split, examples):
    """Examples of a task whose labels are class ids, numbers, or rows of 0 and 1.

    Args:
        task: `TaskSpec`.
        path: the file, for errors.
        split: str.
        examples: what `task.read` gave for it.

    Returns:
        `Examples`. A target `label` of a head with `label_names` is int32
        `(num_examples,)`, or float32 `(num_examples, num_labels)` of 0 and 1 where it
        was lists of names; that of a regressor float32 `(num_examples,)`.

    Raises:
        TypeError: if these are no `Examples`.
        ValueError: if there are none, fields or targets are not those of the task, or
            a label is not valid; names the file and the example.
    """
    where = f"{path} ({split} of {task.name})"
    if not isinstance(examples, Examples):
        raise TypeError(
            f"`read` of task {task.name!r} must give `keras_recbert.data.Examples`. "
            f"Received for {path}: {type(examples).__name__}."
        )
    if not len(examples):
        raise ValueError(f"{where} has no examples.")
    _check_columns(where, "fields", examples.fields, task.fields)
    if examples.targets is None and split in task.test_splits:
        return examples
    _check_columns(where, "targets", examples.targets or {}, task.targets)
    targets = dict(examples.targets)
    if "label" in targets:
        check = _Check(task, path, examples.ids)
        targets["label"] = check.labels(targets["label"])
    return dataclasses.replace(examples, targets=targets)


def name_labels(task, train, *others):
    """A task whose classes are the labels of its training examples, and class ids.

    Args:
        task: `TaskSpec` with `labels_of_train`.
        train: `Examples`, whose labels are words.
        *others: dicts of split name to such `Examples`.

    Returns:
        Tuple of the `TaskSpec` with `label_names`, `train` and `others` with int32
        class ids for labels.

    Raises:
        ValueError: if the training examples have one label only, or others have a
            label that these lack; names the file and the example.
    """
    names = tuple(sorted(map(str, set(train.targets["label"]))))
    if len(names) < 2:
        raise ValueError(
            f"{task.files['train']} (train of {task.name}): expected two different "
            f"labels or more. Received: {names[0]!r} for all {len(train):,} examples."
        )
    arguments = {**task.head_arguments, "label_names": names}
    task = dataclasses.replace(task, head_arguments=arguments)

    def with_ids(split, examples):
        labels = list(map(str, examples.targets["label"]))
        examples = dataclasses.replace(examples, targets={"label": labels})
        return check_examples(task, task.files[split], split, examples)

    numbered = [
        {split: with_ids(split, examples) for split, examples in splits.items()}
        for splits in others
    ]
    return task, with_ids("train", train), *numbered


def _check_columns(where, argument, columns, expected):
    if tuple(columns) != tuple(expected):
        raise ValueError(
            f"{where}: expected the {argument} {', '.join(expected)}, in this order. "
            f"Received: {', '.join(columns) or 'none'}."
        )


@dataclasses.dataclass(frozen=True)
class _Check:
    """Labels of the examples of a file."""

    task: object
    path: object
    ids: list

    def labels(self, labels):
        names = self.task.label_names
        if names is None:
            return self._numbers(labels)
        if isinstance(labels, np.ndarray) and labels.ndim == 2:
            return labels.astype(np.float32)  # rows of 0 and 1, for the head
        ids = {name: index for index, name in enumerate(names)}
        if isinstance(labels[0], (list, tuple, set)):
            rows = np.zeros((len(labels), len(names)), np.float32)
            for row, several in enumerate(labels):
                for label in several:
                    rows[row, self._id(ids, label, row)] = 1.0
            return rows
        if isinstance(labels[0], str):
            found = [self._id(ids, label, row) for row, label in enumerate(labels)]
            return np.array(found, np.int32)
        return self._class_ids(np.asarray(labels), len(names))

    def _class_ids(self, labels, num_classes):
        for row in np.flatnonzero(~np.isin(labels, range(num_classes))):
            raise self._error(row, labels[row], f"0 to {num_classes - 1}, or a name")
        return labels.astype(np.int32)

    def _id(self, ids, label, row):
        if label not in ids:
            shown = ", ".join(map(repr, list(ids)[:SHOWN]))
            raise self._error(row, label, shown + (", ..." if len(ids) > SHOWN else ""))
        return ids[label]

    def _numbers(self, labels):
        """Those of a regressor; another head without names takes what it takes."""
        if self.task.head != "regressor":
            return np.asarray(labels)
        low, high = self.task.score_range or (-math.inf, math.inf)
        for row, label in enumerate(labels):
            # Written so that NaN fails too.
            if not (
                isinstance(label, (int, float, np.number)) and low <= label <= high
            ):
                raise self._error(row, label, f"numbers from {low:g} to {high:g}")
            if math.isinf(label):
                raise self._error(row, label, "finite numbers")
        return np.asarray(labels, np.float32)

    def _error(self, row, label, valid):
        label = label.item() if isinstance(label, np.generic) else label
        return ValueError(
            f"{self.path}, example {self.ids[row]!r}: {label!r} is not a label of task "
            f"{self.task.name!r}. Valid: {valid}."
        )
