"""Querying a SavedModel or a model, and printing what it answers."""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.savedmodel import read_savedmodel
from keras_recbert.text.string_tensor import to_string_tensor

SEPARATOR = "|"  # of several labels


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Predictions and scores for batches of texts.

    Args:
        function: function of string tensors `(batch_size,)`, by the names of the
            fields; gives a dict of `scores` and, of a classifier, `label`.
        fields: sequence of str. Fields an example has.

    Call arguments:
        columns: list of lists of str, one for each field.

    Returns:
        List of tuples, one an example, see `labels_and_scores`.
    """

    function: Callable
    fields: tuple

    def __call__(self, columns):
        outputs = self.function(
            **{
                name: to_string_tensor(column)
                for name, column in zip(self.fields, columns, strict=True)
            }
        )
        if "scores" not in outputs:
            raise ValueError(
                "A file needs a model that answers `scores`. This one answers: "
                f"{', '.join(outputs)}."
            )
        return labels_and_scores({k: v.numpy() for k, v in outputs.items()})


def labels_and_scores(outputs):
    """The answer to each example in two values.

    Args:
        outputs: dict of arrays, a row an example: `scores`, and of a classifier
            `label`, of several labels `has_label` and `label_names`.

    Returns:
        List of tuples: the label and its probability; several labels with | between
        them, and the probability of the decision that was least sure; of a regressor
        None and the score.
    """
    scores = outputs["scores"].astype(float)
    if "has_label" in outputs:
        rows = zip(outputs["label_names"], outputs["has_label"], strict=True)
        labels = [
            SEPARATOR.join(name.decode("utf-8") for name in names[has])
            for names, has in rows
        ]
        sure = np.maximum(scores, 1.0 - scores).min(axis=1)
        return list(zip(labels, sure.tolist(), strict=True))
    if "label" in outputs:
        labels = [label.decode("utf-8") for label in outputs["label"]]
        return list(zip(labels, scores.max(axis=1).tolist(), strict=True))
    return [(None, score) for score in scores.tolist()]


def savedmodel_predictor(path):
    """Loads a SavedModel as a `Predictor`; errors as of `read_savedmodel`."""
    signature = read_savedmodel(path)
    return Predictor(signature, input_fields(signature))


def model_predictor(model):
    """Makes a `Predictor` of a task model with a preprocessor.

    It computes as its SavedModel would.

    Args:
        model: `TextClassifier` or `TextRegressor`.
    """

    def from_fields(*columns):
        return model.answer(model(model.preprocessor(columns), training=False))

    names = model.fields
    specs = [tf.TensorSpec([None], tf.string, name) for name in names]
    with portable_graphs():
        traced = tf.function(from_fields).get_concrete_function(*specs)

    def function(**texts):
        return traced(*(texts[name] for name in names))

    return Predictor(function, names)


def input_fields(signature):
    """Names of the inputs of a signature, sorted: TensorFlow keeps no order."""
    return tuple(sorted(signature.structured_input_signature[1]))


def print_answers(path, texts, pairs=False):
    """Prints what the SavedModel at `path` says of texts, one line each.

    Args:
        path: str. Folder of the SavedModel.
        texts: list of str.
        pairs: bool. Whether every two texts are one example.

    Raises:
        FileNotFoundError: if there is no SavedModel.
        ValueError: if there are no texts, or the model takes another number of
            texts an example.
    """
    if not texts:
        raise ValueError("There is nothing to ask: give one text or more.")
    if pairs and len(texts) % 2:
        raise ValueError(
            f"Pairs need an even number of texts. Received: {len(texts)} texts."
        )
    signature = read_savedmodel(path)
    fields = input_fields(signature)
    if len(fields) != 1 + pairs:
        raise ValueError(
            f"The SavedModel at {path} takes {len(fields)} text(s) an example. "
            + ("Leave --pairs out." if pairs else "Add --pairs.")
        )
    columns = [texts[::2], texts[1::2]] if pairs else [texts]
    inputs = dict(zip(fields, columns, strict=True))
    outputs = signature(**{name: tf.constant(part) for name, part in inputs.items()})
    rows = zip(*columns, strict=True)
    for line in format_answers(rows, {k: v.numpy() for k, v in outputs.items()}):
        print(line)


def format_answers(rows, outputs):
    """One line for each example.

    Args:
        rows: iterable of tuples of one or two str.
        outputs: dict of what a head answers, such as `scores` and `label`: sequences
            with a value an example.

    Returns:
        List of str.
    """
    lines = []
    for row, *values in zip(rows, *outputs.values(), strict=True):
        answer = _in_words(dict(zip(outputs, values, strict=True)))
        texts = " | ".join(" ".join(text.splitlines()) for text in row)
        lines.append(f"{answer}  {texts}")
    return lines


def _in_words(answer):
    """The answer to one example: a label or labels with probabilities, or a score."""
    if "label" in answer:
        return f"{_text(answer['label']):>14} {100 * max(answer['scores']):5.1f} %"
    if "has_label" in answer:
        names = map(_text, answer["label_names"])
        found = [
            f"{name} {100 * score:.1f} %"
            for name, has, score in zip(
                names, answer["has_label"], answer["scores"], strict=True
            )
            if has
        ]
        return f"{', '.join(found) or 'no label':>20}"
    if set(answer) == {"scores"}:
        return f"{answer['scores']:8.3f}"
    return ", ".join(f"{name} {_text(value)}" for name, value in answer.items())


def _text(value):
    return value.decode("utf-8") if isinstance(value, bytes) else value
