"""Distributions of masks, swaps, pairs and windows on real text.

Seeds are fixed, so that these tests give the same answer each time. Bounds are those
of a false alarm of 1e-4 for each check if the seed were drawn anew; with about 30
checks that is 0.3 % for all of them.
"""

import pathlib

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from proportions import (
    FALSE_ALARM,
    LENGTH,
    SEP,
    assert_counts,
    assert_part,
    epochs_of,
    masks_of,
    words_of,
)

from keras_recbert.data.corpus import Corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives
from keras_recbert.text.masking import find_word_starts

pytestmark = pytest.mark.slow


def test_next_sentences_are_random_half_of_the_time(corpus):
    for rate in (0.5, 0.2):
        objectives = {"next_sentence": {"random_fraction": rate}}
        _, y, _ = epochs_of(corpus, objectives)
        labels = y["next_sentence"]
        assert_part(labels.sum(), len(labels), rate)


def test_neither_length_nor_beginning_tells_a_random_sentence(corpus):
    """Spans of both labels have one distribution of lengths and begin alike."""
    x, y, _ = epochs_of(corpus, {"next_sentence": {}})
    is_random = y["next_sentence"] == 1
    second = x["segment_ids"].sum(axis=1) - 1
    first = x["padding_mask"].sum(axis=1) - second - 3
    for lengths in (first, second, first + second):
        _, p = scipy.stats.ks_2samp(lengths[is_random], lengths[~is_random])
        assert p > FALSE_ALARM
    # Second spans begin in mid-word where windows of one sentence are cut: rarely, and
    # random ones as often as others.
    begins = x["token_ids"][np.arange(len(first)), first + 2]
    continues = np.array([piece.startswith("##") for piece in corpus.vocabulary])
    table = [
        np.bincount(continues[begins[label]], minlength=2)
        for label in (is_random, ~is_random)
    ]
    assert continues[begins].mean() < 0.002
    assert scipy.stats.fisher_exact(table).pvalue > FALSE_ALARM


def test_cuts_are_even_over_the_sentences_of_a_window(corpus):
    """Of k sentences that begin inside of a window, each begins B equally often."""
    x, y, _ = epochs_of(corpus, {"next_sentence": {}})
    sentences = _sentences_by_pieces(corpus)
    ids = x["token_ids"]
    counts = {k: np.zeros(k) for k in (2, 3, 4, 5)}
    for row in np.flatnonzero(y["next_sentence"] == 0):
        real = ids[row][x["padding_mask"][row] == 1][1:-1]
        cut = int((real == SEP).argmax())
        places = np.delete(real, cut)
        begins = sentences(places)
        if begins is not None and len(begins) in counts:
            counts[len(begins)][begins.index(cut)] += 1
    for k, found in counts.items():
        assert found.sum() > 500
        assert_counts(found, np.full(k, found.sum() / k))


def _sentences_by_pieces(corpus):
    """Function from the pieces of a window to the sentence starts inside of it."""
    starts, ids = corpus.sentence_starts, corpus.token_ids
    # A window begins with a sentence nearly always: find it by its first 12 pieces.
    by_begin = {}
    for start in starts[:-1]:
        by_begin.setdefault(ids[start : start + 12].tobytes(), []).append(start)

    def find(pieces):
        pieces = pieces.astype(np.uint16)
        for start in by_begin.get(pieces[:12].tobytes(), []):
            if (ids[start : start + len(pieces)] == pieces).all():
                low, high = np.searchsorted(starts, [start + 1, start + len(pieces)])
                return (starts[low:high] - start).tolist()
        return None

    return find


def test_lengths_of_the_first_span_follow_from_the_sentences(corpus):
    """Short and long first spans are alike: each cut of a window has its turn."""
    x, _, _ = epochs_of(corpus, {"next_sentence": {}})
    second = x["segment_ids"].sum(axis=1) - 1
    first = x["padding_mask"].sum(axis=1) - second - 3
    assert (first + second <= 125).all() and first.min() >= 1 and second.min() >= 1
    # Windows begin with a sentence, so that a first span holds at least one, and a
    # second may be the beginning of one: sentences have 31 pieces on average.
    assert 45 < np.median(first) < 75
    assert np.quantile(first, 0.05) < 25 and np.quantile(first, 0.95) > 100


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_swaps_are_15_percent_of_pairs(corpus, rate):
    objectives = {"bigram_shift": {"swap_rate": rate}}
    batch = epochs_of(corpus, objectives)
    # The same windows in order: other objectives leave them alone.
    plain = epochs_of(corpus, {"masked_lm": {}})
    original, _ = masks_of(plain)
    spans = words_of(batch).astype(np.int32)
    continuation = [piece.startswith("##") for piece in corpus.vocabulary]
    starts = find_word_starts(
        tf.constant(original), tf.constant(spans), continuation
    ).numpy()
    numbers = (starts & (spans > 0)).sum(axis=1)
    ids, shifted = batch[0]["token_ids"], batch[1]["bigram_shift"] > 0
    assert (np.sort(ids) == np.sort(original)).all()
    assert (ids[~shifted] == original[~shifted]).all()
    assert shifted[ids != original].all()
    # Words out of place, two of each pair, counted by where words stood before: a pair
    # as a whole stays where it was.
    swapped = (starts & (spans > 0) & shifted).sum(axis=1)
    assert (swapped % 2 == 0).all()
    # Pairs of n words: (n - 1) / 2 on average over both phases. Of their number the
    # variance is 1/4 for an even n.
    pairs = ((numbers - 1) / 2).sum()
    even = (numbers % 2 == 0).sum()
    sigma = np.sqrt(pairs * rate * (1 - rate) + rate**2 * even / 4)
    z = (swapped.sum() / 2 - pairs * rate) / sigma
    assert abs(z) < scipy.stats.norm.isf(FALSE_ALARM / 2)


