"""A report on the predictions of a fine-tuned model, for people."""

import dataclasses
import pathlib
from collections.abc import Sequence

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place
from keras_recbert.data.examples import Examples, texts_in
from keras_recbert.metrics.calibration import (
    NUM_BINS,
    expected_calibration_error,
)
from keras_recbert.metrics.glue import glue_scores
from keras_recbert.train.baselines import (
    bag_of_words_classes,
    bag_of_words_numbers,
    why_no_bag_of_words,
)
from keras_recbert.train.report_pictures import save_confusion_matrix, save_scatter
from keras_recbert.train.report_tables import (
    escape,
    markdown_table,
    write_csv,
    write_text,
)

TABLE_MISTAKES = 20  # rows of Markdown
CSV_MISTAKES = 1000
CLASS_SCORES = ("accuracy", "macro_f1")
NUMBER_SCORES = ("pearson", "spearman", "mean_absolute_error", "mean_squared_error")


def write_report(folder, split, train_examples, examples, logits, label_names, seed):
    """Writes what a model got right and wrong on a split: tables and a picture.

    Files:
        report_{split}.md: scores beside those of baselines, scores of each class, and
            the worst mistakes.
        confusion_{split}.png (classifier) or scatter_{split}.png (regressor).
        mistakes_{split}.csv: ids and whole texts of the mistakes that the model was
            surest of, or of the largest errors; 1000 at most.

    Each is written under a temporary name, then renamed; the Markdown comes last.

    Scores of a classifier: `accuracy`, `macro_f1` (mean F1 over the classes that the
    split or the predictions hold) and `calibration_error` (expected calibration error
    of 15 equally wide bins of the highest probability, Guo et al. 2017). Those of a
    regressor: `pearson`, `spearman`, `mean_absolute_error`, `mean_squared_error`.
    Baselines: `majority_...`, which always predicts the commonest training label, or
    `constant_...`, the mean of the training labels; and `tfidf_...`, logistic or
    ridge regression on TF-IDF weights, trained on `train_examples`, pairs joined.

    A score that is undefined is left out, and the report says why: correlations where
    all labels are equal, or of a constant; `tfidf_...` where the training examples
    hold one label or no words.

    Args:
        folder: str or path; made if it is not there.
        split: str. Name of the split, a part of file names.
        train_examples: `Examples` with the target `label`, which the baselines learn
            from.
        examples: `Examples` with the target `label`: those of the split.
        logits: float array `(num_examples, num_classes)`, or `(num_examples,)` of a
            regressor.
        label_names: sequence of str, or None for a regressor.
        seed: int. Seed of the run, named in the report; draws the points of a scatter
            plot that would have too many.

    Returns:
        dict of `{split}_{score}` to float.

    Raises:
        ValueError: if there are no examples or labels, or logits, labels and names do
            not fit; before anything is written.
        ImportError: without scikit-learn, SciPy or matplotlib; before any work.
    """
    check_installed("A report", "train", "sklearn", "scipy", "matplotlib")
    logits = np.asarray(logits, np.float64)
    _check(split, train_examples, examples, logits, label_names)
    check_place(folder)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = _Data(folder, split, train_examples, examples, logits, label_names, seed)
    scores, body = _number_report(data) if label_names is None else _class_report(data)
    write_text(folder / f"report_{split}.md", f"# {escape(data.title)}\n\n{body}")
    return {
        f"{split}_{prefix}{name}": value
        for prefix, row in scores.items()
        for name, value in row.items()
    }


@dataclasses.dataclass(frozen=True)
class _Data:
    """What a report is about; see `write_report`."""

    folder: pathlib.Path
    split: str
    train: Examples
    examples: Examples
    logits: np.ndarray
    label_names: Sequence[str] | None
    seed: int

    @property
    def title(self):
        return f"{self.split}: {len(self.examples):,} examples, seed {self.seed}"

    @property
    def labels(self):
        return self.examples.targets["label"]

    @property
    def columns(self):
        """Names of what `row` gives: the id, and the fields."""
        return ("id", *self.examples.fields)

    def row(self, row):
        values = (column[row] for column in self.examples.fields.values())
        return [
            self.examples.ids[row],
            *(" ".join(texts_in(value)) for value in values),
        ]


