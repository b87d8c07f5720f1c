"""Texts with the logits of a teacher of another tool: JSON lines."""

import math

from keras_recbert.data.json_values import present, text_of
from keras_recbert.data.rows import JSON_LINES, TableRows


def read_logits(path, fields, label_names=None):
    """Reads texts, labels and logits, one object a line, in bounded memory.

        {"text": "a marvel", "logits": {"bad": -2.1, "good": 1.9}, "label": "good"}

    Logits are an object by the names of the classes, or an array in their order; of
    scores a number. The label may be left out.

    Args:
        path: str or path of a `.jsonl`; `.gz` too.
        fields: sequence of str. Names of the texts.
        label_names: sequence of str, the classes; None for scores.

    Yields:
        Tuple of the texts, a tuple of str; the label, the id of a class or a score, or
        None; and the logits, a list of float.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not as it should be; names file and line.
    """
    source = TableRows(path)
    if source.kind not in JSON_LINES:
        raise ValueError(f"Logits are read from JSON lines (.jsonl). Received: {path}.")
    for where, row in source.rows():
        texts = tuple(text_of(where, row, name) for name in fields)
        label = row.get("label")
        if label is not None:
            label = _label(where, label, label_names)
        yield texts, label, _logits(where, present(where, row, "logits"), label_names)


def _logits(where, value, label_names):
    names = label_names or ["score"]
    if label_names is None and not isinstance(value, list):
        value = [value]
    if isinstance(value, dict):
        if sorted(value) != sorted(names):
            raise ValueError(
                f"{where}: 'logits' must have one for each class, {', '.join(names)}. "
                f"Received: {', '.join(map(repr, value))}."
            )
        value = [value[name] for name in names]
    if not isinstance(value, list) or len(value) != len(names):
        raise ValueError(
            f"{where}: 'logits' must be {len(names)} numbers, of {', '.join(names)}. "
            f"Received: {value!r:.60}."
        )
    if not all(map(_is_number, value)):
        raise ValueError(f"{where}: a logit must be finite. Received: {value!r:.60}.")
    return [float(number) for number in value]


def _label(where, value, label_names):
    if label_names is None:
        if not _is_number(value):
            raise ValueError(
                f"{where}: 'label' must be a finite number. Received: {value!r:.60}."
            )
        return float(value)
    if str(value) not in label_names:
        raise ValueError(
            f"{where}: 'label' must be one of {', '.join(label_names)}. Received: "
            f"{value!r:.60}."
        )
    return list(label_names).index(str(value))


def _is_number(value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
