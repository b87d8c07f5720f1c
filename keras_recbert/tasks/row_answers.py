"""Answers to examples that have several rows."""

import functools

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.tasks.example_rows import ExampleRows
from keras_recbert.tasks.text_batches import NO_TEXT, columns, split_element
from keras_recbert.tasks.text_streams import is_stream

CHUNK = 256  # examples answered at a time; bounds the padded copy in memory


def has_several_rows(preprocessor):
    """Whether an example may have several rows.

    Args:
        preprocessor: `Packer`, or None for a model of packed ids only.
    """
    return preprocessor is not None and bool(preprocessor.row_features)


def predict_answers(model, x, batch_size, predict):
    """What the head of a model answers to examples.

    Args:
        model: `TextModel`.
        x: texts as `TextModel.predict` takes them.
        batch_size: int. Rows at a time.
        predict: `predict` of Keras, of batches of packed ids.

    Returns:
        dict of arrays, an item an example.
    """
    if isinstance(x, tf.data.Dataset) or is_stream(x):
        if isinstance(x, keras.utils.PyDataset):  # which `for` would read without end
            x = map(x.__getitem__, range(len(x)))
        quiet = functools.partial(predict, verbose=0)
        answers = [predict_answers(model, _texts_of(b), batch_size, quiet) for b in x]
        if not answers:
            raise ValueError(NO_TEXT)
        return _joined(answers)
    parts = columns(model.preprocessor, x)
    rows = ExampleRows(model.preprocessor, parts)
    order = rows.longest_first
    logits = predict(rows.batches(batch_size, order=order))
    return answers_of_rows(model.head, rows, logits[np.argsort(order)], parts)


def _texts_of(batch):
    """Those of a batch of a dataset or a stream, without labels and weights."""
    return split_element(*(batch if isinstance(batch, tuple) else (batch,)))[0]


def answers_of_rows(head, rows, logits, parts):
    """What a head answers to examples, from the logits of their rows.

    Args:
        head: `Head`.
        rows: `ExampleRows`.
        logits: array, as `predict` gives them of `rows.batches`.
        parts: tuple of string tensors, a field each, see `Packer.columns`.

    Returns:
        dict of arrays, an item an example.
    """
    example = rows.features["example"].numpy()
    starts = range(0, len(parts[0]), CHUNK)
    borders = np.searchsorted(example, [*starts, len(parts[0])])
    found = []
    for start, first, last in zip(starts, borders, borders[1:], strict=False):
        features = rows.row_features(slice(first, last))
        features["example"] = features["example"] - start
        texts = tuple(part[start : start + CHUNK] for part in parts)
        found.append(head.answer_rows(logits[first:last], features, texts))
    return _joined(found)


def _joined(answers):
    """Arrays of the answers to all batches, those of words as long as the longest."""
    return {
        name: _concatenated([np.asarray(answer[name]) for answer in answers])
        for name in answers[0]
    }


def _concatenated(arrays):
    if arrays[0].ndim < 2:
        return np.concatenate(arrays)
    width = max(array.shape[1] for array in arrays)
    padding = {"O": b"", "f": 0.0, "i": -1}[arrays[0].dtype.kind]
    return np.concatenate(
        [
            np.pad(
                array, [(0, 0), (0, width - array.shape[1])], constant_values=padding
            )
            for array in arrays
        ]
    )
