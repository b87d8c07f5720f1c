"""The report of a registered task: predictions of its validation set, and mistakes."""

import csv
import dataclasses

import numpy as np
import pytest

from keras_recbert.data import Examples, TaskSpec
from keras_recbert.train.registered_data import ValidationReport

TASK = TaskSpec(
    name="mine",
    fields=("question", "words"),
    head_arguments={"label_names": ("no", "maybe", "yes")},
    metrics=("accuracy",),
)
FIELDS = {
    "question": ["Is it?", 'A "quote", and a comma', "line\rline", "éé", "again"],
    "words": [["a", "b"], ["c"], [], ["d", "e", "f"], ["a"]],
}
LABELS = np.array([0, 2, 1, 1, 2], np.int32)
LOGITS = np.array([[2, 1, 0], [0, 3, 1], [0, 5, 0], [1, 0, 0], [0, 0, 4]], np.float32)


def finished(folder, task, labels, logits):
    """Rows of predictions.csv, and the text of the report."""
    ids = [f"q{row}" for row in range(len(labels))]
    examples = Examples(FIELDS, {"label": labels}, ids)
    validation = {"validation_matched": examples, "validation_mismatched": None}
    report = ValidationReport.of(task, validation, seed=3)

    def predict(asked):
        assert asked is examples
        return logits

    assert report.finish(folder, examples, predict) == {}
    with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ids
    assert [row["question"] for row in rows] == FIELDS["question"]
    assert [row["words"] for row in rows] == ["a b", "c", "", "d e f", "a"]
    return rows, (folder / "report_validation.md").read_text("utf-8")


@pytest.mark.parametrize("form", ["ids", "one-hot rows"])
def test_classes(tmp_path, form):
    labels = LABELS if form == "ids" else np.eye(3, dtype=np.float32)[LABELS]
    rows, report = finished(tmp_path, TASK, labels, LOGITS)
    assert [row["label"] for row in rows] == ["no", "yes", "maybe", "maybe", "yes"]
    predicted = ["no", "maybe", "maybe", "no", "yes"]
    assert [row["prediction"] for row in rows] == predicted
    highest = np.exp(LOGITS).max(axis=1) / np.exp(LOGITS).sum(axis=1)
    scores = [float(row["score"]) for row in rows]
    np.testing.assert_allclose(scores, highest, atol=1e-6)
    assert "2 mistakes in 5 examples" in report
    assert "| 1 | maybe | 0.500 | 0.500 | 0.500 | 2 |" in report
    assert (tmp_path / "confusion_validation.png").is_file()


def test_classes_without_names(tmp_path):
    task = dataclasses.replace(TASK, head_arguments={"num_classes": 3})
    rows, _ = finished(tmp_path, task, LABELS, LOGITS)
    assert [row["label"] for row in rows] == ["0", "2", "1", "1", "2"]
    assert [row["prediction"] for row in rows] == ["0", "1", "1", "0", "2"]


def test_numbers(tmp_path):
    task = dataclasses.replace(
        TASK,
        head="regressor",
        head_arguments={},
        metrics=("pearson",),
        main_metric=None,
    )
    labels = np.array([0.5, 2.25, 1, 4, 5], np.float32)
    rows, report = finished(tmp_path, task, labels, labels[::-1] / 2)
    assert [float(row["label"]) for row in rows] == labels.tolist()
    for row in rows:
        assert row["prediction"] == row["score"]
    assert [float(row["score"]) for row in rows] == (labels[::-1] / 2).tolist()
    assert "## Largest errors" in report and "| q4 |" in report


def test_several_labels(tmp_path):
    scored = {"metrics": ("micro_f1",), "main_metric": None}
    task = dataclasses.replace(TASK, head="multilabel_classifier", **scored)
    labels = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1], [0, 0, 1]], float)
    rows, report = finished(tmp_path, task, labels, LOGITS - 0.5)
    found = [(row["label"], row["prediction"]) for row in rows]
    assert found == [
        ("no|yes", "no|maybe"),
        ("", "maybe|yes"),
        ("maybe", "maybe"),
        ("no|maybe|yes", "no"),
        ("yes", "yes"),
    ]
    assert float(rows[3]["score"]) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert "| maybe | 0.333 | 0.500 | 0.400 | 2 |" in report


def test_a_head_of_ones_own_has_no_report():
    for changes in ({"head": "ordinal_regressor"}, {"targets": ("start", "end")}):
        assert ValidationReport.of(dataclasses.replace(TASK, **changes), {}, 0) is None
