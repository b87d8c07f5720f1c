"""Turns what a user passes as lists of strings into a tensor, or says what is wrong."""

import numpy as np
import tensorflow as tf

from keras_recbert.text.string_tensor import to_string_tensor


def to_string_lists(lists, argument="texts"):
    """Converts a list of strings for each example to a tensor with two axes.

    Args:
        lists: a list of lists of str or bytes, a NumPy array of them, a string
            `tf.RaggedTensor` `(batch_size, None)`, or a string tensor or NumPy array
            `(batch_size, most)`, padded with "" at the ends of its rows.
        argument: str. Name used in error messages.

    Returns:
        string tensor `(batch_size, most)`, padded with "".

    Raises:
        TypeError: if a value is not a string, or an example has no list; the message
            names its index.
        ValueError: if there are not two axes, or a string of a list is empty.
    """
    if tf.is_tensor(lists):
        return _of_tensor(lists, argument)
    if isinstance(lists, np.ndarray) and lists.ndim == 2:
        return _of_tensor(tf.reshape(_strings(lists, argument), lists.shape), argument)
    if not isinstance(lists, (list, np.ndarray)) and not hasattr(lists, "__array__"):
        raise TypeError(
            f"`{argument}` must hold a list of strings for each example. Received: "
            f"{lists!r:.60} of type {type(lists).__name__}."
        )
    values, lengths = [], []
    for index, one in enumerate(lists):
        if not isinstance(one, (list, tuple, np.ndarray)):
            raise TypeError(
                f"`{argument}` must hold a list of strings for each example. Received "
                f"{one!r:.60} of type {type(one).__name__} at index {index}."
            )
        for place, value in enumerate(one):
            if not isinstance(value, (str, bytes)):
                raise TypeError(
                    f"`{argument}` must hold strings only. Received {value!r:.60} of "
                    f"type {type(value).__name__} at index {index}, at place {place} "
                    "of its list."
                )
            if not value:
                raise ValueError(
                    f"`{argument}` must hold no empty string. Received {list(one)} at "
                    f"index {index}."
                )
        values.extend(one)
        lengths.append(len(one))
    return tf.RaggedTensor.from_row_lengths(
        to_string_tensor(values, argument), tf.constant(lengths, tf.int64)
    ).to_tensor("")


def _strings(array, argument):
    return to_string_tensor(array.reshape(-1), argument)


def _of_tensor(lists, argument):
    if lists.dtype != tf.string:
        raise TypeError(
            f"`{argument}` must hold strings. Received a tensor of dtype "
            f"{lists.dtype.name}."
        )
    if lists.shape.rank != 2:
        raise ValueError(
            f"`{argument}` must have two axes, a list of strings for each example. "
            f"Received shape {lists.shape}."
        )
    return lists.to_tensor("") if isinstance(lists, tf.RaggedTensor) else lists
