"""Bounds the work that one text can cause, without changing the ids that count.

A server takes what it is sent. Normalisation sorts each run of combining marks in time
that grows with the square of the run, and each word costs far more than its bytes.
"""

import tensorflow as tf

from keras_recbert.core.unicode_classes import (
    CJK,
    OTHER_REORDERED_MARK,
    PUNCTUATION,
    REORDERED_NONSPACING_MARK,
    WHITESPACE,
    code_points,
    regex_class,
)

# Unicode's stream-safe text format (UAX #15, D4) allows 30 marks in a row, and breaks
# longer runs with U+034F, which reorders nothing and is itself a nonspacing mark.
MAX_MARKS = 30
_BREAK = "\u034f"
_STRIPPED = f"[{regex_class(REORDERED_NONSPACING_MARK)}]+"
_RUN = f"[{regex_class(OTHER_REORDERED_MARK)}]{{{MAX_MARKS}}}"

_LETTER, _SPACE, _SINGLE = range(3)


def bound_marks(texts):
    """Bounds the runs of combining marks in texts that are to lose their accents.

    Nonspacing marks are dropped: after normalisation they would be, and the order of
    the others does not depend on them. Of the others, which are letters of words,
    every run over 30 is broken.

    Args:
        texts: string tensor of valid UTF-8, any shape.

    Returns:
        string tensor. Normalised (NFD) and without nonspacing marks it equals `texts`
        so treated, but for the order of marks in runs of more than 30.
    """
    texts = tf.strings.regex_replace(texts, _STRIPPED, "")
    return tf.strings.regex_replace(texts, _RUN, rf"\0{_BREAK}")


def keep_words(texts, max_words):
    """Cuts texts after their first `max_words` words.

    Texts of at most `max_words` bytes, which cannot hold more words, are left alone at
    no cost.

    Args:
        texts: string tensor of valid UTF-8, `(batch_size,)`.
        max_words: int.

    Returns:
        string tensor, `(batch_size,)`.
    """

    def is_long(text):
        return tf.strings.length(text) > max_words

    def cut_if_long(text):
        return tf.cond(is_long(text), lambda: _cut(text, max_words), lambda: text)

    def cut_long_ones():
        # One at a time: the code points of a text take several times its memory.
        return tf.map_fn(
            cut_if_long,
            texts,
            parallel_iterations=1,
            fn_output_signature=tf.TensorSpec([], tf.string),
        )

    return tf.cond(tf.reduce_any(is_long(texts)), cut_long_ones, lambda: texts)


def _cut(text, max_words):
    """Cuts one text, a scalar, after `max_words` words."""
    starts, kinds = _kinds_of_code_points()
    codes = tf.strings.unicode_decode(text, "UTF-8")
    kind = tf.gather(kinds, tf.searchsorted(starts, codes, side="right"))
    is_letter = kind == _LETTER
    follows_letter = tf.concat([[False], is_letter[:-1]], 0)
    begins_word = (kind == _SINGLE) | (is_letter & ~follows_letter)
    word = tf.cumsum(tf.cast(begins_word, tf.int32))
    length = tf.reduce_sum(tf.cast(word <= max_words, tf.int32))
    return tf.strings.substr(text, 0, length, unit="UTF8_CHAR")


def _kinds_of_code_points():
    """First code point of each range, int32, and kinds before, in and after them."""
    borders = {}
    for kind, table in ((_SPACE, WHITESPACE), (_SINGLE, f"{PUNCTUATION} {CJK}")):
        for first, last in code_points(table):
            borders[first] = kind
            borders.setdefault(last + 1, _LETTER)
    starts = sorted(borders)
    kinds = [_LETTER, *(borders[start] for start in starts)]
    return tf.constant(starts, tf.int32), tf.constant(kinds, tf.int32)
