"""`attention_weights` against softmax and dropout written out."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.ops.attention_weights import attention_weights

SHAPE = (2, 3, 5, 7)  # rows, heads, queries, keys


def expected(scores, keep, scale):
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    weights = exponents / exponents.sum(-1, keepdims=True)
    return weights, np.where(keep, weights * scale, 0.0)


def expected_gradient(upstream, weights, keep, scale):
    upstream = np.where(keep, upstream * scale, 0.0)
    along = (upstream * weights).sum(-1, keepdims=True)
    return (upstream - along) * weights


@pytest.mark.parametrize("xla", [False, True])
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(
    # bfloat16 is rounded three times: scores, weights, product; to 2 ** -9 each.
    ("dtype", "tolerance"),
    [("float64", 1e-12), ("float32", 1e-6), ("bfloat16", 3 * 2.0**-9)],
)
def test_weights_and_gradient(dtype, tolerance, dropped, xla):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=SHAPE)
    scores[0, :, :, 5:] = -1e9  # masked keys
    scores[1] = -1e9  # a row that is all padding attends evenly
    upstream, keep = rng.normal(size=SHAPE), rng.random(SHAPE) > 0.3
    keep, scale = (keep, 1.0 / 0.7) if dropped else (np.ones(SHAPE, bool), 1.0)

    tensor = tf.constant(scores, dtype)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        found = attention_weights(tensor, keep if dropped else None, scale, xla)
        total = tf.reduce_sum(found * tf.cast(upstream, dtype))
    gradient = tape.gradient(total, tensor)

    assert found.dtype == gradient.dtype == dtype
    rounded = tf.cast(tensor, "float64").numpy()
    weights, wanted = expected(rounded, keep, scale)
    assert_close(tf.cast(found, "float64"), wanted, tolerance)
    wanted = expected_gradient(upstream, weights, keep, scale)
    assert_close(tf.cast(gradient, "float64"), wanted, tolerance * 4)
