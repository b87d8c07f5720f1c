"""Turns what a user passes as texts into a string tensor, or says what is wrong."""

import numpy as np
import tensorflow as tf


def to_string_tensor(texts, argument="texts"):
    """Converts texts to a string tensor with one axis.

    Args:
        texts: a str or bytes (a batch of one), a list, NumPy array or other
            array-like of them, or a string tensor of shape `()` or `(batch_size,)`.
        argument: str. Name used in error messages.

    Returns:
        string tensor, `(batch_size,)`.

    Raises:
        TypeError: if a value is not a string; the message names its index.
        ValueError: if there is more than one axis.
    """
    if tf.is_tensor(texts):
        if texts.dtype != tf.string:
            raise TypeError(
                f"`{argument}` must hold strings. Received a tensor of dtype "
                f"{texts.dtype.name}. Pass raw text; ids that are packed already go "
                "straight to the model."
            )
        if isinstance(texts, tf.RaggedTensor) or (texts.shape.rank or 0) > 1:
            raise ValueError(_axes_message(argument, texts.shape))
        return tf.reshape(texts, [1]) if texts.shape.rank == 0 else texts
    if isinstance(texts, (str, bytes)):
        texts = [texts]
    if not isinstance(texts, (list, np.ndarray)) and not hasattr(texts, "__array__"):
        raise TypeError(
            f"`{argument}` must be a string, a list of strings, a NumPy array or a "
            f"string tensor. Received: {_short(texts)} of type {type(texts).__name__}."
        )
    if isinstance(texts, np.ndarray) and texts.ndim == 0:
        texts = texts.reshape(1)
    if getattr(texts, "ndim", 1) > 1:
        raise ValueError(_axes_message(argument, texts.shape))
    values = list(texts)
    for index, value in enumerate(values):
        if isinstance(value, (str, bytes)) or _is_scalar_string_tensor(value):
            continue
        if isinstance(value, (list, tuple)):
            raise TypeError(
                f"`{argument}` must hold one string per item. Received a "
                f"{type(value).__name__} at index {index}: {_short(value)}. For "
                "sentence pairs pass a tuple of two batches, "
                "(first_texts, second_texts)."
            )
        raise TypeError(
            f"`{argument}` must hold strings only. Received {_short(value)} of type "
            f"{type(value).__name__} at index {index}. Replace missing values, for "
            'example by "".'
        )
    if not values:
        return tf.zeros([0], dtype=tf.string)
    return tf.convert_to_tensor([_encode(value) for value in values], dtype=tf.string)


def _encode(value):
    # Half a surrogate pair has no UTF-8; it becomes invalid UTF-8, which the
    # tokenizer drops, instead of an error deep in TensorFlow.
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _is_scalar_string_tensor(value):
    return tf.is_tensor(value) and value.dtype == tf.string and value.shape.rank == 0


def _axes_message(argument, shape):
    return (
        f"`{argument}` must have one axis, (batch_size,). Received shape {shape}. "
        "Remove the other axes, for example with tf.squeeze(texts, -1); for sentence "
        "pairs pass a tuple of two batches, (first_texts, second_texts)."
    )


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
