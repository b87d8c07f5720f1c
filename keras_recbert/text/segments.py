"""Rows `[CLS] segment [SEP] segment [SEP]` of ids, in a few ops.

TF Text's `combine_segments` and trimmers do the same for any number of ragged
segments, in 20 times as many ops, which each model traces anew when it starts.
"""

import typing

import tensorflow as tf


class Segment(typing.NamedTuple):
    """A stretch of one long list of tokens for each row.

    Attributes:
        values: int32 `(num_values,)`.
        starts: int32 `(num_rows,)`. Position of the first value of each row.
        lengths: int32 `(num_rows,)`. Values of each row.
    """

    values: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor

    @classmethod
    def of(cls, rows, most=None):
        """The values of ragged rows, of each its first ones.

        Args:
            rows: int32 `tf.RaggedTensor` `(num_rows, None)`.
            most: int or int32 `(num_rows,)`. The most of a row; None for all.
        """
        starts = tf.cast(rows.row_splits, tf.int32)
        lengths = starts[1:] - starts[:-1]
        if most is not None:
            lengths = tf.minimum(lengths, most)
        return cls(rows.flat_values, starts[:-1], lengths)

    def gather(self, rows):
        """The segment of other rows, int32 `(num_rows,)`, positions of these."""
        starts, lengths = tf.gather(self.starts, rows), tf.gather(self.lengths, rows)
        return Segment(self.values, starts, lengths)


def join_segments(segments, cls_id, sep_id, pad_id, length=None, features=None):
    """Joins segments to rows as BERT has them (Devlin et al. 2018, section 3).

    Args:
        segments: list of `Segment`, the parts of each row in their order.
        cls_id, sep_id, pad_id: int. Ids of the special tokens.
        length: int or None. Length of the rows, which must fit; None for that of the
            longest, of no rows 1.
        features: dict of names to tuples of a `Segment` of other values for the tokens
            of the last segment, and what stands elsewhere, int.

    Returns:
        dict of int32 tensors `(num_rows, length)`: `token_ids`; `segment_ids`, the
        number of the segment a token or the `[SEP]` behind it is of; `padding_mask`, 1
        on tokens, 0 on padding; and `features`.
    """
    total = 1 + len(segments) + sum(segment.lengths for segment in segments)
    if length is None:
        # A row at least of one token: an encoder pools a first one.
        length = tf.maximum(tf.reduce_max(total), 1)
    place = tf.range(length)[tf.newaxis]
    is_token = place < total[:, tf.newaxis]
    token_ids = tf.where(is_token, sep_id, pad_id)
    token_ids = tf.where(place == 0, cls_id, token_ids)
    segment_ids = tf.zeros_like(token_ids)
    begin = tf.ones_like(total)
    for number, segment in enumerate(segments):
        inside = _places_in(segment, place, begin)
        token_ids = tf.where(inside >= 0, _taken(segment.values, inside, 0), token_ids)
        if number:
            behind = is_token & (place >= begin[:, tf.newaxis])
            segment_ids += tf.cast(behind, tf.int32)
        last, begin = begin, begin + segment.lengths + 1
    joined = {
        "token_ids": token_ids,
        "segment_ids": segment_ids,
        "padding_mask": tf.cast(is_token, tf.int32),
    }
    for name, (segment, fill) in (features or {}).items():
        joined[name] = _taken(segment.values, _places_in(segment, place, last), fill)
    return joined


def _places_in(segment, place, begin):
    """For each place of the rows the position in `segment.values`; -1 outside it."""
    at = place - begin[:, tf.newaxis]
    is_inside = (at >= 0) & (at < segment.lengths[:, tf.newaxis])
    return tf.where(is_inside, at + segment.starts[:, tf.newaxis], -1)


def _taken(values, places, fill):
    """`values` at `places`, `fill` at -1."""
    return tf.gather(tf.concat([[fill], values], axis=0), places + 1)
