"""Masked language modelling: what to mask together, which of it, and by what."""

import numpy as np
import tensorflow as tf

# Passes over what is left of a row, to fill its number of masks with smaller units.
# On English text all but one row in thousands is full after three.
_PASSES = 4


def find_word_starts(token_ids, spans, continuation):
    """Tells where words begin.

    Args:
        token_ids: int32, `(rows, length)`.
        spans: int32, `(rows, length)`. 0 on special tokens and padding, else the number
            of the span.
        continuation: bool, `(vocabulary_size,)`. Which pieces continue a word ("##").

    Returns:
        bool, `(rows, length)`. The first piece of a span begins a word in any case.
    """
    before = tf.pad(spans[:, :-1], [[0, 0], [1, 0]])
    return ~tf.gather(continuation, token_ids) | (spans != before)


def ngram_probabilities(max_ngram):
    """Probability of each length from 1 word to `max_ngram`, in proportion to 1 / n."""
    weights = 1 / np.arange(1, max_ngram + 1)
    return weights / weights.sum()


def find_units(spans, word_starts, unit, draws=None, max_ngram=3):
    """Numbers what is masked together.

    Args:
        spans: int32, `(rows, length)`. 0 on special tokens and padding, 1 and 2 on the
            spans of a row, of which there are at most two.
        word_starts: bool, `(rows, length)`.
        unit: str. `"word_piece"`, `"whole_word"` (Huang et al. 2020, section 4.1) or
            `"ngram"`: each span is cut into runs of 1 to `max_ngram` words, from left
            to right, the last one as long as there are words.
        draws: float32, `(rows, length + max_ngram)`, in [0, 1): of n-grams their
            lengths.
        max_ngram: int. Most words of an n-gram.

    Returns:
        int32, `(rows, length)`, from 0 and below `length`: equal on the pieces of a
        unit, and without meaning outside of spans.
    """
    if unit == "word_piece":
        rows, length = tf.unstack(tf.shape(spans))
        return tf.tile(tf.range(length)[None], [rows, 1])
    if unit == "whole_word":
        return tf.cumsum(tf.cast(word_starts, tf.int32), axis=1) - 1

    bounds = np.cumsum(ngram_probabilities(max_ngram))[:-1]
    sizes = 1 + tf.searchsorted(
        tf.constant(bounds, tf.float32), tf.reshape(draws, [-1]), side="right"
    )
    ends = tf.cumsum(tf.reshape(sizes, tf.shape(draws)), axis=1)
    # Words of the second span are counted on from the end of the n-gram that the last
    # word of the first one is in, so that the second begins with an n-gram of its own.
    in_first = tf.cumsum(tf.cast(word_starts & (spans == 1), tf.int32), axis=1)
    in_second = tf.cumsum(tf.cast(word_starts & (spans == 2), tf.int32), axis=1)
    last = tf.maximum(in_first[:, -1:] - 1, 0)
    end_of_last = tf.searchsorted(ends, last, side="right")
    base = tf.gather(ends, end_of_last, batch_dims=1)
    words = tf.where(spans == 2, base + in_second - 1, in_first - 1)
    return tf.searchsorted(ends, words, side="right")


def choose_units(units, spans, numbers, draws):
    """Chooses units in random order as long as they fit, then smaller ones.

    Args:
        units: int32, `(rows, length)`, from `find_units`.
        spans: int32, `(rows, length)`. 0 where nothing may be chosen.
        numbers: int32, `(rows,)`. Word pieces to choose. Fewer are chosen where no
            unit fits what is left, none where all units are larger.
        draws: float32, `(rows, length)`, in [0, 1): the order of the units.

    Returns:
        bool, `(rows, length)`. Where a piece is chosen.
    """
    rows, length = tf.unstack(tf.shape(units))
    offsets = tf.range(rows)[:, None] * length
    in_spans = tf.cast(spans > 0, tf.int32)
    sizes = tf.math.unsorted_segment_sum(in_spans, units + offsets, rows * length)
    order = tf.argsort(draws, axis=1)
    sizes = tf.gather(sizes, order + offsets)

    chosen = tf.zeros_like(sizes, tf.bool)
    left = numbers[:, None]
    for _ in range(_PASSES):
        candidates = tf.where(~chosen & (sizes <= left), sizes, 0)
        fits = (candidates > 0) & (tf.cumsum(candidates, axis=1) <= left)
        chosen |= fits
        left -= tf.reduce_sum(tf.where(fits, sizes, 0), axis=1, keepdims=True)

    by_unit = tf.scatter_nd(
        tf.reshape(order + offsets, [-1, 1]), tf.reshape(chosen, [-1]), [rows * length]
    )
    return tf.gather(by_unit, units + offsets) & (spans > 0)


def replace_pieces(
    token_ids, chosen, draws, draws_of_pieces, mask_id, pieces, mask_rate, random_rate
):
    """Replaces chosen pieces: by [MASK], by another piece, or not at all.

    Each piece by itself, whatever was chosen with it (Devlin et al. 2018, 3.3.1).

    Args:
        token_ids: int32, `(rows, length)`.
        chosen: bool, `(rows, length)`.
        draws: float32, `(rows, length)`, in [0, 1): what a piece is replaced by.
        draws_of_pieces: float32, `(rows, length)`, in [0, 1): the other piece.
        mask_id: int. Id of [MASK].
        pieces: int32, `(num_pieces,)`. Ids to draw other pieces from.
        mask_rate: float. Part of the chosen pieces that become [MASK].
        random_rate: float. Part of them that become a piece drawn evenly.

    Returns:
        int32, `(rows, length)`.
    """
    if random_rate > 0:
        number = tf.cast(tf.size(pieces), tf.float32)
        others = tf.gather(pieces, tf.cast(draws_of_pieces * number, tf.int32))
        becomes_other = chosen & (draws < mask_rate + random_rate)
        token_ids = tf.where(becomes_other, others, token_ids)
    return tf.where(chosen & (draws < mask_rate), mask_id, token_ids)
