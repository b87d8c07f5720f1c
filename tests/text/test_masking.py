"""Units of masking, which of them are chosen, and what becomes of their pieces."""

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.text.masking import (
    choose_units,
    find_units,
    find_word_starts,
    ngram_probabilities,
    replace_pieces,
)

# [CLS] ##x a ##a b [SEP] ##y c d ##d ##d [SEP] [PAD] [PAD]
SPANS = np.array([[0, 1, 1, 1, 1, 0, 2, 2, 2, 2, 2, 0, 0, 0]], np.int32)
CONTINUATION = [False, True]
IDS = np.array([[0, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0]], np.int32)
STARTS = np.array([[1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1]]) == 1


def units_of(unit, spans=SPANS, starts=STARTS, draws=None, **kwargs):
    """Lists of the places of each unit, in order, of the first row."""
    units = find_units(tf.constant(spans), tf.constant(starts), unit, draws, **kwargs)
    units = units.numpy()[0]
    assert (units < spans.shape[1]).all() and (units >= 0).all()
    places = np.flatnonzero(spans[0])
    return [places[units[places] == n].tolist() for n in np.unique(units[places])]


def random_rows(seed, rows, length):
    rng = np.random.default_rng(seed)
    spans = np.zeros([rows, length], np.int32)
    starts = np.ones([rows, length], bool)
    for row in range(rows):
        first = rng.integers(1, length - 3)
        second = rng.integers(0, length - 2 - first)
        spans[row, 1 : 1 + first] = 1
        spans[row, 2 + first : 2 + first + second] = 2
        inside = (spans[row] > 0) & (spans[row] == np.roll(spans[row], 1))
        starts[row, inside] = rng.random(inside.sum()) < 0.6
    return spans, starts, rng


def test_a_word_begins_at_whole_pieces_and_with_a_span():
    starts = find_word_starts(tf.constant(IDS), tf.constant(SPANS), CONTINUATION)
    assert (starts.numpy() == STARTS).all()


def test_units_are_pieces_or_words():
    pieces = [[1], [2], [3], [4], [6], [7], [8], [9], [10]]
    assert units_of("word_piece") == pieces
    assert units_of("whole_word") == [[1], [2, 3], [4], [6], [7], [8, 9, 10]]


def test_ngrams_are_runs_of_words_and_begin_anew_in_the_second_span():
    # Lengths 1, 2 and 3 have probabilities 6/11, 3/11 and 2/11.
    one, two, three = 0.5, 0.6, 0.9
    draws = np.full([1, 17], one, np.float32)
    draws[0, :4] = [two, three, two, one]
    # The second n-gram would have three words: the span has one left. So the next
    # length, two, is that of the first n-gram of the second span.
    assert units_of("ngram", draws=tf.constant(draws)) == [
        [1, 2, 3],
        [4],
        [6, 7],
        [8, 9, 10],
    ]
    draws[0, :4] = [three, one, three, one]
    expected = [[1, 2, 3, 4], [6], [7, 8, 9, 10]]
    assert units_of("ngram", draws=tf.constant(draws)) == expected
    # At most one word: the words.
    assert units_of("ngram", draws=tf.constant(draws), max_ngram=1) == units_of(
        "whole_word"
    )


def test_random_ngrams_are_contiguous_whole_words_of_one_span():
    spans, starts, rng = random_rows(3, rows=80, length=40)
    draws = tf.constant(rng.random([80, 44]), tf.float32)
    units = find_units(
        tf.constant(spans), tf.constant(starts), "ngram", draws, max_ngram=4
    ).numpy()
    numbers = []
    for row in range(80):
        inside = np.flatnonzero(spans[row])
        for unit in np.unique(units[row, inside]):
            places = inside[units[row, inside] == unit]
            assert len(set(spans[row, places])) == 1
            assert (np.diff(places) == 1).all()
            assert starts[row, places[0]]
            after = places[-1] + 1
            assert starts[row, after] or spans[row, after] == 0
            numbers.append(starts[row, places].sum())
    assert set(numbers) == {1, 2, 3, 4}


def test_probability_of_an_ngram_is_one_over_its_length():
    assert ngram_probabilities(1).tolist() == [1]
    np.testing.assert_allclose(ngram_probabilities(3), [6 / 11, 3 / 11, 2 / 11])


