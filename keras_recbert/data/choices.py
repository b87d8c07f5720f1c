"""Files of texts with choices: SWAG's, ARC's and COPA's."""

import csv
import pathlib

import numpy as np

from keras_recbert.core.folders import new_file
from keras_recbert.data.examples import Examples
from keras_recbert.data.json_values import UniqueIds, position_of, text_of, value_of
from keras_recbert.data.rows import SEPARATED, TableRows

SWAG_ENDINGS = tuple(f"ending{number}" for number in range(4))
SWAG_DISTRACTORS = tuple(f"distractor-{number}" for number in range(4))
# Of files without a header.
ARC_COLUMNS = ("question", "A", "B", "C", "D", "answer")
COPA_CHOICES = ("choice1", "choice2")
# As the questions of COPA are asked (Roemmele et al. 2011).
COPA_QUESTIONS = {
    "cause": "What was the cause of this?",
    "effect": "What happened as a result?",
}


def read_swag(path, split) -> Examples:
    """Reads a CSV of SWAG: of one ending out of four, or of all, as `val_full.csv`.

    The text is the first sentence; a choice is the begin of the second with an ending.
    Where the right ending has a column of its own, `gold-ending`, choices are in
    alphabetical order, so that their order tells nothing.

    Args:
        path: a `.csv` file, or one that is compressed.
        split: str. A test split may lack the column `label`.

    Returns:
        `Examples` of `text` and `choices`, with the target `label`: positions.

    Raises:
        ValueError: for a broken row, or a column or a label that is not valid; names
            file and line.
    """
    found = _Choices(path)
    rows = TableRows(path)
    columns = rows.columns()
    is_full = "gold-ending" in columns
    endings = ("gold-ending", *SWAG_DISTRACTORS) if is_full else SWAG_ENDINGS
    is_labelled = is_full or "label" in columns or not split.startswith("test")
    for where, row in rows.rows():
        begin = text_of(where, row, "sent2")
        given = [text_of(where, row, name) for name in endings]
        if not given[0] or not (is_full or all(given)):
            raise ValueError(f"{where}: an ending is empty. Received: {given}.")
        given = [f"{begin} {ending}".strip() for ending in given if ending]
        label = 0
        if is_full:
            label = sorted(set(given)).index(given[0])
            given = sorted(set(given))
        elif is_labelled:
            label = position_of(where, row, "label", ("0", "1", "2", "3"))
        found.add(where, text_of(where, row, "sent1"), given, label)
    return found.examples(is_labelled)


def read_arc(path, split) -> Examples:
    """Reads questions of ARC: its JSON lines, or a CSV without a header.

    A row of the CSV has the question, four choices and the letter or the number of the
    right one. Rows that lost their choices, or the right one, are left out, with a
    note.

    Args:
        path: a `.jsonl` or `.csv` file, or one that is compressed.
        split: str. JSON lines of a test split may lack `answerKey`.

    Returns:
        `Examples` of `text` and `choices`, with the target `label`: positions.

    Raises:
        ValueError: for a broken row, or an answer that is none of the choices; names
            file and line.
    """
    rows = TableRows(path, header=ARC_COLUMNS)
    read = _arc_separated if rows.kind in SEPARATED else _arc_json
    return read(_Choices(path), rows, split)


def _arc_separated(found, rows, split):
    skipped = []
    for where, row in rows.rows():
        given = [row[letter] for letter in ARC_COLUMNS[1:-1]]
        while given and not given[-1]:  # a question of three choices
            given.pop()
        label = position_of(where, row, "answer", "ABCDE", "12345")
        if len(given) < 2 or not all(given) or label >= len(given):
            skipped.append(where)
            continue
        found.add(where, row["question"], given, label)
    notes = ()
    if skipped:
        note = f"left out {len(skipped)} rows without their choices or the right one"
        notes = (f"{rows.path}: {note} (the first at {skipped[0]})",)
    return found.examples(notes=notes)


