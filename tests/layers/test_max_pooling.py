"""The maximum over real positions."""

import numpy as np
from harness import assert_close

from keras_recbert.layers import MaxPooling

# All below zero: a zero for padding would be the largest.
INPUTS = -1.0 - np.random.default_rng(0).uniform(size=(4, 7, 3))


def test_maximum_takes_real_positions_only():
    mask = np.array([[1] * 7, [1] * 3 + [0] * 4, [0, 1, 0, 0, 1, 0, 0], [0] * 7])
    outputs = MaxPooling()(INPUTS.astype("float32"), mask)
    expected = [INPUTS[row][mask[row] == 1].max(axis=0) for row in range(3)]
    assert_close(outputs[:3], expected, 1e-6)
    # A row of padding has no maximum; zeros keep the batch finite.
    np.testing.assert_array_equal(outputs[3], 0.0)