@pytest.mark.parametrize(
    ("order", "number", "places"),
    [
        # Units by size: x 1, aa 2, b 1, y 1, c 1, ddd 3.
        ("ddd aa x b y c", 5, [2, 3, 8, 9, 10]),
        ("ddd aa x b y c", 4, [1, 8, 9, 10]),  # aa does not fit, x does
        ("aa ddd x b y c", 4, [1, 2, 3, 4]),  # ddd does not fit, then x and b
        ("ddd aa x b y c", 2, [2, 3]),
        ("ddd aa b x y c", 1, [4]),
        ("x aa b ddd y c", 3, [1, 2, 3]),
        ("x aa b ddd y c", 20, [1, 2, 3, 4, 6, 7, 8, 9, 10]),
        ("x aa b ddd y c", 0, []),
    ],
)
def test_units_are_chosen_in_random_order_then_smaller_ones(order, number, places):
    # Numbers of the words in the row: [CLS] is 0, [SEP] is 4.
    numbers = {"x": 1, "aa": 2, "b": 3, "y": 5, "c": 6, "ddd": 7}
    draws = np.full([1, 14], 0.99, np.float32)
    draws[0, [0, 4, 8, 9, 10]] = 0.0  # of special tokens and padding: never chosen
    for rank, name in enumerate(order.split()):
        draws[0, numbers[name]] = 0.1 + rank / 10
    units = find_units(tf.constant(SPANS), tf.constant(STARTS), "whole_word")
    chosen = choose_units(
        units, tf.constant(SPANS), tf.constant([number]), tf.constant(draws)
    )
    assert np.flatnonzero(chosen.numpy()[0]).tolist() == places


def test_a_word_longer_than_the_budget_is_left_alone():
    spans = tf.constant([[0, 1, 1, 1, 1, 0]])
    starts = tf.constant([[True, True, False, False, False, True]])
    units = find_units(spans, starts, "whole_word")
    draws = tf.random.stateless_uniform([1, 6], [0, 1])
    assert not choose_units(units, spans, tf.constant([3]), draws).numpy().any()
    assert choose_units(units, spans, tf.constant([4]), draws).numpy()[0].tolist() == [
        *(False, True, True, True, True, False)
    ]


@pytest.mark.parametrize("unit", ["word_piece", "whole_word"])
def test_choice_is_first_fit_in_random_order(unit):
    rows, length = 200, 40
    spans, starts, rng = random_rows(11, rows, length)
    # Words of at most 4 pieces, for which the passes are enough by all means.
    for row in starts:
        for place in range(4, length):
            row[place] |= not row[place - 3 : place].any()
    draws = rng.random([rows, length]).astype(np.float32)
    numbers = rng.integers(0, 12, rows).astype(np.int32)
    units = find_units(tf.constant(spans), tf.constant(starts), unit)
    chosen = choose_units(units, tf.constant(spans), numbers, tf.constant(draws))
    units, chosen = units.numpy(), chosen.numpy()
    for row in range(rows):
        expected, left = set(), numbers[row]
        for number in np.argsort(draws[row]):
            places = np.flatnonzero((units[row] == number) & (spans[row] > 0))
            if 0 < len(places) <= left:
                expected |= set(places.tolist())
                left -= len(places)
        assert set(np.flatnonzero(chosen[row]).tolist()) == expected


def replace(mask_rate, random_rate, draws, draws_of_pieces):
    return replace_pieces(
        tf.constant([[10, 11, 12, 13, 14]]),
        tf.constant([[False, True, True, True, True]]),
        tf.constant([draws]),
        tf.constant([draws_of_pieces]),
        mask_id=4,
        pieces=tf.constant([7, 8, 9]),
        mask_rate=mask_rate,
        random_rate=random_rate,
    ).numpy()[0]


def test_each_chosen_piece_becomes_a_mask_another_piece_or_itself():
    draws = [0.0, 0.79, 0.81, 0.89, 0.91]
    others = [0.0, 0.0, 0.34, 0.9999999, 0.0]
    assert replace(0.8, 0.1, draws, others).tolist() == [10, 4, 8, 9, 14]
    assert replace(1.0, 0.0, draws, others).tolist() == [10, 4, 4, 4, 4]
    assert replace(0.0, 0.0, draws, others).tolist() == [10, 11, 12, 13, 14]
    assert replace(0.0, 1.0, draws, others).tolist() == [10, 7, 8, 9, 7]