def test_windows_cover_the_corpus_evenly(corpus):
    """5 epochs see 99.9 % of the pieces; each sees most of them, few of them twice."""
    number = 400_000  # the first 60 articles
    documents = int(
        np.searchsorted(corpus.sentence_starts[corpus.document_starts], number)
    )
    sentences = corpus.document_starts[documents]
    size = int(corpus.sentence_starts[sentences])
    # A piece for each place tells where a row comes from.
    marked = Corpus(
        token_ids=np.arange(5, size + 5, dtype=np.int32),
        sentence_starts=corpus.sentence_starts[: sentences + 1],
        document_starts=corpus.document_starts[: documents + 1],
        vocabulary=(
            *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
            *(f"p{place}" for place in range(size)),
        ),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("places"),
    )
    counts = np.zeros([5, size])
    x, _, _ = epochs_of(marked, {"causal_lm": {}}, 5)
    rows = x["token_ids"].reshape(5, -1)
    for epoch, ids in enumerate(rows):
        counts[epoch] = np.bincount(ids, minlength=size + 5)[5:]
    seen = counts > 0
    print(f"seen in each epoch {seen.mean(axis=1).round(4)}, in 5 {seen.any(0).mean()}")
    assert (seen.mean(axis=1) > 0.93).all()
    assert seen.any(axis=0).mean() > 0.999
    assert counts.max() <= 3 and (counts > 1).mean() < 0.1
    # Windows begin with a sentence, but for those at the end of a document.
    starts = x["token_ids"][:, 1] - 5
    assert np.isin(starts, marked.sentence_starts).mean() > 0.97


def test_orders_of_epochs_are_independent(corpus):
    """Correlations of the places of examples, from epoch to epoch and with their index.

    They are normal with sigma = n ** -0.5, and so is their mean, of 39.
    """
    small = np.arange(2001)
    numbered = Corpus(
        token_ids=np.arange(5, 2005).astype(np.uint16),
        sentence_starts=small,
        document_starts=small,
        vocabulary=(
            *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
            *(f"p{place}" for place in range(2000)),
        ),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("numbers"),
    )
    x, _, _ = epochs_of(numbered, {"causal_lm": {}}, 40, sequence_length=8)
    orders = x["token_ids"][:, 1].reshape(40, 2000).astype(float)
    assert (np.sort(orders) == np.arange(5, 2005)).all()
    bound = scipy.stats.norm.isf(FALSE_ALARM / 2 / 39) / np.sqrt(2000)
    for lag in (1, 2, 3):
        correlations = [
            np.corrcoef(one, two)[0, 1]
            for one, two in zip(orders, orders[lag:], strict=False)
        ]
        assert np.abs(correlations).max() < bound
    for order in orders:
        assert abs(np.corrcoef(order, np.arange(2000))[0, 1]) < bound
        # What follows one another is far apart: a third of the range on average.
        assert abs(np.abs(np.diff(order)).mean() / 2000 - 1 / 3) < 0.03


def test_nothing_depends_on_what_was_drawn_before(corpus):
    """Masks of an example and the next one, and of an epoch and the next, differ."""
    examples = PretrainingExamples(
        corpus, read_objectives({"masked_lm": {}}), LENGTH, seed=7
    )
    chosen = []
    for epoch in (0, 1):
        rows = [examples.example(epoch, index) for index in range(400)]
        rows = tf.nest.map_structure(lambda *parts: np.stack(parts), *rows)
        masks = masks_of(rows)[1]
        assert (words_of(rows).sum(axis=1) == 126).mean() > 0.9
        chosen.append(masks[:, 1:127])
    for one, two in ((chosen[0], chosen[1]), (chosen[0][:-1], chosen[0][1:])):
        # 19 of 126 and 19 of 126 have 19 * 19 / 126 = 2.87 in common, with the
        # variance of a hypergeometric distribution.
        common = (one & two).sum()
        rate = 19 / 126
        mean = len(one) * 126 * rate**2
        sigma = np.sqrt(len(one) * 126 * (rate * (1 - rate)) ** 2 * 126 / 125)
        bound = scipy.stats.norm.isf(FALSE_ALARM / 2)
        assert abs(common - mean) / sigma < bound + 0.5
