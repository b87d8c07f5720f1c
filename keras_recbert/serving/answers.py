"""Querying a SavedModel or a model, and printing what it answers."""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_recbert.core.machine import num_cores
from keras_recbert.core.names import nearest
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.savedmodel import read_savedmodel
from keras_recbert.text.packers import get_packer, list_packers
from keras_recbert.text.string_lists import to_string_lists
from keras_recbert.text.string_tensor import to_string_tensor

SEPARATOR = "|"  # of several labels


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Predictions and scores for batches of texts.

    Args:
        function: function of string tensors `(batch_size,)`, by the names of the
            fields; gives a dict of `scores` and, of a classifier, `label`.
        fields: sequence of str. Fields an example has.
        list_fields: those whose values are lists of strings, and whose tensors are
            `(batch_size, most)`.
        num_threads: int. Calls that may run at a time.
        heads: of several heads that answer together, the fields of the examples of
            each, by its name; what they answer is called `HEAD_scores` and so on.

    Call arguments:
        columns: list of columns, one for each field: lists of str, or of lists of str.

    Returns:
        List of tuples, one an example, see `labels_and_scores`.
    """

    function: Callable
    fields: tuple
    list_fields: tuple = ()
    num_threads: int = 1
    heads: dict = dataclasses.field(default_factory=dict)

    def __call__(self, columns):
        outputs = self.outputs(columns)
        if "embeddings" in outputs:
            raise ValueError(
                "A file is answered by a model with a head. This one gives embeddings: "
                "use `model.encode(texts)` in Python, or tf.saved_model.load."
            )
        if not {"scores", "answer"} & set(outputs):
            raise ValueError(
                "A file needs one head, which gives `scores` or `answer`. This model "
                f"answers: {', '.join(outputs)}. Name a head: --head NAME. Texts as "
                "arguments of `recbert predict` take any model."
            )
        return labels_and_scores(outputs)

    def outputs(self, columns):
        """All that the model says of columns: a dict of arrays, a row an example."""
        outputs = self.function(
            **{
                name: to_string_lists(column, name)
                if name in self.list_fields
                else to_string_tensor(column)
                for name, column in zip(self.fields, columns, strict=True)
            }
        )
        return {name: value.numpy() for name, value in outputs.items()}


def labels_and_scores(outputs):
    """The answer to each example in two values.

    Args:
        outputs: dict of arrays, a row an example: `scores`, and of a classifier
            `label`, of several labels `has_label` and `label_names`; of question
            answering `answer` and `score`.

    Returns:
        List of tuples: the label or the answer and its probability; several labels
        with | between them, and the probability of the decision that was least sure;
        of a regressor None and the score; of tags of words the entities, or all tags
        where there are none, and the probability of the tag that was least sure.
    """
    if "answer" in outputs:
        answers = [answer.decode("utf-8", "replace") for answer in outputs["answer"]]
        return list(zip(answers, outputs["score"].tolist(), strict=True))
    scores = outputs["scores"].astype(float)
    if "tags" in outputs:
        return _tags_and_scores(outputs, scores)
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


def _tags_and_scores(outputs, scores):
    """The entities of each text, or its tags, and the probability of its least sure
    tag; 1 for a text without words."""
    found = [
        SEPARATOR.join(_entities(row))
        if "entities" in row
        else " ".join(map(_text, filter(None, row["tags"])))
        for row in _rows(outputs)
    ]
    least = np.where(outputs["tags"] != b"", scores, 1.0).min(axis=1, initial=1.0)
    return list(zip(found, least.tolist(), strict=True))


def _rows(outputs):
    """A dict of the values of each example."""
    return (
        dict(zip(outputs, row, strict=True))
        for row in zip(*outputs.values(), strict=True)
    )


def _entities(answer):
    return [
        f"{_text(text)} ({_text(label)})"
        for text, label in zip(answer["entities"], answer["entity_labels"], strict=True)
        if label
    ]


def savedmodel_predictor(path, head=None):
    """Loads a SavedModel, or a head of it, as a `Predictor`.

    Errors are those of `read_savedmodel`.
    """
    signature = read_savedmodel(path, head or "serving_default")
    fields, lists = input_fields(signature), list_fields(signature)
    signatures = signature.loaded.signatures
    outputs = {name: own.structured_outputs for name, own in signatures.items()}
    several = () if head else keys_by_head(outputs)
    heads = {name: input_fields(signatures[name]) for name in several}
    return Predictor(signature, fields, lists, num_cores(), heads)


def model_predictor(model, head=None):
    """Makes a `Predictor` of a task model with a preprocessor.

    It computes as its SavedModel would.

    Args:
        model: `TextModel`.
        head: str. The head that answers, where the model has several; of a model of
            words also `words`, which takes them in place of a text.

    Raises:
        ValueError: if the model has no such head.
    """
    answer, names, text_field = None, model.fields, model.preprocessor.text_field
    if text_field is not None and head == "_".join(names):
        head = text_field = None  # as the signature of that name
    several = model.answers_by_head() if head is None else ()
    heads = {name: model.fields_by_head[name] for name in several}
    if head is not None:
        answers = model.answers_by_head()
        if head not in answers:
            raise ValueError(
                f"The model has no head {head!r} of several. {nearest(head, answers)}"
                f"Valid: {', '.join(answers) or 'none, as it has one'}."
            )
        answer, names = answers[head], model.fields_by_head[head]

    def from_fields(*columns):
        if text_field is not None:
            return model.answer_raw_texts(*columns)
        return model.answer_texts(columns, answer)

    specs = list(map(model.preprocessor.column_spec, names))
    if text_field is not None:
        names = (text_field,)
        specs = [tf.TensorSpec([None], tf.string, *names)]
    with portable_graphs(packing=True):
        traced = tf.function(from_fields).get_concrete_function(*specs)

    def function(**texts):
        return traced(*(texts[name] for name in names))

    lists = model.preprocessor.list_fields
    return Predictor(function, names, lists, num_cores(), heads)


def input_fields(signature):
    """Names of the inputs of a signature, see `in_order`."""
    return in_order(signature.structured_input_signature[1])


def in_order(names):
    """Names of inputs in the order of the packer that has them, a tuple.

    TensorFlow keeps no order. Inputs of a packer that is not registered are sorted.
    """
    names = set(names)
    for packer in map(get_packer, list_packers()):
        if set(packer.fields[: len(names)]) == names:
            return packer.fields[: len(names)]
    return tuple(sorted(names))


def list_fields(signature):
    """Names of the inputs of a signature whose values are lists of strings."""
    specs = signature.structured_input_signature[1]
    return tuple(name for name, spec in specs.items() if spec.shape.rank == 2)


def print_answers(predictor, path, texts, pairs=False):
    """Prints what a model says of texts, one line each.

    Args:
        predictor: `Predictor`.
        path: str or path of the model, for errors.
        texts: list of str. Of a model of lists, such as choices, one example: a text
            for each other field, and then the list.
        pairs: bool. Whether every two texts are one example.

    Raises:
        ValueError: if there are no texts, or the model takes another number of
            texts an example.
    """
    if not texts:
        raise ValueError("There is nothing to ask: give one text or more.")
    if pairs and len(texts) % 2:
        raise ValueError(
            f"Pairs need an even number of texts. Received: {len(texts)} texts."
        )
    fields = predictor.fields
    if set(fields) & set(predictor.list_fields):
        columns = _one_example(path, fields, texts, pairs)
    elif len(fields) != 1 + pairs:
        heads = [k for k, own in predictor.heads.items() if len(own) == 1 + pairs]
        raise ValueError(
            f"The model at {path} takes {len(fields)} text(s) an example. "
            + ("Leave --pairs out" if pairs else "Add --pairs")
            + (f", or name a head: --head {' or '.join(heads)}." if heads else ".")
        )
    else:
        columns = [texts[::2], texts[1::2]] if pairs else [texts]
    outputs = predictor.outputs(columns)
    rows = zip(*columns, strict=True)
    for line in format_answers(rows, outputs, _split_keys(predictor.heads, outputs)):
        print(line)


def _one_example(path, fields, texts, pairs):
    """Columns of one example whose last field is a list of strings."""
    others = len(fields) - 1
    if pairs or len(texts) <= others:
        raise ValueError(
            f"The model at {path} takes one example: {', '.join(fields)}, of "
            "which the last is any number of texts. Leave --pairs out. Received: "
            f"{len(texts)} text(s)."
        )
    return [*([text] for text in texts[:others]), [texts[others:]]]


def _split_keys(heads, outputs):
    """As `keys_by_head`, of the names of heads, and outputs called `HEAD_answer`."""
    keys = {head: [] for head in heads}
    for key in outputs if heads else ():
        head = max((one for one in heads if key.startswith(f"{one}_")), key=len)
        keys[head].append(key.removeprefix(f"{head}_"))
    return keys


def keys_by_head(outputs):
    """What each of several heads answers: a dict of its name to keys; empty for one.

    Args:
        outputs: dict of the name of each signature of a SavedModel to the names of its
            outputs.
    """
    return {
        name: tuple(own)
        for name, own in outputs.items()
        if all(f"{name}_{key}" in outputs["serving_default"] for key in own)
    }


def format_answers(rows, outputs, keys_by_head=None):
    """One line for each example.

    Args:
        rows: iterable of tuples of str or lists of str.
        outputs: dict of what a head answers, such as `scores` and `label`: sequences
            with a value an example.
        keys_by_head: optional dict of the name of each of several heads to what it
            answers; `outputs` then are called `HEAD_answer`.

    Returns:
        List of str.
    """
    lines = []
    for row, *values in zip(rows, *outputs.values(), strict=True):
        answer = dict(zip(outputs, values, strict=True))
        answer = _of_heads_in_words(answer, keys_by_head or {}) or _in_words(answer)
        texts = itertools.chain(*([v] if isinstance(v, str) else v for v in row))
        texts = " | ".join(" ".join(text.splitlines()) for text in texts)
        lines.append(f"{answer}  {texts}")
    return lines


def _of_heads_in_words(answer, keys_by_head):
    words = []
    for head, keys in keys_by_head.items():
        own = _in_words({key: answer[f"{head}_{key}"] for key in keys})
        words.append(f"{head}: {' '.join(own.split())}")
    return ", ".join(words)


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
    if "answer" in answer:
        found = _text(answer["answer"]) or "no answer"
        where = f"bytes {answer['start']} to {answer['end']}"
        return f"{found!r} {100 * answer['score']:.1f} %, {where}"
    if "entities" in answer:
        return f"{', '.join(_entities(answer)) or 'no entity':>20}"
    if "tags" in answer:
        return " ".join(map(_text, filter(None, answer["tags"])))
    if set(answer) == {"scores"}:
        return f"{answer['scores']:8.3f}"
    return ", ".join(f"{name} {_text(value)}" for name, value in answer.items())


def _text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