def _check(split, train_examples, examples, logits, label_names):
    for name, checked in (("train_examples", train_examples), ("examples", examples)):
        if "label" not in (checked.targets or {}) or not len(checked):
            raise ValueError(
                f"A report needs examples with labels. Received: `{name}` with "
                f"{len(checked)} examples, targets={checked.targets!r}."
            )
    shape = (len(examples),) if label_names is None else None
    if label_names is not None:
        shape = (len(examples), len(label_names))
    if logits.shape != shape:
        raise ValueError(
            f"`logits` of {split} must have the shape {shape}: "
            f"{len(examples)} examples"
            + ("" if label_names is None else f", {len(label_names)} `label_names`")
            + f". Received: {logits.shape}."
        )
    bad = np.argwhere(~np.isfinite(logits))
    if len(bad):
        raise ValueError(
            f"`logits` of {split} must be finite. Received {logits[tuple(bad[0])]} for "
            f"example {bad[0][0]} (counted from 0). Has the training diverged?"
        )
    if label_names is None:
        return
    for name, checked in (("train_examples", train_examples), ("examples", examples)):
        labels = checked.targets["label"]
        low, high = labels.min(), labels.max()
        if low < 0 or high >= len(label_names):
            raise ValueError(
                f"Labels of `{name}` must be from 0 to {len(label_names) - 1}, the ids "
                f"of `label_names`. Received: ids from {low} to {high}."
            )


def _class_report(data):
    """Scores by prefix, and the Markdown of a classifier; writes its other files."""
    from scipy.special import softmax
    from sklearn.metrics import confusion_matrix

    labels, names = data.labels, data.label_names
    probabilities = softmax(data.logits, axis=1)
    predictions = data.logits.argmax(axis=1)
    commonest = np.bincount(data.train.targets["label"]).argmax()
    rows = {
        "": ("this model", predictions),
        "majority_": (
            f"majority: always {escape(names[commonest])}",
            np.full_like(predictions, commonest),
        ),
    }
    note = _add_bag_of_words(
        data, rows, bag_of_words_classes, "TF-IDF, logistic regression"
    )
    scores = {
        prefix: _class_scores(labels, predicted)
        for prefix, (_, predicted) in rows.items()
    }
    error = expected_calibration_error(probabilities, labels)
    scores[""]["calibration_error"] = error

    matrix = confusion_matrix(labels, predictions, labels=range(len(names)))
    picture = data.folder / f"confusion_{data.split}.png"
    save_confusion_matrix(picture, matrix, names, data.title)
    columns = (*CLASS_SCORES, "calibration_error")
    table = _score_table(rows, scores, columns) + note
    return scores, table + _class_body(data, predictions, probabilities.max(axis=1))


def _class_body(data, predictions, highest):
    """The Markdown below the table of scores; writes the CSV of mistakes."""
    labels, names = data.labels, data.label_names
    wrong = np.flatnonzero(predictions != labels)
    wrong = wrong[np.argsort(-highest[wrong], kind="stable")]

    def values(row):
        return names[labels[row]], names[predictions[row]], float(highest[row])

    return (
        f"\nThe mean probability of a prediction is {highest.mean():.3f}, and "
        f"{1 - len(wrong) / len(labels):.3f} of them are right. The calibration error "
        f"is the mean distance between the two over {NUM_BINS} bins of probability "
        "(Guo et al. 2017); 0 is perfect.\n"
        f"\n![Confusion matrix](confusion_{data.split}.png)\n"
        f"\n## Classes\n\n{_class_table(labels, predictions, names)}"
        f"\n## Mistakes\n\n{len(wrong):,} mistakes in {len(labels):,} examples. "
        "Those that the model was surest of come first.\n\n"
        + _mistakes(data, wrong, ("label", "prediction", "probability"), values)
    )


