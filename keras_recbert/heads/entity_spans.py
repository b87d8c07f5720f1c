"""Entities of tags, in a graph."""

import tensorflow as tf

from keras_recbert.metrics.tagging import OUTSIDE, continues, split_tag


def entity_spans(tag_ids, label_names):
    """The entities of sentences, as `keras_recbert.metrics.tagging.entities_of`.

    Args:
        tag_ids: int32 `(batch_size, num_words)`; -1 behind the last word.
        label_names: sequence of str, the tags of the ids.

    Returns:
        Tuple of tensors `(batch_size, most entities of a sentence)`: string, the
        labels, padded with `""`; int32, the position of the first word of each and the
        one after its last, padded with -1.
    """
    names = [*label_names, OUTSIDE]
    tag_ids = tf.where(tag_ids < 0, len(label_names), tag_ids)
    outside = tf.constant([name == OUTSIDE for name in names])
    # For each tag and the one before it.
    table = tf.constant([[continues(before, tag) for tag in names] for before in names])
    before = tf.pad(tag_ids, [[0, 0], [1, 0]], constant_values=len(label_names))
    after = tf.pad(tag_ids, [[0, 0], [0, 1]], constant_values=len(label_names))
    is_joined = tf.gather_nd(table, tf.stack([before, after], axis=2))
    is_inside = ~tf.gather(outside, tag_ids)
    first = tf.where(is_inside & ~is_joined[:, :-1])
    last = tf.where(is_inside & ~is_joined[:, 1:])
    labels = tf.constant([split_tag(name)[1] for name in names])
    labels = tf.gather(labels, tf.gather_nd(tag_ids, first))

    def by_sentence(values, padding):
        rows = tf.shape(tag_ids, tf.int64)[0]
        ragged = tf.RaggedTensor.from_value_rowids(
            values, first[:, 0], rows, validate=False
        )
        return ragged.to_tensor(padding)

    return (
        by_sentence(labels, ""),
        by_sentence(tf.cast(first[:, 1], tf.int32), -1),
        by_sentence(tf.cast(last[:, 1], tf.int32) + 1, -1),
    )
