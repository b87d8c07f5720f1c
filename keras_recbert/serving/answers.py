"""Querying a SavedModel or a model, and printing what it answers."""

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.savedmodel import TEXTS, read_savedmodel
from keras_recbert.text.string_tensor import to_string_tensor


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Predictions and scores for batches of texts.

    Args:
        function: function of string tensors `text` and, for pairs, `text_pair`, both
            `(batch_size,)`; gives a dict of `scores` and, of a classifier, `label`.
        num_texts: int. Texts an example has.

    Call arguments:
        columns: list of `num_texts` lists of str.

    Returns:
        List of tuples, one an example: the label and its probability; of a regressor
        None and the score.
    """

    function: Callable
    num_texts: int

    def __call__(self, columns):
        outputs = self.function(
            **{
                name: to_string_tensor(column)
                for name, column in zip(TEXTS, columns, strict=False)
            }
        )
        scores = outputs["scores"].numpy().astype(float)
        if "label" not in outputs:
            return [(None, score) for score in scores.tolist()]
        labels = [label.decode("utf-8") for label in outputs["label"].numpy()]
        return list(zip(labels, scores.max(axis=1).tolist(), strict=True))


def savedmodel_predictor(path):
    """Loads a SavedModel as a `Predictor`; errors as of `read_savedmodel`."""
    signature = read_savedmodel(path)
    return Predictor(signature, len(signature.structured_input_signature[1]))


def model_predictor(model):
    """Makes a `Predictor` of a task model with a preprocessor.

    It computes as its SavedModel would.

    Args:
        model: `TextClassifier` or `TextRegressor`.
    """

    def from_texts(*texts):
        texts = texts if len(texts) == 2 else texts[0]
        return model.answer(model(model.preprocessor(texts), training=False))

    names = TEXTS[: model.num_texts]
    specs = [tf.TensorSpec([None], tf.string, name) for name in names]
    with portable_graphs():
        traced = tf.function(from_texts).get_concrete_function(*specs)

    def function(**texts):
        return traced(*(texts[name] for name in names))

    return Predictor(function, model.num_texts)


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
    num_texts = len(signature.structured_input_signature[1])
    if num_texts != 1 + pairs:
        raise ValueError(
            f"The SavedModel at {path} takes {num_texts} text(s) an example. "
            + ("Leave --pairs out." if pairs else "Add --pairs.")
        )
    columns = [texts[::2], texts[1::2]] if pairs else [texts]
    inputs = dict(zip(TEXTS, columns, strict=False))
    outputs = signature(**{name: tf.constant(part) for name, part in inputs.items()})
    rows = zip(*columns, strict=True)
    for line in format_answers(rows, {k: v.numpy() for k, v in outputs.items()}):
        print(line)


def format_answers(rows, outputs):
    """One line for each example.

    Args:
        rows: iterable of tuples of one or two str.
        outputs: dict of `scores` and, of a classifier, `label`: one an example.

    Returns:
        List of str.
    """
    lines = []
    for row, index in zip(rows, range(len(outputs["scores"])), strict=True):
        score = outputs["scores"][index]
        answer = f"{score:8.3f}" if "label" not in outputs else None
        if answer is None:
            label = outputs["label"][index]
            label = label.decode("utf-8") if isinstance(label, bytes) else label
            answer = f"{label:>14} {100 * max(score):5.1f} %"
        texts = " | ".join(" ".join(text.splitlines()) for text in row)
        lines.append(f"{answer}  {texts}")
    return lines