def _class_scores(labels, predictions):
    from sklearn.metrics import f1_score

    return {
        "accuracy": float(np.mean(labels == predictions)),
        "macro_f1": float(
            f1_score(labels, predictions, average="macro", zero_division=0.0)
        ),
    }


def _class_table(labels, predictions, names):
    from sklearn.metrics import precision_recall_fscore_support

    # NaN, shown as a dash, for what has no examples: a class that is never predicted
    # has no precision, one that is not in the split no recall.
    columns = precision_recall_fscore_support(
        labels, predictions, labels=range(len(names)), zero_division=np.nan
    )
    header = ("id", "class", "precision", "recall", "F1", "support")
    rows = [
        (index, escape(name), *map(float, (precision, recall, f1)), f"{support:,}")
        for index, (name, precision, recall, f1, support) in enumerate(
            zip(names, *columns, strict=True)
        )
    ]
    return markdown_table(header, rows, num_names=2)


def _number_report(data):
    """Scores by prefix, and the Markdown of a regressor; writes its other files."""
    labels = np.asarray(data.labels, np.float64)
    mean = float(np.mean(data.train.targets["label"], dtype=np.float64))
    rows = {
        "": ("this model", data.logits),
        "constant_": (f"constant: always {mean:.3f}", np.full(len(labels), mean)),
    }
    note = _add_bag_of_words(
        data, rows, bag_of_words_numbers, "TF-IDF, ridge regression"
    )
    scores = {
        prefix: _number_scores(labels, predicted, correlate=prefix != "constant_")
        for prefix, (_, predicted) in rows.items()
    }
    if np.ptp(labels) == 0:
        note += (
            f"\nAll labels are {labels[0]:.3f}, so the correlations are undefined.\n"
        )
    picture = f"scatter_{data.split}.png"
    save_scatter(data.folder / picture, labels, data.logits, data.title, data.seed)
    errors = data.logits - labels
    largest = np.argsort(-np.abs(errors), kind="stable")

    def values(row):
        return float(labels[row]), float(data.logits[row]), float(errors[row])

    body = (
        f"{_score_table(rows, scores, NUMBER_SCORES)}{note}"
        f"\n![Predictions over labels]({picture})\n"
        "\n## Largest errors\n\nThe error is the prediction less the label.\n\n"
        + _mistakes(data, largest, ("label", "prediction", "error"), values)
    )
    return scores, body


def _number_scores(labels, predictions, correlate):
    errors = predictions - labels
    names = ("pearson", "spearman") if correlate and np.ptp(labels) else ()
    return {
        **(glue_scores(names, labels, predictions) if names else {}),
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "mean_squared_error": float(np.mean(errors**2)),
    }


def _add_bag_of_words(data, rows, predict, name):
    """Adds what a bag of words predicts to `rows`; a note if it cannot."""
    train_texts, labels = data.train.texts(), data.train.targets["label"]
    reason = why_no_bag_of_words(train_texts, labels)
    if reason is not None:
        return f"\nThere is no TF-IDF baseline: {reason}.\n"
    rows["tfidf_"] = (name, predict(train_texts, labels, data.examples.texts()))
    return ""


def _score_table(rows, scores, names):
    header = ["", *(name.replace("_", " ") for name in names)]
    return markdown_table(
        header,
        [
            (title, *(scores[prefix].get(name) for name in names))
            for prefix, (title, _) in rows.items()
        ],
    )


def _mistakes(data, worst, columns, values):
    """Writes the CSV of the examples at `worst`; returns the Markdown of the first."""
    path = f"mistakes_{data.split}.csv"
    write_csv(
        data.folder / path,
        (*data.columns, *columns),
        ((*data.row(row), *values(row)) for row in worst[:CSV_MISTAKES]),
    )
    shown = [
        tuple(
            escape(value) if isinstance(value, str) else value
            for value in (*values(row), *data.row(row))
        )
        for row in worst[:TABLE_MISTAKES]
    ]
    header = (*columns, *data.columns)
    where = f"Whole texts, up to {CSV_MISTAKES:,} of them: [{path}]({path}).\n"
    if not shown:
        return where
    return f"{markdown_table(header, shown, num_names=len(header))}\n{where}"
