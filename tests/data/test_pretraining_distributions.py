"""Distributions of masks, swaps, pairs and windows on real text.

Seeds are fixed, so that these tests give the same answer each time. Bounds are those
of a false alarm of 1e-4 for each check if the seed were drawn anew; with about 30
checks that is 0.3 % for all of them.
"""

import gzip
import json
import pathlib
import re

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from keras_recbert.data.corpus import Corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives
from keras_recbert.text.masking import (
    choose_units,
    find_units,
    find_word_starts,
    ngram_probabilities,
)
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-4
LENGTH = 128
CLS, SEP, MASK = 101, 102, 103


@pytest.fixture(scope="module")
def corpus(data_dir):
    """Articles of SQuAD 1.1: 442 documents of 2.9 M pieces."""
    path = data_dir / "squad" / "train-v1.1.reconstructed.json.gz"
    with gzip.open(path) as file:
        articles = json.load(file)["data"]
    vocabulary = load_vocabulary(data_dir / "vocab" / "bert-base-uncased-vocab.txt")
    sentences, document_starts = [], [0]
    for article in articles:
        for paragraph in article["paragraphs"]:
            parts = re.split(r"(?<=[.!?])\s+", paragraph["context"])
            sentences += [part for part in parts if part.strip()]
        document_starts.append(len(sentences))
    ids = WordPieceTokenizer(vocabulary)(tf.constant(sentences))
    lengths = ids.row_lengths().numpy()
    assert lengths.min() > 0
    return Corpus(
        token_ids=ids.values.numpy().astype(np.uint16),
        sentence_starts=np.cumsum([0, *lengths]),
        document_starts=np.array(document_starts),
        vocabulary=tuple(vocabulary),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("squad"),
    )


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


@pytest.fixture(scope="module")
def masked(corpus):
    """Four epochs of masked word pieces."""
    return epochs_of(corpus, {"masked_lm": {}}, 4)


def test_15_percent_of_pieces_are_masked(masked):
    _, chosen = masks_of(masked)
    words = words_of(masked).sum(axis=1)
    numbers = chosen.sum(axis=1)
    expected = np.clip(np.round(0.15 * words), 1, 19)
    np.testing.assert_array_equal(numbers, expected)
    # Within the rounding: 126 pieces of a full row have 19 masks, 15.08 %.
    assert abs(numbers.sum() / words.sum() - 0.15) < 0.5 / 126


def test_80_10_10(masked):
    ids, chosen = masks_of(masked)
    now, was = masked[0]["token_ids"][chosen], ids[chosen]
    number = len(now)
    assert number > 1_500_000
    # A random piece is that which was there once in 30,517 times.
    same = 0.1 + 0.1 / 30517
    counts = [(now == MASK).sum(), (now == was).sum()]
    counts.append(number - sum(counts))
    assert_counts(counts, number * np.array([0.8, same, 0.2 - same]))
    for count, rate in zip(counts, (0.8, same, 0.2 - same), strict=True):
        assert_part(count, number, rate)
    assert (masked[0]["token_ids"][~chosen] == ids[~chosen]).all()


def test_random_pieces_are_even_over_the_vocabulary(masked, corpus):
    ids, chosen = masks_of(masked)
    now, was = masked[0]["token_ids"][chosen], ids[chosen]
    drawn = now[(now != MASK) & (now != was)]
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    special = [corpus.vocabulary.index(name) for name in names]
    counts = np.bincount(drawn, minlength=len(corpus.vocabulary))
    assert not counts[special].any()
    # About 5.5 of each piece. Those that were there by chance are not seen, which
    # takes one in 30,517 from each, in proportion to what is frequent: at most 5 % of
    # them are one piece, 0.05 * 170,000 / 30,517 = 0.3 of 5.5. So the most frequent
    # pieces are left out.
    frequent = np.bincount(was, minlength=len(counts)) > 2000
    rest = np.delete(np.arange(len(counts)), [*special, *np.flatnonzero(frequent)])
    assert len(rest) > 30_000 and counts[rest].mean() > 5
    assert_counts(counts[rest], np.full(len(rest), counts[rest].mean()))


