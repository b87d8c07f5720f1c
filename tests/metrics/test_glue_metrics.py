import math
import sys
import warnings

import numpy as np
import pytest

from keras_recbert.data import get_task
from keras_recbert.metrics.glue import glue_scores

# Ten rows: 3 true positives, 2 false positives, 1 false negative, 4 true negatives.
LABELS = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], "int32")
CLASSES = np.array([1, 1, 1, 0, 1, 1, 0, 0, 0, 0], "int32")
SCORES = np.array([0.5, 4.0, 2.0, 5.0, 1.0], "float32")


def test_classes_against_the_confusion_matrix():
    scores = glue_scores(["matthews", "accuracy", "f1"], LABELS, CLASSES)
    assert list(scores) == ["matthews", "accuracy", "f1"]
    assert scores["accuracy"] == pytest.approx(7 / 10, abs=1e-15)
    assert scores["f1"] == pytest.approx(2 * 3 / (2 * 3 + 2 + 1), abs=1e-15)
    matthews = (3 * 4 - 2 * 1) / math.sqrt((3 + 2) * (3 + 1) * (4 + 2) * (4 + 1))
    assert scores["matthews"] == pytest.approx(matthews, abs=1e-15)
    assert all(type(value) is float for value in scores.values())


def test_f1_is_that_of_class_one_not_an_average():
    scores = glue_scores("f1", 1 - LABELS, 1 - CLASSES)
    assert scores["f1"] == pytest.approx(2 * 4 / (2 * 4 + 2 + 1), abs=1e-15)


def test_correlations_against_their_definition():
    predictions = np.array([1.0, 3.0, 3.0, 9.0, 0.0], "float32")
    x, y = SCORES.astype("float64"), predictions.astype("float64")
    dx, dy = x - x.mean(), y - y.mean()
    pearson = (dx * dy).sum() / math.sqrt((dx**2).sum() * (dy**2).sum())
    # Ranks, ties shared: labels 1 4 3 5 2, predictions 2 3.5 3.5 5 1.
    rx = np.array([1, 4, 3, 5, 2]) - 3.0
    ry = np.array([2, 3.5, 3.5, 5, 1]) - 3.0
    spearman = (rx * ry).sum() / math.sqrt((rx**2).sum() * (ry**2).sum())
    scores = glue_scores(get_task("stsb").metrics, SCORES, predictions)
    assert scores == pytest.approx(
        {"pearson": pearson, "spearman": spearman}, abs=1e-12
    )
    assert glue_scores(get_task("stsb").metrics, SCORES, -SCORES) == pytest.approx(
        {"pearson": -1.0, "spearman": -1.0}, abs=1e-12
    )


@pytest.mark.parametrize(
    "name", ["cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli"]
)
def test_each_task_has_its_metrics(name):
    names = get_task(name).metrics
    assert glue_scores(names, LABELS, LABELS) == dict.fromkeys(names, 1.0)


def test_three_classes():
    labels, predictions = np.array([0, 1, 2, 2]), np.array([0, 2, 2, 2])
    assert glue_scores(get_task("mnli").metrics, labels, predictions) == {
        "accuracy": 0.75
    }


@pytest.mark.parametrize("constant", [0.0, 2.5, 1e-30])
def test_constant_predictions_score_zero_without_a_warning(constant):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = glue_scores(
            get_task("stsb").metrics, SCORES, np.full(5, constant, "float32")
        )
        assert scores == {"pearson": 0.0, "spearman": 0.0}
        zeros = np.zeros_like(LABELS)
        assert glue_scores(["f1", "matthews"], LABELS, zeros) == {
            "f1": 0.0,
            "matthews": 0.0,
        }


def test_undefined_labels_are_an_error():
    with pytest.raises(ValueError, match="two different values. Received 3 labels"):
        glue_scores(get_task("stsb").metrics, np.ones(3), np.arange(3.0))
    with pytest.raises(ValueError, match="'spearman' is undefined"):
        glue_scores("spearman", np.ones(1), np.ones(1))


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [
        (np.zeros(3, int), np.zeros(4, int)),
        (np.zeros(3, int), np.zeros((3, 2))),
        (np.zeros(3), np.zeros((3, 1))),
    ],
)
def test_shapes_must_agree(labels, predictions):
    with pytest.raises(ValueError, match=r"must both have the shape \(num_examples,\)"):
        glue_scores("accuracy", labels, predictions)


def test_bad_values():
    with pytest.raises(ValueError, match="`labels` is empty"):
        glue_scores("accuracy", np.zeros(0, int), np.zeros(0, int))
    for bad in (np.nan, np.inf):
        values = np.array([1.0, bad, 2.0, bad, 0.0])
        with pytest.raises(ValueError, match="position 1 .2 of 5 are not finite"):
            glue_scores(get_task("stsb").metrics, SCORES, values)
    with pytest.raises(ValueError, match="`predictions` must be class ids .* argmax"):
        glue_scores("accuracy", LABELS, CLASSES.astype("float32"))
    with pytest.raises(ValueError, match=r"'f1' takes two classes, 0 and 1.*\[0, 1, 2"):
        glue_scores("f1", LABELS, CLASSES + 1)
    with pytest.raises(
        ValueError, match="`labels` must be numbers. Received: dtype <U"
    ):
        glue_scores("accuracy", np.array(["a", "b"]), np.array([0, 1]))


def test_unknown_names():
    with pytest.raises(ValueError, match="Unknown metrics: .'squad'.. Valid: accuracy"):
        glue_scores("squad", LABELS, CLASSES)
    with pytest.raises(
        ValueError, match=r"Unknown metrics: \['auc'\]. Valid: accuracy"
    ):
        glue_scores(["f1", "auc"], LABELS, CLASSES)
    with pytest.raises(ValueError, match="Unknown metrics: none given"):
        glue_scores([], LABELS, CLASSES)


@pytest.mark.parametrize(
    ("library", "metric"), [("sklearn", "accuracy"), ("scipy", "pearson")]
)
def test_without_the_library_the_error_names_the_extra(monkeypatch, library, metric):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[train\]"'):
        glue_scores(metric, LABELS, CLASSES)
