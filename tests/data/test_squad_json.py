"""SQuAD's JSON, as it should be and as it should not."""

import gzip
import json

import numpy as np
import pytest

from keras_recbert.data.examples import Examples
from keras_recbert.data.squad_json import read_squad, write_answers
from keras_recbert.data.task_files import load_splits, read_file

CONTEXT = "Zoë 🎬 saw a film."


def squad(**question):
    qa = {
        "id": "q1",
        "question": "Who?",
        "answers": [{"text": "Zoë", "answer_start": 0}],
        **question,
    }
    return {"data": [{"paragraphs": [{"context": CONTEXT, "qas": [qa]}]}]}


def write(path, value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_compressed_or_not(tmp_path):
    plain = write(tmp_path / "dev-v1.1.json", squad())
    packed = tmp_path / "dev-v1.1.mine.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        examples = read_squad(path, "validation")
        assert examples.fields == {"question": ["Who?"], "context": [CONTEXT]}
        assert examples.ids == ["q1"]
        answers = {"text": ["Zoë"], "answer_start": [0]}
        assert examples.targets == {"answers": [answers]}


def test_a_question_without_an_answer(tmp_path):
    impossible = squad(answers=[], is_impossible=True, plausible_answers=[])
    path = write(tmp_path / "a.json", impossible)
    assert read_squad(path, "validation").targets["answers"] == [
        {"text": [], "answer_start": []}
    ]
    unanswered = squad()
    del unanswered["data"][0]["paragraphs"][0]["qas"][0]["answers"]
    path = write(tmp_path / "b.json", unanswered)
    assert read_squad(path, "test").targets is None
    with pytest.raises(ValueError, match="expected a list under 'answers'"):
        read_squad(path, "validation")


AT = r"data\[0\]\.paragraphs\[0\]"
BROKEN = {
    "no JSON": ('{"data":\n [', r"line 2, column 3: expected JSON"),
    "a list": ([], "the file: expected a list under 'data'. Received: \\[\\]"),
    "no data": ({"version": "1"}, "the file: expected a list under 'data'.*None"),
    "no paragraphs": ({"data": [{}]}, r"data\[0\]: expected a list under 'paragraphs'"),
    "no questions": ({"data": []}, "has no questions"),
    "no id": (squad(id=7), AT + r"\.qas\[0\]: expected a string under 'id'.*7"),
    "no question": (
        squad(question=None),
        r"\(q1\): expected a string under 'question'",
    ),
    "another place": (
        squad(answers=[{"text": "Zoë", "answer_start": 2}]),
        r"qas\[0\] \(q1\)\.answers\[0\]: the answer 'Zoë' is not in its context at "
        "character 2, where there is 'ë 🎬'",
    ),
    "a place in bytes": (
        squad(answers=[{"text": "film", "answer_start": 17}]),
        "'film' is not in its context at character 17",
    ),
    "before the text": (
        squad(answers=[{"text": ".", "answer_start": -1}]),
        "not in its context at character -1",
    ),
    "an empty answer": (
        squad(answers=[{"text": "", "answer_start": 0}]),
        "the answer '' is not in its context",
    ),
    "a word for true": (
        squad(is_impossible="false"),
        "expected true or false under 'is_impossible'. Received: 'false'",
    ),
    "impossible and answered": (
        squad(is_impossible=True),
        "'is_impossible' is true, and there are answers",
    ),
    "no place": (
        squad(answers=[{"text": "Zoë"}]),
        "a whole number under 'answer_start'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused_by_place(case, tmp_path):
    content, message = BROKEN[case]
    path = write(tmp_path / "dev-v1.1.json", content)
    with pytest.raises(ValueError, match=message) as error:
        read_squad(path, "validation")
    assert str(path) in str(error.value)


def test_an_id_that_stands_twice(tmp_path):
    data = squad()
    data["data"].append(data["data"][0])
    path = write(tmp_path / "a.json", data)
    with pytest.raises(ValueError, match=r"data\[1\].*the id 'q1' stands twice"):
        read_squad(path, "validation")


def test_files_that_are_no_utf8_or_cut(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps(squad(), ensure_ascii=False).encode("utf-16"))
    with pytest.raises(ValueError, match="line 1: byte 0 is not UTF-8"):
        read_squad(path, "validation")
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 99)[:-9])
    with pytest.raises(ValueError, match="a.json.gz is no whole gzip file"):
        read_squad(path, "validation")


def test_answers_in_the_form_of_the_scripts(tmp_path):
    examples = Examples({"question": ["Who?", "When?"]}, ids=["q1", "q2"])
    answers = {
        "answer": np.array(["Zoë".encode(), b""], object),
        "best_answers": np.array([["Zoë".encode(), b"a"], [b"", b""]], object),
        "best_scores": np.array([[0.75, 0.25], [1.0, 0.0]], "float32"),
        "best_starts": np.array([[0, 5], [-1, -1]], "int32"),
        "best_ends": np.array([[4, 6], [-1, -1]], "int32"),
        "no_answer_score": np.array([-1.5, 2.0], "float32"),
    }
    write_answers(tmp_path, examples, answers)

    def read(name):
        return json.loads((tmp_path / name).read_text(encoding="utf-8"))

    assert read("predictions.json") == {"q1": "Zoë", "q2": ""}
    first, second = read("nbest.json").values()
    assert first[0] == {"text": "Zoë", "probability": 0.75, "start": 0, "end": 4}
    assert [one["text"] for one in first] == ["Zoë", "a"]
    assert [one["text"] for one in second] == [""]
    assert read("null_odds.json") == {"q1": -1.5, "q2": 2.0}


@pytest.mark.slow
def test_the_real_files(data_dir):
    train, validation, notes = load_splits("squad1", data_dir)
    assert (len(train), len(validation["validation"])) == (78_161, 10_570)
    assert "train-v1.1.reconstructed.json.gz was read" in notes[0]
    examples = read_file(
        "squad2", data_dir / "squad" / "dev-v2.0.reconstructed.json", "validation"
    )
    without = sum(not one["text"] for one in examples.targets["answers"])
    assert (len(examples), without) == (11_873, 5_945)