def test_masks_are_even_over_positions(masked):
    _, chosen = masks_of(masked)
    full = words_of(masked).sum(axis=1) == 126
    counts = chosen[full, 1:127].sum(axis=0)
    rows, rate, n = full.sum(), 19 / 126, 126
    assert rows > 80_000
    # 19 of 126 without replacement: covariances of -p (1 - p) / (n - 1), so that this
    # is chi-square with n - 1 degrees of freedom.
    statistic = ((counts - rows * rate) ** 2).sum() / (rows * rate * (1 - rate))
    statistic *= (n - 1) / n
    assert scipy.stats.chi2.sf(statistic, n - 1) > FALSE_ALARM
    assert scipy.stats.chi2.cdf(statistic, n - 1) > FALSE_ALARM


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


@pytest.mark.parametrize("unit", ["whole_word", "ngram"])
def test_whole_words_and_ngrams_take_15_percent_of_pieces(corpus, unit):
    batch = epochs_of(corpus, {"masked_lm": {"unit": unit}, "next_sentence": {}})
    ids, chosen = masks_of(batch)
    words = words_of(batch)
    wanted = np.clip(np.round(0.15 * words.sum(axis=1)), 1, 19)
    got = chosen.sum(axis=1)
    assert (got <= wanted).all() and (chosen <= words).all()
    # Rows that no unit could fill up are rare.
    assert (got < wanted).mean() < 0.002
    assert abs(got.sum() / words.sum() - 0.15) < 0.5 / 125
    continues = np.array([piece.startswith("##") for piece in corpus.vocabulary])
    goes_on = continues[ids] & words & np.roll(words, 1, axis=1)
    assert (chosen[goes_on] == np.roll(chosen, 1, axis=1)[goes_on]).all()


def test_ngrams_have_lengths_in_proportion_to_one_over_n(corpus):
    """All n-grams, and those that are chosen of them."""
    x, _, _ = epochs_of(corpus, {"causal_lm": {}})
    ids = tf.constant(x["token_ids"])
    spans = tf.constant(words_of((x,)).astype(np.int32))
    continuation = [piece.startswith("##") for piece in corpus.vocabulary]
    starts = find_word_starts(ids, spans, continuation)
    rows = len(x["token_ids"])
    for max_ngram in (3, 5):
        draws = tf.random.stateless_uniform([rows, LENGTH + max_ngram], [3, max_ngram])
        units = find_units(spans, starts, "ngram", draws, max_ngram)
        order = tf.random.stateless_uniform([rows, LENGTH], [4, max_ngram])
        wanted = tf.fill([rows], 19)
        chosen = choose_units(units, spans, wanted, order).numpy()
        units, words = units.numpy(), (starts.numpy() & (spans.numpy() > 0))
        flat = units + np.arange(rows)[:, None] * LENGTH
        sizes = np.bincount(flat[words], minlength=rows * LENGTH).reshape(rows, LENGTH)
        # The first ones of a row: all of them are complete.
        full = words.sum(axis=1) >= 8 * max_ngram
        first = sizes[full, :8]
        expected = ngram_probabilities(max_ngram)
        counts = np.bincount(first.ravel(), minlength=max_ngram + 1)[1:]
        assert first.min() >= 1 and len(counts) == max_ngram
        assert_counts(counts, expected * counts.sum())
        # Those chosen: what is left in the end takes short ones only, and the n-gram
        # at the end of a row is cut.
        taken = np.zeros(rows * LENGTH, bool)
        taken[flat[chosen]] = True
        counts = np.bincount(sizes.ravel()[taken], minlength=max_ngram + 1)[1:]
        share = counts / counts.sum()
        print(
            f"n up to {max_ngram}: chosen {share.round(3)}, drawn {expected.round(3)}"
        )
        assert (np.diff(share) < 0).all()
        assert np.abs(share - expected).max() < 0.08


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
