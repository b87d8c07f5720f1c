"""Where in the bytes of a text its word pieces are."""

import tensorflow as tf

from keras_recbert.core.unicode_classes import NONSPACING_MARK, code_points
from keras_recbert.text.split_words import normalize


def original_offsets(texts, begins, ends, lowercase=True, strip_accents=None):
    """Takes offsets into normalized texts to offsets into the texts themselves.

    Normalization looks at one character at a time, so the characters of a text tell
    how many normalized bytes stand before each. Offsets are those of whole characters:
    a piece that begins or ends inside one covers all of it, and the nonspacing marks
    that follow.

    Args:
        texts: string tensor `(batch_size,)`; not necessarily valid UTF-8.
        begins, ends: int `tf.RaggedTensor` `(batch_size, None)`. First byte of each
            piece in the normalized text, and the one after its last.
        lowercase, strip_accents: as for `split_words`.

    Returns:
        Tuple of int32 `tf.RaggedTensor`, `(batch_size, None)`: first byte of each
        piece in `texts`, and the one after its last.
    """
    codes, starts = tf.strings.unicode_decode_with_offsets(
        texts, "UTF-8", errors="replace"
    )
    sizes = tf.cast(tf.strings.length(texts), tf.int64)
    # The bytes of all texts in a row, so that one search serves them all.
    first_byte = tf.cumsum(sizes, exclusive=True)
    text = codes.value_rowids()
    character_starts = starts.flat_values + tf.gather(first_byte, text)
    num_bytes = tf.reduce_sum(sizes, keepdims=True)
    character_ends = tf.concat([character_starts, num_bytes], 0)[1:]
    lengths = _normalized_lengths(codes.flat_values, lowercase, strip_accents)
    first = tf.gather(codes.row_splits, text)
    character_ends = _with_marks(codes.flat_values, lengths, character_ends, first)
    # Normalized bytes up to the end of each character, those of all texts in a row.
    total = tf.cumsum(lengths)
    row_ends = tf.gather(tf.concat([[0], total], 0), codes.row_splits)
    piece_text = begins.value_rowids()
    row_begin = tf.gather(row_ends, piece_text)

    def character_of(offsets):
        return tf.searchsorted(total, offsets + row_begin, side="right")

    begin = tf.cast(begins.flat_values, tf.int64)
    last = tf.cast(ends.flat_values, tf.int64) - 1
    shift = tf.gather(first_byte, piece_text)
    original_begin = tf.gather(character_starts, character_of(begin)) - shift
    original_end = tf.gather(character_ends, character_of(last)) - shift
    return (
        begins.with_flat_values(tf.cast(original_begin, tf.int32)),
        begins.with_flat_values(tf.cast(original_end, tf.int32)),
    )


def _normalized_lengths(codes, lowercase, strip_accents):
    """Bytes that each character becomes, int64; looks at each kind of it once."""
    kinds, index = tf.unique(codes)
    characters = tf.strings.unicode_encode(kinds[:, tf.newaxis], "UTF-8")
    normalized = normalize(characters, lowercase, strip_accents)
    return tf.cast(tf.gather(tf.strings.length(normalized), index), tf.int64)


def _with_marks(codes, lengths, ends, first):
    """Ends of characters, moved behind the dropped marks that follow each.

    Args:
        codes, lengths, ends: `(num_characters,)`, those of all texts.
        first: int64 `(num_characters,)`. The first character of the text of each.

    Returns:
        int64 `(num_characters,)`.
    """
    borders = sorted(
        border
        for first, last in code_points(NONSPACING_MARK)
        for border in (first, last + 1)
    )
    place = tf.searchsorted(tf.constant(borders, tf.int32), codes, side="right")
    is_mark = (place % 2 == 1) & (lengths == 0)
    is_first = tf.range(tf.size(lengths, tf.int64)) == first
    # A character and the marks behind it; or the marks that a text begins with.
    run = tf.cumsum(tf.cast(is_first | ~is_mark, tf.int64)) - 1
    return tf.gather(tf.math.segment_max(ends, run), run)
