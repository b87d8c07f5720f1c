"""Swapped words: whole words, neighbours, inside of a span, and labelled."""

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.text.bigram_shift import shift_bigrams

# [CLS] a b ##b c [SEP] d e ##e f g [SEP] [PAD]
SPANS = [0, 1, 1, 1, 1, 0, 2, 2, 2, 2, 2, 0, 0]
STARTS = [1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1]


def shift(draws, phases, swap_rate=0.5):
    """Sources and labels of the row above."""
    sources, shifted = shift_bigrams(
        tf.constant([SPANS]),
        tf.constant([STARTS]) == 1,
        tf.constant([draws], tf.float32),
        tf.constant([phases], tf.float32),
        swap_rate,
    )
    return sources.numpy()[0].tolist(), shifted.numpy()[0].astype(int).tolist()


@pytest.mark.parametrize(
    ("phases", "sources", "shifted"),
    [
        # Spans begin at words 1 (odd) and 5 (odd): a phase below 0.5 pairs from the
        # first word on.
        (
            [0.1, 0.1],
            [0, 2, 3, 1, 4, 5, 7, 8, 6, 10, 9, 11, 12],
            [0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0],
        ),
        (
            [0.9, 0.9],
            [0, 1, 4, 2, 3, 5, 6, 9, 7, 8, 10, 11, 12],
            [0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0],
        ),
        (
            [0.9, 0.1],
            [0, 1, 4, 2, 3, 5, 7, 8, 6, 10, 9, 11, 12],
            [0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0],
        ),
    ],
)
def test_all_pairs_of_a_phase_are_swapped_with_all_pieces(phases, sources, shifted):
    assert shift([0.0] * 13, phases) == (sources, shifted)


def test_a_draw_below_the_rate_swaps_its_pair_alone():
    draws = [0.9] * 13
    draws[7] = 0.49  # word 7 is f; the pairs are d e, f g
    assert shift(draws, [0.1, 0.1]) == (
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0],
    )
    draws[7] = 0.51
    assert shift(draws, [0.1, 0.1]) == (list(range(13)), [0] * 13)


def test_spans_that_touch_do_not_trade_words():
    spans = tf.constant([[1, 1, 1, 2, 2, 2]])
    sources, _ = shift_bigrams(
        spans, spans > 0, tf.zeros([1, 6]), tf.constant([[0.9, 0.9]]), 0.5
    )
    # Both spans are paired from their even word on: 0 1, then 2 alone; 4 5.
    assert sources.numpy()[0].tolist() == [1, 0, 2, 3, 5, 4]


def test_rows_are_shifted_each_by_itself():
    draws = np.full([2, 13], 0.9, np.float32)
    draws[1] = 0
    sources, shifted = shift_bigrams(
        tf.constant([SPANS, SPANS]),
        tf.constant([STARTS, STARTS]) == 1,
        tf.constant(draws),
        tf.constant([[0.1, 0.1], [0.1, 0.1]]),
        0.5,
    )
    assert (
        sources.numpy()[0].tolist() == list(range(13)) and not shifted[0].numpy().any()
    )
    assert (sources.numpy()[1].tolist(), shifted.numpy()[1].astype(int).tolist()) == (
        shift([0.0] * 13, [0.1, 0.1])
    )


def test_random_rows_are_permuted_inside_of_spans_only():
    rng = np.random.default_rng(5)
    rows, length = 60, 24
    spans = np.zeros([rows, length], np.int32)
    starts = np.ones([rows, length], bool)
    for row in range(rows):
        first, second = rng.integers(1, 10, 2)
        spans[row, 1 : 1 + first] = 1
        spans[row, 2 + first : 2 + first + second] = 2
        inside = (spans[row] > 0) & (spans[row] == np.roll(spans[row], 1))
        starts[row, inside] = rng.random(inside.sum()) < 0.6
    sources, shifted = shift_bigrams(
        tf.constant(spans),
        tf.constant(starts),
        tf.constant(rng.random([rows, length]), tf.float32),
        tf.constant(rng.random([rows, 2]), tf.float32),
        0.6,
    )
    sources, shifted = sources.numpy(), shifted.numpy()
    assert (np.sort(sources, axis=1) == np.arange(length)).all()
    assert (np.take_along_axis(spans, sources, 1) == spans).all()
    assert (shifted == (sources != np.arange(length))).all()
    # Pieces that go on with a word still follow the piece before.
    for row in range(rows):
        for place, source in enumerate(sources[row]):
            if not starts[row, source]:
                assert sources[row, place - 1] == source - 1
    assert 0.3 < shifted[spans > 0].mean() < 0.6
