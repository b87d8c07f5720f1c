"""Predictions of a fine-tuned model as a CSV file."""

import csv

import numpy as np

from keras_recbert.core.folders import new_file
from keras_recbert.data.examples import texts_in
from keras_recbert.train.report_tables import write_csv

ID_COLUMN = "id"
ADDED_COLUMNS = ("prediction", "score")


def write_predictions(path, table, ids, logits, label_names, separator=None):
    """Writes the columns of a table with `prediction` and `score`, and with `id`.

    Args:
        path: path of a CSV in UTF-8; written whole, then renamed.
        table: `keras_recbert.data.tables.Table`.
        ids: list of str, a column `id` if the table has none.
        logits, label_names, separator: as `predict`.
    """
    predictions, scores = predict(logits, label_names, separator)
    frame = table.frame.assign(prediction=predictions, score=scores)
    if ID_COLUMN not in frame:
        frame.insert(0, ID_COLUMN, ids)
    with new_file(path) as written:
        frame.to_csv(
            written,
            index=False,
            lineterminator="\n",
            encoding="utf-8",
            # Every text in quotes: Python 3.11 puts none around a lone carriage return.
            quoting=csv.QUOTE_NONNUMERIC,
        )


def write_example_predictions(path, examples, logits, label_names, separator=None):
    """Writes `id`, the fields of examples, `label`, `prediction` and `score`.

    Args:
        path: as of `write_predictions`.
        examples: `Examples` with the target `label`.
        logits, label_names, separator: as `predict`.
    """
    labels = examples.targets["label"]
    if separator is not None:
        labels = _join(np.asarray(labels) > 0, label_names, separator)
    elif label_names is not None:
        labels = np.array(label_names, object)[labels]
    columns = (
        *(map(_text, column) for column in examples.fields.values()),
        labels,
        *predict(logits, label_names, separator),
    )
    header = (ID_COLUMN, *examples.fields, "label", *ADDED_COLUMNS)
    write_csv(path, header, zip(examples.ids, *columns, strict=True))


def predict(logits, label_names, separator=None):
    """What is predicted, and how sure the model is.

    Args:
        logits: float array `(num_examples, num_classes)`, or `(num_examples,)` of a
            regressor.
        label_names: sequence of the names of classes, or None for a regressor.
        separator: str between the labels of a multilabel classifier, or None.

    Returns:
        Tuple of predictions and scores, a value an example. The score is the
        probability of the prediction; of a regressor the same number; of several
        labels the probability of the decision that was least sure.
    """
    from scipy.special import expit, softmax

    if separator is not None:
        predictions = _join(logits >= 0, label_names, separator)
        return predictions, expit(np.abs(logits)).min(axis=1)
    if label_names is None:
        return logits, logits
    predictions = np.array(label_names, object)[logits.argmax(axis=1)]
    return predictions, softmax(logits, axis=1).max(axis=1)


def _text(value):
    return " ".join(texts_in(value))


def _join(has_label, label_names, separator):
    """The names of the labels of each row of `has_label`, bool, in one str."""
    names = np.array(label_names, object)
    return [separator.join(names[row]) for row in has_label]
