"""How many pieces are masked, which, where and by what: over real text.

Seeds and bounds are as in `test_pretraining_distributions.py`.
"""

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf
from proportions import (
    FALSE_ALARM,
    LENGTH,
    MASK,
    assert_counts,
    assert_part,
    epochs_of,
    masks_of,
    words_of,
)

from keras_recbert.text.masking import (
    choose_units,
    find_units,
    find_word_starts,
    ngram_probabilities,
)

pytestmark = pytest.mark.slow


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
