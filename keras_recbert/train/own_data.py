"""A user's own table: from files to examples, and from logits to predictions."""

import csv
from dataclasses import dataclass

import numpy as np

from keras_recbert.data.columns import check_column, choose_columns
from keras_recbert.data.holding_out import group_texts, same_text, split_by_label
from keras_recbert.data.tables import Table, check_table, read_table
from keras_recbert.data.tsv import Examples
from keras_recbert.folders import new_file
from keras_recbert.own_data_options import table_name
from keras_recbert.train.multilabel_report import write_multilabel_report
from keras_recbert.train.own_labels import METRICS, OwnLabels
from keras_recbert.train.report import write_report
from keras_recbert.train.training_run import TrainingTask

VALIDATION_FRACTION = 0.1
ADDED_COLUMNS = ("prediction", "score")


@dataclass(frozen=True, eq=False)
class OwnData:
    """What a run on a user's own table reads.

    Args:
        task: `TrainingTask`.
        train, dev: `Examples`.
        test: `Examples`, without labels if the table has none; None without a table.
        test_table: the `Table` of `test`, or None.
        notes: list of sentences for the user.
        seed: int.
        separator: str between the labels of a multilabel classifier, or None.
    """

    task: TrainingTask
    train: Examples
    dev: Examples
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
        split, examples, logits = "dev", self.dev, None
        if self.test is not None:
            logits = predict(self.test)
            write_predictions(
                folder / "predictions.csv",
                self.test_table,
                logits,
                self.task.label_names,
                self.separator,
            )
            if self.test.labels is not None:
                split, examples = "test", self.test
        if split == "dev":
            logits = predict(self.dev)
        names = self.task.label_names
        if self.task.is_multilabel:
            return write_multilabel_report(folder, split, examples, logits, names)
        return write_report(
            folder, split, train_examples, examples, logits, names, self.seed
        )


def check_files(config):
    """Raises what `load_own_data` would, of names and places of files alone.

    Args:
        config: `FineTuningConfig` with `train`.
    """
    for path in (config.train, config.validation, config.test):
        if path is not None:
            check_table(path)


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
    train = reader.examples(table)
    notes += _note_empty(table, train)
    if config.validation is None:
        train, dev, more = _split(table, train, config)
    else:
        _, dev, more = reader.read(config.validation)
        more += _note_known(config.validation, train, dev)
    notes += [*more, *_note_missing(train, dev)]
    if labels.names is None:
        _check_scores(config.validation or table.path, label, dev)
    test_table = test = None
    if config.test is not None:
        test_table, test, more = reader.read(config.test, is_labelled=False)
        _check_added(test_table)
        notes += [*more, *_note_known(config.test, train, test)]
        if test.labels is None:
            notes.append(f"{config.test}: no column {label!r}, so no scores on it.")
    notes.append(_sizes(train, dev, test))
    task = TrainingTask(
        table_name(config.train),
        labels.names,
        METRICS[labels.kind],
        METRICS[labels.kind][0],
        scales_labels=labels.kind == "regressor",
        is_multilabel=labels.kind == "multilabel_classifier",
    )
    if task.scales_labels:
        notes.append("Losses are of labels with mean 0 and standard deviation 1.")
    separator = labels.separator
    return OwnData(task, train, dev, test, test_table, notes, config.seed, separator)


@dataclass(frozen=True)
class _Reader:
    """Reads tables like that of training.

    Args:
        encoding: as `read_table` takes it.
        texts: tuple of the text columns.
        labels: `OwnLabels`.
    """

    encoding: str | None
    texts: tuple
    labels: OwnLabels

    def read(self, path, is_labelled=True):
        """The table, its `Examples` and notes; without labels if it may lack them."""
        table = read_table(path, self.encoding)
        column = self.labels.column
        needed = [*self.texts, column] if is_labelled else self.texts
        for name in needed:
            check_column(table, name)
        examples = self.examples(table, column in table.columns)
        return table, examples, [*table.notes, *_note_empty(table, examples)]

    def examples(self, table, has_labels=True):
        texts = tuple(table.values(name) for name in self.texts)
        labels = self.labels.read(table) if has_labels else None
        return Examples(texts, labels, self.labels.names)


def _split(table, examples, config):
    """Training and validation examples of one table, and notes."""
    fraction, notes = config.validation_fraction or VALIDATION_FRACTION, []
    groups = group_texts(examples.texts)
    if len(examples.texts) == 2:
        largest = max(np.unique(groups, return_counts=True)[1])
        if largest > fraction * len(examples):
            groups = group_texts(examples.texts, "first")
            notes.append(
                f"{table.path}: second texts recur in most pairs, so the split keeps "
                "first texts apart, and not second ones."
            )
    train, dev = split_by_label(examples, fraction, config.seed, groups)
    is_class = examples.label_names is not None and examples.labels.ndim == 1
    by_label = ", of each label alike" if is_class else ""
    notes.append(
        f"{table.path}: {fraction:.0%} held out to validate on{by_label}, no text on "
        f"both sides (seed {config.seed})."
    )
    return train, dev, notes


def _sizes(train, dev, test):
    sizes = f"{len(train):,} rows to train on, {len(dev):,} to validate on"
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
    labels = examples.labels
    if np.ptp(labels) == 0:
        raise ValueError(
            f"{path}, column {label!r}: all {len(labels):,} labels to score on are "
            f"{labels[0]:g}. Expected at least two different numbers."
        )


def _note_empty(table, examples):
    """Sentences on rows whose texts are all empty."""
    pairs = zip(*examples.texts, strict=True)
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
    return zip(*(map(same_text, column) for column in examples.texts), strict=True)


def _note_missing(train, dev):
    """Sentences on labels that the validation examples lack."""
    names = train.label_names or ()
    if dev.labels.ndim == 2:
        missing = [
            n for n, has in zip(names, dev.labels.T, strict=True) if not has.any()
        ]
    else:
        missing = [name for id, name in enumerate(names) if id not in dev.labels]
    if not missing:
        return []
    shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    return [f"No validation example has the label {shown}."]


def write_predictions(path, table, logits, label_names, separator=None):
    """Writes the columns of a table with `prediction` and `score`.

    The score is the probability of the prediction; of a regressor the same number; of
    several labels the probability of the decision that was least sure.

    Args:
        path: path of a CSV in UTF-8; written whole, then renamed.
        table: `Table`.
        logits: float array `(num_rows, num_classes)`, or `(num_rows,)` of a regressor.
        label_names: tuple of the names of classes, or None for a regressor.
        separator: str between the labels of a multilabel classifier, or None.
    """
    from scipy.special import expit, softmax

    predictions = scores = logits
    if separator is not None:
        predictions = [
            separator.join(np.array(label_names, object)[row >= 0]) for row in logits
        ]
        scores = expit(np.abs(logits)).min(axis=1)
    elif label_names is not None:
        predictions = np.array(label_names, object)[logits.argmax(axis=1)]
        scores = softmax(logits, axis=1).max(axis=1)
    frame = table.frame.assign(prediction=predictions, score=scores)
    with new_file(path) as written:
        frame.to_csv(
            written,
            index=False,
            lineterminator="\n",
            encoding="utf-8",
            # Every text in quotes: Python 3.11 puts none around a lone carriage return.
            quoting=csv.QUOTE_NONNUMERIC,
        )
