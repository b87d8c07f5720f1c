import numpy as np
import pytest

from keras_recbert.heads.regression import (
    MeanRowSquaredError,
    RegressionHead,
    RowSquaredError,
)

LABELS, SCORES = np.array([1.0, 2.0, 5.0]), np.array([1.5, 0.0, 5.0], "float32")
SQUARES = np.array([0.25, 4.0, 0.0])


@pytest.mark.parametrize("weights", [None, [1.0, 0.0, 3.0], [0.0, 0.0, 2.0]])
def test_rows_are_weighed(weights):
    given = None if weights is None else np.array(weights, "float32")
    loss = RowSquaredError()(LABELS, SCORES, given)
    metric = MeanRowSquaredError("mse")
    metric.update_state(LABELS, SCORES, given)
    weights = np.ones(3) if weights is None else given
    # As Keras: the loss is divided by the rows, the metric by their weights.
    assert float(loss) == pytest.approx(np.sum(SQUARES * weights) / 3)
    expected = np.average(SQUARES, weights=weights)
    assert float(metric.result()) == pytest.approx(expected)


@pytest.mark.parametrize(
    "labels, message",
    [
        ([1.0, None], "Received: None at index 1"),
        ([1.0, "2"], "Received: '2' at index 1"),
        (np.array([1.0, "2"], object), "Received: '2' at index 1"),
        ([1.0, float("nan")], "Received: nan at index 1"),
    ],
)
def test_the_label_that_is_no_number_is_named(labels, message):
    with pytest.raises(ValueError, match=f"must hold finite numbers. {message}"):
        RegressionHead().as_targets(labels)


def test_numbers_of_every_form():
    for labels in ([1, 2.5], np.array([1, 2.5], object), np.array([1, 2.5], "float32")):
        targets = RegressionHead().as_targets(labels)
        assert targets.dtype.kind == "f" and targets.tolist() == [1.0, 2.5]
