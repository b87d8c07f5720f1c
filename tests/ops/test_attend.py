"""`attend` against softmax, dropout and product written out."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.ops.attend import attend

SHAPE = (2, 3, 5, 7)  # rows, heads, queries, keys
HEAD_DIM = 4


def expected(scores, values, upstream, keep, scale):
    """Context, and gradients of scores and values."""
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    softmax = exponents / exponents.sum(-1, keepdims=True)
    weights = np.where(keep, softmax * scale, 0.0)
    to_values = np.einsum("bhqk,bhqd->bhkd", weights, upstream)
    to_weights = np.einsum("bhqd,bhkd->bhqk", upstream, values)
    to_softmax = np.where(keep, to_weights * scale, 0.0)
    along = (to_softmax * softmax).sum(-1, keepdims=True)
    context = np.einsum("bhqk,bhkd->bhqd", weights, values)
    return context, (to_softmax - along) * softmax, to_values


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    # bfloat16 rounds scores, weights, values and products, to 2 ** -9 each, and the
    # gradient of the scores sums products of about 4.
    ("dtype", "tolerance"),
    [("float64", 1e-12), ("float32", 1e-6), ("bfloat16", 5 * 2.0**-9)],
)
def test_context_and_gradients(dtype, tolerance, dropped, xla):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=SHAPE)
    scores[0, :, :, 5:] = -1e9  # masked keys
    scores[1] = -1e9  # a row that is all padding attends evenly
    values = rng.normal(size=(*SHAPE[:2], SHAPE[3], HEAD_DIM))
    upstream = rng.normal(size=(*SHAPE[:3], HEAD_DIM))
    keep = rng.random(SHAPE) > 0.3
    keep, scale = (keep, 1.0 / 0.7) if dropped else (np.ones(SHAPE, bool), 1.0)

    inputs = [tf.constant(scores, dtype), tf.constant(values, dtype)]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        found = attend(*inputs, keep if dropped else None, scale, xla)
        total = tf.reduce_sum(found * tf.cast(upstream, dtype))
    gradients = tape.gradient(total, inputs)

    rounded = [
        tf.cast(x, "float64").numpy() for x in (*inputs, tf.constant(upstream, dtype))
    ]
    wanted = expected(*rounded, keep, scale)
    for tensor, want in zip((found, *gradients), wanted, strict=True):
        assert tensor.dtype == dtype
        assert_close(tf.cast(tensor, "float64"), want, tolerance * 4)