def _arc_json(found, rows, split):
    is_labelled = not split.startswith("test") or "answerKey" in rows.columns()
    for where, row in rows.rows():
        question = value_of(where, row, "question", dict, "an object")
        given = value_of(where, question, "choices", list, "a list")
        texts, labels = [], []
        for number, one in enumerate(given, 1):
            at = f"{where}: choice {number}"
            if not isinstance(one, dict):
                raise ValueError(f"{at}: expected an object. Received: {one!r:.60}.")
            texts.append(text_of(at, one, "text"))
            labels.append(text_of(at, one, "label"))
        label = position_of(where, row, "answerKey", labels) if is_labelled else 0
        stem, id = text_of(where, question, "stem"), text_of(where, row, "id")
        found.add(where, stem, texts, label, id)
    return found.examples(is_labelled)


def read_copa(path, split) -> Examples:
    """Reads COPA's JSON lines, as SuperGLUE has them.

    The text is the premise with the question, see `COPA_QUESTIONS`.

    Args:
        path: a `.jsonl` file, or one that is compressed.
        split: str. A test split may lack `label`.

    Returns:
        `Examples` of `text` and `choices`, with the target `label`: 0 or 1.

    Raises:
        ValueError: for a broken row, or one that lacks a value; names file and line.
    """
    found = _Choices(path)
    rows = TableRows(path)
    is_labelled = not split.startswith("test") or "label" in rows.columns()
    for where, row in rows.rows():
        kind = text_of(where, row, "question")
        if kind not in COPA_QUESTIONS:
            raise ValueError(
                f"{where}: 'question' must be one of {', '.join(COPA_QUESTIONS)}. "
                f"Received: {kind!r}."
            )
        text = f"{text_of(where, row, 'premise')} {COPA_QUESTIONS[kind]}"
        given = [text_of(where, row, name) for name in COPA_CHOICES]
        label = position_of(where, row, "label", (0, 1)) if is_labelled else 0
        id = value_of(where, row, "idx", int, "a whole number")
        found.add(where, text, given, label, str(id))
    return found.examples(is_labelled)


def write_choices(folder, examples, logits):
    """Writes `predictions.csv`: the right choice of each text, and the likeliest.

    Columns: `id`, `text`, `label` and `prediction` (texts of choices), `score` (the
    probability of the prediction among the choices of its text).

    Args:
        folder: path.
        examples: `Examples` of `text` and `choices`, with the target `label`.
        logits: float `(num_examples, most choices)`.
    """
    columns = examples.fields["text"], examples.fields["choices"]
    rows = zip(examples.ids, *columns, examples.targets["label"], logits, strict=True)
    with (
        new_file(folder / "predictions.csv") as path,
        path.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "text", "label", "prediction", "score"))
        for id, text, choices, label, of_choices in rows:
            of_choices = np.asarray(of_choices, np.float64)[: len(choices)]
            best = int(of_choices.argmax())
            score = 1 / np.exp(of_choices - of_choices[best]).sum()
            writer.writerow((id, text, choices[label], choices[best], score))


class _Choices:
    """Examples that a file is read into."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._texts, self._choices, self._labels = [], [], []
        self._ids = UniqueIds()

    def add(self, where, text, choices, label, id=None):
        """Adds an example, called `id` or by its number; checks its choices."""
        if len(choices) < 2 or not all(choices):
            raise ValueError(
                f"{where}: expected two choices or more, none of them empty. Received: "
                f"{choices}."
            )
        self._texts.append(text)
        self._choices.append(choices)
        self._labels.append(label)
        self._ids.add(where, str(len(self._texts)) if id is None else id)

    def examples(self, is_labelled=True, notes=()):
        if not self._texts:
            raise ValueError(f"{self.path} has no examples.")
        fields = {"text": self._texts, "choices": self._choices}
        targets = {"label": self._labels} if is_labelled else None
        return Examples(fields, targets, self._ids.list(), notes)
