"""T5's relative position buckets against whole-number arithmetic."""

import numpy as np
import pytest
import tensorflow as tf
from reference.bert import relative_bucket

from keras_recbert.ops.relative_position import relative_position_bucket

OFFSETS = np.arange(-2000, 2001).astype("int32")


@pytest.mark.parametrize("num_buckets", [8, 16, 32, 64])
@pytest.mark.parametrize("max_distance", [64, 128, 512])
def test_buckets_match_the_description(num_buckets, max_distance):
    buckets = relative_position_bucket(OFFSETS, num_buckets, max_distance)
    expected = [
        relative_bucket(int(offset), num_buckets, max_distance) for offset in OFFSETS
    ]
    np.testing.assert_array_equal(buckets, expected)


def test_known_buckets_of_t5():
    """8 exact buckets a side, then edges that grow by a factor of 2 ** 0.5."""
    distance = np.array([*range(8), 8, 12, 16, 23, 32, 46, 64, 91], "int32")
    np.testing.assert_array_equal(relative_position_bucket(-distance), range(16))
    right = relative_position_bucket(distance[1:])
    np.testing.assert_array_equal(right, range(17, 32))
    # One short of the next bucket is still the one before.
    short = relative_position_bucket(1 - distance[1:])
    np.testing.assert_array_equal(short, range(15))


def test_rounding_of_compiled_code_moves_no_bucket():
    """The edges at powers of 2 are whole logarithms, which XLA might round down."""

    @tf.function(jit_compile=True)
    def compiled(offsets):
        return relative_position_bucket(offsets)

    expected = relative_position_bucket(OFFSETS)
    np.testing.assert_array_equal(compiled(OFFSETS), expected)


def test_equals_the_buckets_of_transformers():
    t5 = pytest.importorskip("transformers.models.t5.modeling_t5")
    torch = pytest.importorskip("torch")
    expected = t5.T5Attention._relative_position_bucket(
        torch.arange(-2000, 2001), bidirectional=True, num_buckets=32, max_distance=128
    )
    np.testing.assert_array_equal(relative_position_bucket(OFFSETS), expected.numpy())
