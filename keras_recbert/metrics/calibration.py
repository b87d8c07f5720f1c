"""Whether the probabilities of a classifier can be taken at their word."""

import numpy as np

NUM_BINS = 15


def expected_calibration_error(probabilities, labels, num_bins=NUM_BINS):
    """How far the probability of a prediction is from how often it is right.

    With `p` the highest probability of an example, bin `m` of `M` holds the examples
    with `(m - 1) / M < p <= m / M`, and (Guo et al. 2017, "On Calibration of Modern
    Neural Networks", section 2, eq. 3)

        ECE = sum over m of |bin m| / n * |accuracy(bin m) - mean p(bin m)|

    The bins are equally wide; 15 of them, as in the paper.

    Args:
        probabilities: float array `(num_examples, num_classes)`; rows add up to 1.
        labels: int array `(num_examples,)`, class ids.
        num_bins: int. Number of bins.

    Returns:
        float in [0, 1]; 0 for perfect calibration.

    Raises:
        ValueError: if there are no examples, or the shapes do not fit.
    """
    probabilities, labels = np.asarray(probabilities, np.float64), np.asarray(labels)
    if probabilities.ndim != 2 or labels.shape != probabilities.shape[:1]:
        raise ValueError(
            "`probabilities` must have the shape (num_examples, num_classes), and "
            "`labels` the shape (num_examples,). Received: "
            f"{probabilities.shape} and {labels.shape}."
        )
    if not len(labels):
        raise ValueError("There is nothing to score: `labels` is empty.")
    highest = probabilities.max(axis=1)
    is_right = probabilities.argmax(axis=1) == labels
    bins = np.clip(np.ceil(highest * num_bins).astype(int) - 1, 0, num_bins - 1)
    # |bin| * |accuracy - mean p| is the absolute sum of the differences in the bin.
    differences = np.bincount(bins, weights=is_right - highest, minlength=num_bins)
    return float(np.abs(differences).sum() / len(labels))
