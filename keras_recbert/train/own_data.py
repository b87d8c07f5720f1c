"""A user's own table: from files to examples, and from logits to predictions."""

import os
from dataclasses import dataclass

import numpy as np

from keras_recbert.config.own_data import table_name
from keras_recbert.data.columns import check_column, choose_columns
from keras_recbert.data.examples import Examples
from keras_recbert.data.json_values import UniqueIds
from keras_recbert.data.split import group_fields, same_text, split_by_label
from keras_recbert.data.tables import Table, check_table, read_table
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.train.multilabel_report import write_multilabel_report
from keras_recbert.train.own_labels import METRICS, OwnLabels
from keras_recbert.train.predictions import (
    ADDED_COLUMNS,
    ID_COLUMN,
    write_predictions,
)
from keras_recbert.train.report import write_report

FIELDS = ("text", "text_pair")
VALIDATION_FRACTION = 0.1


@dataclass(frozen=True, eq=False)
class OwnData:
    """What a run on a user's own table reads.

    Args:
        task: `TaskSpec` of the tables.
        train, validation: `Examples`.
        test: `Examples`, without targets if the table has none; None without a table.
        test_table: the `Table` of `test`, or None.
        notes: list of sentences for the user.
        seed: int.
        separator: str between the labels of a multilabel classifier, or None.
    """

    task: TaskSpec
    train: Examples
    validation: Examples
    test: Examples | None
    test_table: Table | None
    notes: list[str]
    seed: int
    separator: str | None = None

    def finish(self, folder, train_examples, predict):
        """Writes predictions and a report; the `finish` of `training_run.train`.

        The report is on the test table if that has labels, else on the validation
        examples.

        Args:
            folder: path.
            train_examples: `Examples` that were trained on.
            predict: function from `Examples` to logits.

        Returns:
            dict of scores, such as `test_accuracy`.
        """
        split, examples, logits = "validation", self.validation, None
        if self.test is not None:
            logits = predict(self.test)
            write_predictions(
                folder / "predictions.csv",
                self.test_table,
                self.test.ids,
                logits,
                self.task.label_names,
                self.separator,
            )
            if self.test.targets is not None:
                split, examples = "test", self.test
        if split == "validation":
            logits = predict(self.validation)
        names = self.task.label_names
        if self.separator is not None:
            return write_multilabel_report(folder, split, examples, logits, names)
        return write_report(
            folder, split, train_examples, examples, logits, names, self.seed
        )


def check_files(config):
    """Raises what `load_own_data` would, of names and places of files alone.

    Args:
        config: `FineTuningConfig` with `train`.
    """
    for name in ("train", "validation", "test"):
        path = getattr(config, name)
        if path is not None:
            check_no_folder(name, path)
            check_table(path)


def check_no_folder(name, path):
    """Raises `FileNotFoundError` for a folder in place of a file of one's own."""
    if os.path.isdir(path):
        raise FileNotFoundError(
            f"`{name}` must be a file. Received: {name}={path!r}, a folder. Name a "
            "file in it; the folder of a data set of `recbert list --tasks` is "
            "data_dir (--data-dir DIR), with the name of its task (--task TASK)."
        )


def load_own_data(config):
    """Reads the tables of a run.

    Args:
        config: `FineTuningConfig` with `train`.

    Returns:
        `OwnData`.

    Raises:
        FileNotFoundError: if a file is not there.
        ValueError: where a table is not as it should be; names file, line and column.
        ImportError: without pandas or pyarrow.
    """
    table = read_table(config.train, config.encoding)
    texts, label, chosen = choose_columns(
        table, config.text_column, config.label_column
    )
    notes = [*table.notes, *chosen]
    labels, more = OwnLabels.choose(table, label, config)
    notes += more
    reader = _Reader(config.encoding, texts, labels)
    task = _task_spec(config, reader)
    train = reader.examples(table)
    notes += _note_empty(table, train)
    if config.validation is None:
        train, validation, more = _split(table, train, config)
    else:
        _, validation, more = reader.read_table(config.validation)
        more += _note_known(config.validation, train, validation)
    notes += [*more, *_note_missing(task, validation)]
    if labels.names is None:
        _check_scores(config.validation or table.path, label, validation)
    test_table = test = None
    if config.test is not None:
        test_table, test, more = reader.read_table(config.test, is_labelled=False)
        _check_added(test_table)
        notes += [*more, *_note_known(config.test, train, test)]
        if test.targets is None:
            notes.append(f"{config.test}: no column {label!r}, so no scores on it.")
    notes.append(_sizes(train, validation, test))
    if task.scales_labels:
        notes.append("Losses are of labels with mean 0 and standard deviation 1.")
    separator = labels.separator
    return OwnData(
        task, train, validation, test, test_table, notes, config.seed, separator
    )


