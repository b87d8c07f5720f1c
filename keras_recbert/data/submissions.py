"""Files of predictions as the leaderboards of GLUE and SuperGLUE take them.

Names of files, their form and the labels are those that the toolkit of the organizers
of both writes (https://github.com/nyu-mll/jiant, `jiant/evaluate.py`).
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keras_recbert.core.folders import new_file


@dataclasses.dataclass(frozen=True)
class Submission:
    """What a leaderboard takes of a task.

    Args:
        files: dict of test split to the name of its file, such as `"RTE.tsv"`.
        write: function of a path, the ids of examples and what `Head.predictions` gives
            for them, which writes it.
    """

    files: Mapping[str, str]
    write: Callable[[Any, Sequence[str], Any], None]


@dataclasses.dataclass(frozen=True)
class TsvWriter:
    """Writes `index` and `prediction`, separated by a tab: GLUE.

    Args:
        labels: what a class is called, by its id; None of numbers.
        score_range: lowest and highest number. Numbers have three decimals.

    Call arguments:
        path: the file; written whole, then renamed.
        ids: sequence of str.
        predictions: class ids, or numbers, an id each.
    """

    labels: Sequence[str] | None = None
    score_range: tuple[float, float] | None = None

    def __call__(self, path, ids, predictions):
        lines = ["index\tprediction"]
        for id, prediction in zip(ids, predictions, strict=True):
            lines.append(f"{id}\t{self._label(prediction)}")
        _write(path, lines)

    def _label(self, prediction):
        if self.labels is not None:
            return self.labels[int(prediction)]
        low, high = self.score_range
        return f"{min(max(float(prediction), low), high):.3f}"


@dataclasses.dataclass(frozen=True)
class JsonLinesWriter:
    """Writes an object of `idx` and `label` a line: SuperGLUE.

    Args:
        labels: what a class is called, by its id: str or int.

    Call arguments:
        path, ids, predictions: as of `TsvWriter`; ids are whole numbers.
    """

    labels: Sequence[str | int]

    def __call__(self, path, ids, predictions):
        pairs = zip(ids, predictions, strict=True)
        lines = [{"idx": int(id), "label": self.labels[int(one)]} for id, one in pairs]
        _write(path, map(json.dumps, lines))


def write_multirc(path, ids, predictions):
    """Writes a passage a line, with its questions and the answers of each.

    Args:
        path: the file; written whole, then renamed.
        ids: sequence of str, as of `keras_recbert.data.superglue.read_multirc`.
        predictions: 0 and 1, an id each.
    """
    passages = {}
    for id, prediction in zip(ids, predictions, strict=True):
        passage, question, answer = map(int, id.split("-"))
        answers = passages.setdefault(passage, {}).setdefault(question, [])
        answers.append({"idx": answer, "label": int(prediction)})
    lines = []
    for passage, questions in passages.items():
        listed = [{"idx": idx, "answers": one} for idx, one in questions.items()]
        lines.append(json.dumps({"idx": passage, "passage": {"questions": listed}}))
    _write(path, lines)


def _write(path, lines):
    with new_file(path) as written:
        written.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
