"""The last outputs of both directions."""

import numpy as np

from keras_recbert.layers import FinalStates

INPUTS = np.random.default_rng(0).normal(size=(4, 6, 10)).astype("float32")


def test_each_direction_ends_at_its_last_real_position():
    mask = np.array([[1] * 6, [1] * 3 + [0] * 3, [0, 0, 1, 0, 1, 0], [0] * 6])
    found = FinalStates()(INPUTS, mask)
    for row, (first, last) in enumerate([(0, 5), (0, 2), (2, 4)]):
        expected = [*INPUTS[row, last, :5], *INPUTS[row, first, 5:]]
        np.testing.assert_array_equal(found[row], expected)
    np.testing.assert_array_equal(found[3], 0.0)
    np.testing.assert_array_equal(FinalStates()(INPUTS)[0], found[0])
