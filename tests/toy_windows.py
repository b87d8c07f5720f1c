"""A corpus whose places tell where a word piece of a row comes from."""

import functools
import json
import pathlib

import numpy as np
import tensorflow as tf

from keras_recbert.data.corpus import Corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, _, CLS, SEP, MASK = range(5)
ALL = {"masked_lm": {}, "next_sentence": {}, "bigram_shift": {}}
# Lengths of the sentences of each document.
DOCUMENTS = [[5, 9, 3, 14, 6, 1, 8], [1], [2, 2, 4], [40], [7, 1, 1, 30, 3, 12]]


def make_corpus(documents=DOCUMENTS, continues=lambda place: place % 3 == 2):
    """A corpus whose place `p` holds piece `5 + p`, "##" where it `continues`."""
    lengths = [length for document in documents for length in document]
    number = sum(lengths)
    pieces = [f"{'##' if continues(p) else ''}p{p}" for p in range(number)]
    return Corpus(
        token_ids=np.arange(5, number + 5).astype(np.uint16),
        sentence_starts=np.cumsum([0, *lengths]),
        document_starts=np.cumsum([0, *(len(document) for document in documents)]),
        vocabulary=(*SPECIAL, *pieces),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("some/corpus"),
    )


def make(objectives=None, sequence_length=24, corpus=None, seed=0):
    objectives = ALL if objectives is None else objectives
    if corpus is None:
        return _make_cached(json.dumps(objectives), sequence_length, seed)
    return PretrainingExamples(
        corpus, read_objectives(objectives), sequence_length, seed
    )


@functools.cache  # tracing takes longer than what is tested
def _make_cached(objectives, sequence_length, seed):
    return make(json.loads(objectives), sequence_length, make_corpus(), seed)


def epochs_of(examples, first, number):
    """Rows of whole epochs, as one batch of NumPy arrays; in shuffled order."""
    batches = examples.batches(examples.num_examples, first, number)
    return stack(list(batches.as_numpy_iterator()))


def stack(batches):
    return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)


def assert_equal(first, second):
    tf.nest.assert_same_structure(first, second)
    tf.nest.map_structure(np.testing.assert_array_equal, first, second)


def restore(x, y, weights):
    """Ids of rows with the masked pieces put back."""
    ids = x["token_ids"].copy()
    rows, slots = np.nonzero(weights["masked_lm"])
    ids[rows, x["mask_positions"][rows, slots]] = y["masked_lm"][rows, slots]
    return ids
