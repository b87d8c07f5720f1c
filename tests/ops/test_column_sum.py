"""Sums over rows by a product with ones."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.ops.column_sum import column_sum


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (0, 3, 5), (2, 0, 5)])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_sums_all_axes_but_the_last(shape, jit_compile):
    x = np.random.default_rng(0).normal(size=shape)
    compiled = tf.function(column_sum, jit_compile=jit_compile)
    assert_close(compiled(tf.constant(x)), x.sum(axis=(0, 1)), 1e-12)


def test_shapes_unknown_to_the_graph():
    spec = tf.TensorSpec((None, None, 5), "float64")
    compiled = tf.function(column_sum, input_signature=[spec])
    for shape in ((2, 3, 5), (4, 1, 5)):
        x = np.random.default_rng(1).normal(size=shape)
        assert_close(compiled(x), x.sum(axis=(0, 1)), 1e-12)
