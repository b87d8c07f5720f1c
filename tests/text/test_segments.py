"""Rows of segments are those that TF Text makes."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from keras_recbert.text.segments import Segment, join_segments

CLS, SEP, PAD = 101, 102, 7
LENGTHS = {"ragged": ([3, 0, 1, 5], [2, 4, 0, 1], [0, 1, 1, 2]), "none": ([], [], [])}


def ragged(lengths, first):
    values = tf.range(first, first + sum(lengths), dtype=tf.int32)
    return tf.RaggedTensor.from_row_lengths(values, tf.constant(lengths, tf.int64))


@pytest.mark.parametrize("length", [None, 14])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_rows_equal_those_of_tf_text(number, lengths, length):
    rows = [ragged(one, 200 + 50 * i) for i, one in enumerate(lengths[:number])]
    ids, numbers = tf_text.combine_segments(rows, CLS, SEP)
    of_last = [tf.ones_like(row) for row in rows[:-1]] + [rows[-1] + 1]
    feature, _ = tf_text.combine_segments(of_last, 1, 1)
    joined = join_segments(
        [Segment.of(row) for row in rows],
        *(CLS, SEP, PAD, length),
        {"next": (Segment.of(rows[-1] + 1), 1)},
    )
    shape = (None, length or max(1, int(ids.bounding_shape()[1])))
    expected = {
        "token_ids": ids.to_tensor(PAD, shape=shape),
        "segment_ids": numbers.to_tensor(0, shape=shape),
        "padding_mask": tf.ones_like(ids).to_tensor(0, shape=shape),
        "next": feature.to_tensor(1, shape=shape),
    }
    for name, value in expected.items():
        assert joined[name].dtype == tf.int32
        np.testing.assert_array_equal(joined[name], value, name)
    assert joined.keys() == expected.keys()


def test_rows_may_take_the_first_values_of_others():
    rows = ragged([3, 0, 4], 10)
    segment = Segment.of(rows, most=[1, 2, 3]).gather([2, 0, 0])
    joined = join_segments([segment], CLS, SEP, PAD)["token_ids"]
    expected = [[CLS, 13, 14, 15, SEP], *2 * [[CLS, 10, SEP, PAD, PAD]]]
    np.testing.assert_array_equal(joined, expected)
    assert Segment.of(rows, most=2).lengths.numpy().tolist() == [2, 0, 2]
