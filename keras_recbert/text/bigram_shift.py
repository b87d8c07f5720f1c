"""Bigram shift: swaps neighbouring words, to be told from those in place."""

import tensorflow as tf


def shift_bigrams(spans, word_starts, draws, phases, swap_rate):
    """Draws pairs of neighbouring words that trade places.

    Words of a span are paired two by two, from the first or from the second one on;
    each pair is swapped with a probability of `swap_rate`, words with all their pieces
    (Aksoy et al. 2020, section 3, item 3). A word is in one pair at most, so a swap
    never moves it further than one place.

    Args:
        spans: int32, `(rows, length)`. 0 on special tokens and padding, else the number
            of the span, from 1; a span is contiguous.
        word_starts: bool, `(rows, length)`. Where a word begins; each special token and
            each place of padding is a word.
        draws: float32, `(rows, length)`, in [0, 1): of each word whether it is swapped
            with the next.
        phases: float32, `(rows, num_spans)`, in [0, 1): of each span whether its pairs
            begin with the first word or with the second.
        swap_rate: float. Part of the pairs that are swapped.

    Returns:
        `(sources, shifted)`: int32 `(rows, length)`, the place that each place takes
        its piece from; bool `(rows, length)`, where pieces are out of place.
    """
    rows, length = tf.unstack(tf.shape(spans))
    words = tf.cumsum(tf.cast(word_starts, tf.int32), axis=1) - 1
    offsets = tf.range(rows)[:, None] * length

    def of_words(values, combine):
        values = tf.reshape(values, [-1])
        flat = tf.reshape(words + offsets, [-1])
        return tf.reshape(combine(values, flat, rows * length), [rows, length])

    sizes = of_words(tf.ones_like(spans), tf.math.unsorted_segment_sum)
    # Words that a row has not get the least int32, which is no span.
    word_spans = tf.maximum(of_words(spans, tf.math.unsorted_segment_max), 0)
    next_spans = tf.pad(word_spans[:, 1:], [[0, 0], [0, 1]])
    next_sizes = tf.pad(sizes[:, 1:], [[0, 0], [0, 1]])

    phases = tf.cast(phases < 0.5, tf.int32)
    phases = tf.gather(phases, tf.maximum(word_spans - 1, 0), batch_dims=1)
    is_first = (tf.range(length) + phases) % 2 == 0
    is_pair = (word_spans > 0) & (word_spans == next_spans)
    goes_up = is_first & is_pair & (draws < swap_rate)
    goes_down = tf.pad(goes_up[:, :-1], [[0, 0], [1, 0]])
    sizes_before = tf.pad(sizes[:, :-1], [[0, 0], [1, 0]])
    moves = tf.where(goes_up, next_sizes, tf.where(goes_down, -sizes_before, 0))

    places = tf.tile(tf.range(length)[None], [rows, 1])
    targets = places + tf.gather(moves, words, batch_dims=1) + offsets
    sources = tf.scatter_nd(
        tf.reshape(targets, [-1, 1]), tf.reshape(places, [-1]), [rows * length]
    )
    shifted = tf.gather(moves != 0, words, batch_dims=1)
    # A pair as a whole stays where it was: no need to move the labels with it.
    return tf.reshape(sources, [rows, length]), shifted
