"""A user's own table: from files to examples, and from logits to predictions."""

from dataclasses import dataclass

import numpy as np

from keras_recbert.data.columns import check_column, choose_columns
from keras_recbert.data.holding_out import group_texts, same_text, split_by_label
from keras_recbert.data.tables import Table, check_table, read_table
from keras_recbert.data.text_labels import (
    class_names,
    guess_task,
    read_labels,
    to_class_ids,
    to_scores,
)
from keras_recbert.data.tsv import Examples
from keras_recbert.folders import new_file
from keras_recbert.own_data_options import table_name
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
    """

    task: TrainingTask
    train: Examples
    dev: Examples
    test: Examples | None
    test_table: Table | None
    notes: list[str]
    seed: int

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
            )
            if self.test.labels is not None:
                split, examples = "test", self.test
        if split == "dev":
            logits = predict(self.dev)
        names = self.task.label_names
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
    labels = read_labels(table, label)
    where = f"{table.path}, column {label!r}"
    kind, more = _choose_task(config, labels, where)
    notes += more
    names = class_names(labels, where) if kind == "classifier" else None
    reader = _Reader(config.encoding, texts, label, names)
    train = reader.examples(table, labels)
    notes += _note_empty(table, train)
    if config.validation is None:
        train, dev, more = _split(table, train, config)
    else:
        _, dev, more = reader.read(config.validation)
        more += _note_known(config.validation, train, dev)
    notes += [*more, *_note_missing(train, dev)]
    if names is None:
        _check_scores(config.validation or table.path, label, dev)
    test_table = test = None
    if config.test is not None:
        test_table, test, more = reader.read(config.test, is_labelled=False)
        _check_added(test_table)
        notes += [*more, *_note_known(config.test, train, test)]
        if test.labels is None:
            notes.append(f"{config.test}: no column {label!r}, so no scores on it.")
    notes.append(_sizes(train, dev, test))
    metrics = ("accuracy", "macro_f1") if names else ("pearson", "spearman")
    name = table_name(config.train)
    task = TrainingTask(name, names, metrics, metrics[0], scales_labels=names is None)
    if task.scales_labels:
        notes.append("Losses are of labels with mean 0 and standard deviation 1.")
    return OwnData(task, train, dev, test, test_table, notes, config.seed)


def _choose_task(config, labels, where):
    """`"classifier"` or `"regressor"`, and a sentence if it was guessed."""
    kind, notes = config.task, []
    if kind is None:
        kind, why = guess_task(labels, where)
        notes.append(f"A {kind}, because {why} (--task).")
    if kind == "regressor" and config.class_weights is not None:
        raise ValueError(
            f"{where}: `class_weights` are for a classifier, and this is a {kind}. "
            "Leave class_weights (--class-weights) out, or pass task='classifier' "
            "(--task classifier)."
        )
    return kind, notes


@dataclass(frozen=True)
class _Reader:
    """Reads tables like that of training.

    Args:
        encoding: as `read_table` takes it.
        texts: tuple of the text columns.
        label: str. The label column.
        names: tuple of the names of classes, or None for scores.
    """

    encoding: str | None
    texts: tuple
    label: str
    names: tuple | None

    def read(self, path, is_labelled=True):
        """The table, its `Examples` and notes; without labels if it may lack them."""
        table = read_table(path, self.encoding)
        needed = [*self.texts, self.label] if is_labelled else self.texts
        for name in needed:
            check_column(table, name)
        has_labels = self.label in table.columns
        labels = read_labels(table, self.label) if has_labels else None
        examples = self.examples(table, labels)
        return table, examples, [*table.notes, *_note_empty(table, examples)]

    def examples(self, table, labels):
        texts = tuple(table.values(name) for name in self.texts)
        if labels is None:
            return Examples(texts, label_names=self.names)
        if self.names is None:
            return Examples(texts, to_scores(table, self.label, labels))
        ids = to_class_ids(table, self.label, labels, self.names)
        return Examples(texts, ids, self.names)


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
    by_label = "" if examples.label_names is None else ", of each label alike"
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
    missing = [name for id, name in enumerate(names) if id not in dev.labels]
    if not missing:
        return []
    shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    return [f"No validation example has the label {shown}."]


def write_predictions(path, table, logits, label_names):
    """Writes the columns of a table with `prediction` and `score`.

    Args:
        path: path of a CSV in UTF-8; written whole, then renamed.
        table: `Table`.
        logits: float array `(num_rows, num_classes)`, or `(num_rows,)` of a regressor.
        label_names: tuple of the names of classes, or None for a regressor. The score
            is the probability of the prediction; that of a regressor the same number.
    """
    from scipy.special import softmax

    predictions = scores = logits
    if label_names is not None:
        predictions = np.array(label_names, object)[logits.argmax(axis=1)]
        scores = softmax(logits, axis=1).max(axis=1)
    frame = table.frame.assign(prediction=predictions, score=scores)
    with new_file(path) as written:
        frame.to_csv(written, index=False, lineterminator="\n", encoding="utf-8")
