"""Entities in a graph against those of the scores."""

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.heads.entity_spans import entity_spans
from keras_recbert.metrics.tagging import entities_of

SCHEMES = {
    "IOB": ["B-a", "O", "I-a", "B-b-c", "I-b-c"],
    "IOBES": ["O", *(f"{prefix}-{label}" for label in "ab" for prefix in "BIES")],
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_entities_are_those_of_the_scores(scheme):
    names = SCHEMES[scheme]
    rng = np.random.default_rng(0)
    lengths = [(7 * index) % 12 for index in range(60)]
    ids = np.full((60, 11), -1, np.int32)
    for row, length in enumerate(lengths):
        ids[row, :length] = rng.integers(len(names), size=length)
    found = tf.function(entity_spans)(tf.constant(ids), names)
    labels, starts, ends = (part.numpy() for part in found)
    most = 0
    for row, length in enumerate(lengths):
        expected = entities_of([names[index] for index in ids[row, :length]])
        most = max(most, len(expected))
        triples = zip(labels[row], starts[row], ends[row], strict=True)
        triples = [(name.decode(), int(a), int(b)) for name, a, b in triples]
        assert triples[: len(expected)] == expected
        assert set(triples[len(expected) :]) <= {("", -1, -1)}
    assert labels.shape == (60, most)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0), (0, 3), (2, 3)])
def test_no_words(shape):
    found = entity_spans(tf.fill(shape, -1), SCHEMES["IOB"])
    assert all(part.shape == (shape[0], 0) for part in found)