def _task_spec(config, reader):
    """The task spec of a user's tables."""
    labels = reader.labels
    files = {
        "train": config.train,
        "validation": config.validation,
        "test": config.test,
    }
    return TaskSpec(
        name=table_name(config.train),
        fields=FIELDS[: len(reader.texts)],
        head=labels.kind,
        head_arguments={} if labels.names is None else {"label_names": labels.names},
        metrics=METRICS[labels.kind],
        files={split: path for split, path in files.items() if path is not None},
        read=reader,
        scales_labels=labels.kind == "regressor",
    )


@dataclass(frozen=True)
class _Reader:
    """Reads tables like that of training; the `read` of their `TaskSpec`.

    Args:
        encoding: as `read_table` takes it.
        texts: tuple of the text columns.
        labels: `OwnLabels`.
    """

    encoding: str | None
    texts: tuple
    labels: OwnLabels

    def __call__(self, path, split="train"):
        return self.read_table(path, is_labelled=split != "test")[1]

    def read_table(self, path, is_labelled=True):
        """The table, its `Examples` and notes; without labels if it may lack them."""
        table = read_table(path, self.encoding)
        column = self.labels.column
        needed = [*self.texts, column] if is_labelled else self.texts
        for name in needed:
            check_column(table, name)
        examples = self.examples(table, column in table.columns)
        return table, examples, [*table.notes, *_note_empty(table, examples)]

    def examples(self, table, has_labels=True):
        fields = {
            field: table.values(column)
            for field, column in zip(FIELDS, self.texts, strict=False)
        }
        targets = {"label": self.labels.read(table)} if has_labels else None
        ids = None
        if ID_COLUMN in set(table.columns) - {*self.texts, self.labels.column}:
            ids = UniqueIds("Give each row its own, or the column 'id' another name.")
            for where, id in zip(table.places, table.values(ID_COLUMN), strict=True):
                ids.add(where, id)
            ids = ids.list()
        return Examples(fields, targets, ids)


def _split(table, examples, config):
    """Training and validation examples of one table, and notes."""
    fraction, notes = config.validation_fraction or VALIDATION_FRACTION, []
    seed = config.seed_of_splits()
    groups = group_fields(examples.fields)
    if len(examples.fields) == 2:
        largest = max(np.unique(groups, return_counts=True)[1])
        if largest > fraction * len(examples):
            groups = group_fields(examples.fields, FIELDS[0])
            notes.append(
                f"{table.path}: second texts recur in most pairs, so the split keeps "
                "first texts apart, and not second ones."
            )
    train, validation = split_by_label(examples, fraction, seed, groups)
    is_class = examples.targets["label"].dtype.kind == "i"
    by_label = ", of each label alike" if is_class else ""
    notes.append(
        f"{table.path}: {fraction:.0%} held out to validate on{by_label}, no text on "
        f"both sides (seed {seed})."
    )
    return train, validation, notes


def _sizes(train, validation, test):
    sizes = f"{len(train):,} rows to train on, {len(validation):,} to validate on"
    return f"{sizes}, {len(test):,} to test on." if test is not None else f"{sizes}."


def _check_added(table):
    for name in ADDED_COLUMNS:
        if name in table.columns:
            raise ValueError(
                f"{table.path} has a column {name!r}, which predictions.csv adds. "
                "Rename it."
            )


def _check_scores(path, label, examples):
    """Raises `ValueError` where correlations are undefined, before any training."""
    labels = examples.targets["label"]
    if np.ptp(labels) == 0:
        raise ValueError(
            f"{path}, column {label!r}: all {len(labels):,} labels to score on are "
            f"{labels[0]:g}. Expected at least two different numbers."
        )


def _note_empty(table, examples):
    """Sentences on rows whose texts are all empty."""
    pairs = zip(*examples.fields.values(), strict=True)
    empty = [row for row, texts in enumerate(pairs) if not "".join(texts).strip()]
    if not empty:
        return []
    return [f"{table.where(empty[0])}: the text is empty, as in {len(empty):,} rows."]


def _note_known(path, train, examples):
    """Sentences on texts that were trained on, same whatever case and spacing."""
    known = set(_keys(train))
    count = sum(key in known for key in _keys(examples))
    if not count:
        return []
    return [
        f"{path}: {count:,} of {len(examples):,} rows have a text of the training "
        "rows; scores on these tell little."
    ]


def _keys(examples):
    columns = examples.fields.values()
    return zip(*(map(same_text, column) for column in columns), strict=True)


def _note_missing(task, validation):
    """Sentences on labels that the validation examples lack."""
    names, labels = task.label_names or (), validation.targets["label"]
    if labels.ndim == 2:
        missing = [n for n, has in zip(names, labels.T, strict=True) if not has.any()]
    else:
        missing = [name for id, name in enumerate(names) if id not in labels]
    if not missing:
        return []
    shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    return [f"No validation example has the label {shown}."]
