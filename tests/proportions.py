"""Counts of random draws beside what they should be."""

import numpy as np
import scipy.stats
import tensorflow as tf

from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives

FALSE_ALARM = 1e-4
LENGTH = 128
CLS, SEP, MASK = 101, 102, 103


def epochs_of(corpus, objectives, number=1, sequence_length=LENGTH):
    """Rows of whole epochs as NumPy arrays."""
    examples = PretrainingExamples(
        corpus, read_objectives(objectives), sequence_length, seed=7
    )
    batches = examples.batches(examples.num_examples, 0, number)
    batches = list(batches.as_numpy_iterator())
    return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)


def assert_part(count, total, rate):
    """A number of successes in independent trials is within its normal bounds."""
    z = (count - total * rate) / np.sqrt(total * rate * (1 - rate))
    bound = scipy.stats.norm.isf(FALSE_ALARM / 2)
    assert abs(z) < bound, f"{count} of {total}, {z:.2f} sigma"


def assert_counts(counts, expected):
    """Counts of independent draws are within the bounds of a chi-square test."""
    p = scipy.stats.chisquare(counts, expected).pvalue
    assert p > FALSE_ALARM, f"{counts} beside {expected}: p={p:.2g}"


def masks_of(batch):
    """Restored ids, and where rows are masked."""
    x, y, weights = batch
    ids = x["token_ids"].copy()
    masked = np.zeros(ids.shape, bool)
    rows, slots = np.nonzero(weights["masked_lm"])
    places = x["mask_positions"][rows, slots]
    ids[rows, places] = y["masked_lm"][rows, slots]
    masked[rows, places] = True
    return ids, masked


def words_of(batch):
    """Where words are, as opposed to the frame and padding."""
    x = batch[0]
    places = np.arange(x["token_ids"].shape[1])
    length = x["padding_mask"].sum(axis=1, keepdims=True)
    inside = (places > 0) & (places < length - 1)
    if x["segment_ids"].any():
        first = (x["padding_mask"] - x["segment_ids"]).sum(axis=1, keepdims=True)
        inside &= places != first - 1
    return inside
