"""The mean over real positions."""

import numpy as np
from harness import assert_close

from keras_recbert.layers import MeanPooling

INPUTS = np.random.default_rng(0).normal(size=(4, 7, 3))


def test_mean_takes_real_positions_only():
    mask = np.array([[1] * 7, [1] * 3 + [0] * 4, [0, 1, 0, 0, 1, 0, 0], [0] * 7])
    outputs = MeanPooling()(INPUTS.astype("float32"), mask)
    expected = [INPUTS[row][mask[row] == 1].mean(axis=0) for row in range(3)]
    assert_close(outputs[:3], expected, 1e-6)
    # A row of padding has no mean; zeros keep the batch finite.
    np.testing.assert_array_equal(outputs[3], 0.0)


def test_bfloat16_sums_in_float32():
    """256 ones and a half in bfloat16 would stay at 256."""
    inputs = np.concatenate([np.ones((1, 256, 1)), np.full((1, 256, 1), 0.5)], axis=1)
    outputs = MeanPooling(dtype="mixed_bfloat16")(inputs, np.ones((1, 512)))
    assert outputs.dtype == "bfloat16"
    np.testing.assert_array_equal(outputs.numpy().astype("float32"), 0.75)
