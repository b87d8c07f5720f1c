"""What dropout keeps: how much, which, and what flows back."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.ops.dropout import drop, keep_mask

SEED = (7, 3)
RATES = [0.001, 0.1, 0.5, 0.9, 0.999]


@pytest.mark.parametrize("rate", RATES)
def test_rate_is_met(rate):
    size = 2**20
    keep, scale = keep_mask((size,), rate, SEED)
    kept = 1.0 - round(rate * 2**16) / 2**16
    assert abs(kept - (1.0 - rate)) <= 1 / 2**17
    # Five deviations of a binomial: one seed in 2 million would fail.
    deviation = (kept * (1.0 - kept) / size) ** 0.5
    assert abs(np.mean(keep) - kept) <= 5 * deviation
    assert scale * kept == pytest.approx(1.0, rel=1e-15)  # the mean is kept


def test_each_place_is_dropped_as_often():
    keep = np.stack([keep_mask((3, 5, 7), 0.3, (1, i))[0] for i in range(400)])
    deviation = (0.3 * 0.7 / 400) ** 0.5
    assert np.max(np.abs(keep.mean(axis=0) - 0.7)) <= 5 * deviation


def test_same_seed_same_mask():
    keep, _ = keep_mask((33, 31), 0.5, SEED)
    np.testing.assert_array_equal(keep_mask((33, 31), 0.5, SEED)[0], keep)
    for seed in ((7, 4), (8, 3)):
        agree = np.mean(keep_mask((33, 31), 0.5, seed)[0].numpy() == keep.numpy())
        assert abs(agree - 0.5) <= 5 * (0.25 / keep.numpy().size) ** 0.5


def test_higher_rate_keeps_a_part_of_what_a_lower_one_does():
    keeps = [keep_mask((1001,), rate, SEED)[0].numpy() for rate in RATES]
    for more, less in zip(keeps, keeps[1:], strict=False):
        assert np.all(more | ~less)
        assert np.sum(more) > np.sum(less)


def test_bits_are_independent():
    """Two elements share a random word: those, and some further apart."""
    keep = keep_mask((2**20,), 0.25, SEED)[0].numpy() - 0.75
    pairs = [keep[::2] * keep[1::2]]
    pairs += [keep[:-lag] * keep[lag:] for lag in (1, 2, 3, 4, 64, 768, 1024)]
    for products in pairs:
        # Variance of a product of two independent ones: the square of theirs.
        assert abs(products.mean()) <= 5 * (0.25 * 0.75) / len(products) ** 0.5


@pytest.mark.parametrize("shape", [(1,), (2,), (105,), (3, 5, 7), (2, 0, 3), (1, 1, 1)])
def test_any_size(shape):
    keep, _ = keep_mask(shape, 0.4, SEED)
    assert keep.shape == shape
    assert keep.dtype == "bool"
    by_tensor, _ = keep_mask(tf.constant(shape), 0.4, SEED)
    np.testing.assert_array_equal(by_tensor, keep)
    mixed, _ = keep_mask([tf.constant(shape[0]), *shape[1:]], 0.4, SEED)
    np.testing.assert_array_equal(mixed, keep)


def test_rates_at_the_ends():
    keep, scale = keep_mask((1000,), 0.0, SEED)
    assert np.all(keep)
    assert scale == 1.0
    keep, scale = keep_mask((1000,), 1e-6, SEED)  # below 1 / 131,072
    assert np.all(keep)
    assert scale == 1.0
    keep, scale = keep_mask((2**20,), 1.0 - 1e-9, SEED)
    assert 1 <= np.sum(keep) <= 40  # 16 expected
    assert scale == 2**16


def test_shape_unknown_to_the_graph():
    @tf.function(input_signature=[tf.TensorSpec((None, None, 3)), tf.TensorSpec((2,))])
    def compiled(x, seed):
        return keep_mask(tf.shape(x), 0.4, tf.cast(seed, tf.int32))[0]

    for shape in ((2, 4, 3), (3, 5, 3)):
        keep = compiled(tf.zeros(shape), tf.constant(SEED, "float32"))
        np.testing.assert_array_equal(keep, keep_mask(shape, 0.4, SEED)[0])


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_drop_scales_what_is_kept_forwards_and_backwards(dtype, xla):
    rng = np.random.default_rng(0)
    x, upstream = (tf.constant(it, dtype) for it in rng.normal(size=(2, 5, 7)))
    keep, scale = keep_mask((5, 7), 0.4, SEED)
    assert np.any(keep)
    assert not np.all(keep)
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = drop(x, keep, scale, xla)
    gradient = tape.gradient(outputs, x, upstream)
    # bfloat16: the scale is rounded, and the product.
    tolerance = {"float64": 1e-12, "float32": 1e-6, "bfloat16": 0.05}[dtype]
    for found, given in ((outputs, x), (gradient, upstream)):
        assert found.dtype == dtype
        found, given = (tf.cast(it, "float64").numpy() for it in (found, given))
        assert_close(found, np.where(keep, scale * given, 0.0), tolerance)
        np.testing.assert_array_equal(found[~keep.numpy()], 0.0)
