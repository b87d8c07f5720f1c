import numpy as np
import pytest

from keras_recbert.metrics.calibration import expected_calibration_error


def two_classes(*highest):
    """Rows that predict class 1 with these probabilities."""
    return np.array([[1 - p, p] for p in highest])


def test_each_bin_counts_by_its_examples():
    # With 5 bins: 0.9 and 1.0 in the last, 0.7 in the one before, 0.55 in the third.
    probabilities = two_classes(0.9, 1.0, 0.7, 0.55)
    labels = np.array([1, 0, 1, 0])
    last, fourth, third = abs(1 / 2 - 0.95), abs(1 - 0.7), abs(0 - 0.55)
    expected = (2 * last + fourth + third) / 4
    found = expected_calibration_error(probabilities, labels, num_bins=5)
    assert found == pytest.approx(expected, abs=1e-12)


def test_errors_of_both_signs_in_a_bin_cancel():
    probabilities = two_classes(0.75, 0.75, 0.75, 0.75)
    assert expected_calibration_error(probabilities, [1, 1, 1, 0]) == 0.0
    assert expected_calibration_error(probabilities, [1, 1, 1, 1]) == 0.25
    assert expected_calibration_error(probabilities, [0, 0, 0, 0]) == 0.75


def test_a_bin_holds_its_upper_end_and_not_its_lower():
    # 0.75 is the end of the third of 4 bins: with 0.7 in one bin, the errors cancel.
    probabilities = two_classes(0.75, 0.70)
    found = expected_calibration_error(probabilities, [1, 0], num_bins=4)
    assert found == pytest.approx(abs(1 - 1.45) / 2, abs=1e-12)
    probabilities = two_classes(0.76, 0.70)  # two bins
    found = expected_calibration_error(probabilities, [1, 0], num_bins=4)
    assert found == pytest.approx((0.24 + 0.70) / 2, abs=1e-12)


def test_certainty_is_in_the_last_bin():
    certain = np.eye(3, dtype=np.float32)
    assert expected_calibration_error(certain, [0, 1, 2]) == 0.0
    assert expected_calibration_error(certain, [1, 2, 0]) == 1.0


@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        (np.zeros((0, 2)), [], "`labels` is empty"),
        (np.ones(3), [0, 1, 0], r"shape \(num_examples, num_classes\).*\(3,\)"),
        (np.ones((3, 2)), [0, 1], r"Received: \(3, 2\) and \(2,\)"),
    ],
)
def test_wrong_shapes_are_refused(probabilities, labels, message):
    with pytest.raises(ValueError, match=message):
        expected_calibration_error(probabilities, labels)
