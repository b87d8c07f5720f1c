"""From texts in windows to rows of the encoder, and back."""

import keras
import tensorflow as tf

WINDOW_POOLINGS = ("mean", "max")


class WindowRows(keras.layers.Layer):
    """Puts the windows of all texts behind each other, without those of padding.

    The encoder computes as many rows as there are windows, however many of them the
    longest text of the batch has.

    Call arguments:
        ids: int, `(batch_size, num_windows, sequence_length)`.
        padding_mask: bool or int, the same shape; 1 = token. A window without one is
            padding, but for the first of a text.

    Returns:
        int, `(num_rows, sequence_length)`.
    """

    def call(self, ids, padding_mask):
        return tf.boolean_mask(ids, is_window(padding_mask))

    def compute_output_spec(self, ids, padding_mask):
        return keras.KerasTensor((None, ids.shape[2]), ids.dtype)


class WindowPooling(keras.layers.Layer):
    """Mean or maximum over the windows of each text (Sun et al. 2019, their
    hierarchical methods).

    Args:
        pooling: `"mean"`; or `"max"`, of each feature by itself.
        **kwargs: as for `keras.layers.Layer`.

    Call arguments:
        rows: float, `(num_rows, dim)`, those of `WindowRows`.
        padding_mask: as for `WindowRows`.

    Returns:
        float, `(batch_size, dim)`.
    """

    def __init__(self, pooling, **kwargs):
        super().__init__(**kwargs)
        self.pooling = pooling

    def call(self, rows, padding_mask):
        text = tf.where(is_window(padding_mask))[:, 0]
        pool = {"mean": tf.math.segment_mean, "max": tf.math.segment_max}
        return pool[self.pooling](rows, text)

    def compute_output_spec(self, rows, padding_mask):
        shape = (padding_mask.shape[0], rows.shape[1])
        return keras.KerasTensor(shape, self.compute_dtype)


def is_window(padding_mask):
    """Whether a window holds a token or is the first of its text.

    Args:
        padding_mask: bool or int, `(batch_size, num_windows, sequence_length)`.

    Returns:
        bool, `(batch_size, num_windows)`.
    """
    is_first = tf.range(tf.shape(padding_mask)[1]) == 0
    return tf.reduce_any(tf.cast(padding_mask, tf.bool), axis=-1) | is_first
