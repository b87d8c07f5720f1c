"""Texts and logits of another tool: what is read, what is refused."""

import json

import pytest

from keras_recbert.data.logits_file import read_logits

NAMES = ["bad", "good"]
ROW = {"text": "a film", "logits": [-1.5, 2]}


def write(folder, *rows):
    path = folder / "logits.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_lists_names_and_labels(tmp_path):
    named = {"text": "dull", "logits": {"good": -1, "bad": 3.5}, "label": "bad"}
    path = write(tmp_path, ROW, named)
    assert list(read_logits(path, ["text"], NAMES)) == [
        (("a film",), None, [-1.5, 2.0]),
        (("dull",), 0, [3.5, -1.0]),
    ]


def test_scores_of_pairs(tmp_path):
    pair = {"text": "a", "text_pair": "b", "logits": 2.5, "label": 3}
    path = write(tmp_path, pair, {**pair, "logits": [1], "label": None})
    assert list(read_logits(path, ["text", "text_pair"])) == [
        (("a", "b"), 3.0, [2.5]),
        (("a", "b"), None, [1.0]),
    ]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"logits": [1.0]}, "'logits' must be 2 numbers, of bad, good"),
        ({"logits": {"bad": 1, "fine": 2}}, "one for each class, bad, good"),
        ({"logits": [float("nan"), 1]}, "a logit must be finite"),
        ({"logits": [True, 1]}, "a logit must be finite"),
        ({"label": "fine"}, "'label' must be one of bad, good. Received: 'fine'"),
        ({"text": 3}, "expected a string under 'text'"),
    ],
)
def test_what_is_wrong_is_told_by_line(tmp_path, changes, message):
    path = write(tmp_path, ROW, {**ROW, **changes})
    with pytest.raises(ValueError, match=f"logits.jsonl:2: .*{message}"):
        list(read_logits(path, ["text"], NAMES))


def test_other_files(tmp_path):
    path = tmp_path / "logits.csv"
    path.write_text("text,logits\n")
    with pytest.raises(ValueError, match="read from JSON lines"):
        next(read_logits(path, ["text"], NAMES))
    with pytest.raises(FileNotFoundError, match="There is no file"):
        next(read_logits(tmp_path / "none.jsonl", ["text"], NAMES))
