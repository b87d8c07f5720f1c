"""What a saved model reads and answers, told without building it."""

import dataclasses
import pathlib

from keras_recbert.convert.keras_file import read_keras_file
from keras_recbert.convert.preset import read_preset

# Heads of classes that have one of their own; others name theirs in `head`.
HEADS = {"TextClassifier": "classifier", "TextRegressor": "regressor"}


@dataclasses.dataclass(frozen=True, eq=False)
class ModelFacts:
    """A saved model.

    Args:
        path: pathlib.Path. Its preset or model.keras.
        heads: dict of name to a dict of `task` and the arguments of the head; a head
            that is alone has the name None, and an encoder has no head.
        fields: tuple of str. Fields of an example.
        has_vocabulary: bool.
        encoder_class: str.
        encoder_arguments: dict.
    """

    path: pathlib.Path
    heads: dict
    fields: tuple
    has_vocabulary: bool
    encoder_class: str
    encoder_arguments: dict

    @property
    def head(self):
        """The head that is alone, or None."""
        return self.heads.get(None)

    def describe_heads(self):
        """Words on the heads, for messages."""
        if self.head is not None:
            return f"a {self.head['task']}"
        if not self.heads:
            return "a model without a head"
        return f"a model with heads by name, {', '.join(self.heads)}"


def read_model_facts(path):
    """Reads what a preset or a model.keras says of itself.

    Args:
        path: path, as `keras_recbert.train.teacher.find_model` returns it.

    Returns:
        `ModelFacts`.

    Raises:
        FileNotFoundError, ValueError: if a file is missing or damaged; names it.
    """
    path = pathlib.Path(path)
    if path.suffix == ".keras":
        config, _ = read_keras_file(path)
        cls, arguments = config.get("class_name"), dict(config["config"])
        described = arguments.pop("encoder", None) or {}
        encoder = described.get("class_name", cls), described.get("config", arguments)
        has_vocabulary = arguments.pop("preprocessor", None) is not None
    else:
        preset = read_preset(path)
        cls, arguments = preset.config["class"], preset.config["arguments"]
        encoder = preset.encoder_class, preset.encoder_arguments
        has_vocabulary = preset.config["preprocessor"] is not None
    heads, fields = _heads(cls, arguments), tuple(arguments.get("fields") or ())
    return ModelFacts(path, heads, fields, has_vocabulary, *encoder)


def label_names_of(head):
    """Names of the classes of a classifier, those without names as numbers."""
    names = head.get("label_names")
    return names or [str(index) for index in range(head.get("num_classes") or 2)]


def _heads(cls, arguments):
    shared = {key: value for key, value in arguments.items() if key != "head"}
    if cls in HEADS:
        return {None: {**shared, "task": HEADS[cls]}}
    head = arguments.get("head")
    if not isinstance(head, dict):
        return {}
    if isinstance(head.get("task"), str):
        return {None: {**shared, **head}}
    return head
