"""SuperGLUE's JSON lines, as they should be and as they should not."""

import copy
import gzip
import json
import os
import pathlib

import pytest

from keras_recbert.data import get_task
from keras_recbert.data.superglue import (
    question_ids,
    read_boolq,
    read_cb,
    read_multirc,
    read_wsc,
    texts_without_marks,
)
from keras_recbert.data.task_files import (
    MissingSplitError,
    load_splits,
    load_tests,
    read_file,
)

REAL = pathlib.Path(os.environ.get("RECBERT_DATA_DIR", "missing")) / "superglue"
BOOLQ = {"question": "is it", "passage": "It is.", "idx": 4, "label": True}
CB = {"premise": "He ran.", "hypothesis": "he ran", "idx": 4, "label": "neutral"}
MULTIRC = {
    "idx": 2,
    "passage": {
        "text": "He ran.",
        "questions": [
            {
                "question": "Who ran?",
                "idx": 5,
                "answers": [
                    {"text": "He", "idx": 8, "label": 1},
                    {"text": "She", "idx": 9, "label": 0},
                ],
            }
        ],
    },
}
WSC = {
    "text": "Mark told Pete that he lied.",
    "target": {
        "span1_index": 0,
        "span1_text": "Mark",
        "span2_index": 4,
        "span2_text": "he",
    },
    "idx": 4,
    "label": False,
}
READERS = {"boolq": read_boolq, "cb": read_cb, "multirc": read_multirc, "wsc": read_wsc}
GOOD = {"boolq": BOOLQ, "cb": CB, "multirc": MULTIRC, "wsc": WSC}
MISSING = object()


def write(path, *rows):
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def changed(row, keys, value):
    """A copy with another value at the end of a path of keys."""
    row = copy.deepcopy(row)
    *path, last = keys
    parent = row
    for key in path:
        parent = parent[key]
    if value is MISSING:
        del parent[last]
    else:
        parent[last] = value
    return row


ANSWER = ("passage", "questions", 0, "answers", 1)
BROKEN = {
    "question": ("boolq", ["question"], 7, "a string under 'question'. Received: 7"),
    "passage": ("boolq", ["passage"], MISSING, "there is no 'passage'. Found 'questi"),
    "null": ("boolq", ["passage"], None, "a string under 'passage'. Received: None"),
    "label": ("boolq", ["label"], MISSING, "there is no 'label'. Found"),
    "text": ("boolq", ["label"], "true", "true or false under 'label'. Received: 'tr"),
    "number": ("boolq", ["label"], 1, "true or false under 'label'. Received: 1"),
    "idx": ("boolq", ["idx"], "7", "a whole number under 'idx'. Received: '7'"),
    "truth": ("boolq", ["idx"], True, "a whole number under 'idx'. Received: True"),
    "class": ("cb", ["label"], "no", "one of 'entailment', 'contradiction', 'neutral'"),
    "no passage": ("multirc", ["passage"], "He ran.", "an object under 'passage'"),
    "no questions": (
        "multirc",
        ["passage", "questions"],
        MISSING,
        "there is no 'questions'. Found 'text'",
    ),
    "no answers": (
        "multirc",
        ["passage", "questions", 0, "answers"],
        [],
        r"questions\[0\]: expected one or more in the list under 'answers'",
    ),
    "empty questions": (
        "multirc",
        ["passage", "questions"],
        [],
        "expected one or more in the list under 'questions'",
    ),
    "no answer": (
        "multirc",
        ANSWER,
        "She",
        r"questions\[0\], answers\[1\]: expected an object. Received: 'She'",
    ),
    "label of answer": (
        "multirc",
        [*ANSWER, "label"],
        True,
        r"questions\[0\], answers\[1\]: 'label' must be one of 0, 1. Received: True",
    ),
    "answer without label": (
        "multirc",
        [*ANSWER, "label"],
        MISSING,
        r"answers\[1\]: there is no 'label'",
    ),
    "answer twice": (
        "multirc",
        [*ANSWER, "idx"],
        8,
        r"answers\[1\]: the id '2-5-8' stands twice, first at .*answers\[0\]",
    ),
    "no span": ("wsc", ["target", "span2_text"], MISSING, "there is no 'span2_text'"),
    "index": ("wsc", ["target", "span1_index"], "0", "the position of a word under"),
    "elsewhere": (
        "wsc",
        ["target", "span2_text"],
        "she lied",
        "the words of the span 'she lied' do not stand in the text",
    ),
    "empty span": ("wsc", ["target", "span1_text"], " ", "the words of the span ' '"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_refused(name, tmp_path):
    task, keys, value, message = BROKEN[name]
    good = changed(GOOD[task], ["idx"], 1)
    path = write(tmp_path / "some.jsonl", good, changed(GOOD[task], keys, value))
    with pytest.raises(ValueError, match=rf"some.jsonl:2[:,] .*{message}"):
        READERS[task](path, "train")


@pytest.mark.parametrize("task", GOOD)
def test_what_every_file_keeps(task, tmp_path):
    good, read = GOOD[task], READERS[task]
    path = write(tmp_path / "a.jsonl", good, changed(good, ["idx"], 6), good)
    with pytest.raises(ValueError, match=r"a.jsonl:3.*: the id '.*' stands twice, fir"):
        read(path, "train")
    with pytest.raises(ValueError, match="a.jsonl:2: not valid JSON"):
        read(write(path, good, json.dumps(good)[:-3]), "train")
    with pytest.raises(ValueError, match="a.jsonl has no examples"):
        read(write(path, ""), "validation")
    packed = tmp_path / "b.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(good).encode()))
    examples = read_file(task, packed, "train")
    assert list(examples.targets["label"]) == list(read(packed, "x").targets["label"])
    with pytest.raises(ValueError, match="b.jsonl.gz: damaged .gz file"):
        packed.write_bytes(gzip.compress(json.dumps(good).encode())[:-9])
        read(packed, "train")


def test_labels_of_a_test_split_are_all_there_or_none(tmp_path):
    bare = changed(BOOLQ, ["label"], MISSING)
    path = write(tmp_path / "test.jsonl", bare, changed(BOOLQ, ["idx"], 9))
    with pytest.raises(ValueError, match="test.jsonl:1: there is no 'label'"):
        read_boolq(path, "test")
    path = write(tmp_path / "test.jsonl", BOOLQ, changed(BOOLQ, ["idx"], 9))
    assert read_boolq(path, "test").targets == {"label": [1, 1]}


def test_a_test_file_may_be_compressed(tmp_path):
    row = json.dumps(changed(BOOLQ, ["label"], MISSING)).encode()
    (tmp_path / "test.jsonl.gz").write_bytes(gzip.compress(row))
    examples = load_tests("boolq", tmp_path, ["test"])["test"]
    assert examples.ids == ["4"] and examples.targets is None
    with pytest.raises(MissingSplitError, match="MultiRC: test.jsonl not found in"):
        (tmp_path / "other").mkdir()
        load_tests("multirc", tmp_path / "other", ["test"])


def test_a_span_beside_its_index_is_found_and_told(tmp_path):
    moved = changed(WSC, ["target", "span2_index"], 5)
    other = {**changed(moved, ["text"], "Mark's he saw Pete. He lied."), "idx": 5}
    other["target"] = {**moved["target"], "span1_index": 0, "span2_index": 3}
    examples = read_wsc(write(tmp_path / "a.jsonl", moved, other), "train")
    assert examples.fields["text"] == [
        "* Mark * told Pete that # he # lied.",
        # At its index a part of a word; the nearer of two; whatever its case.
        "* Mark *'s he saw Pete. # He # lied.",
    ]
    (note,) = examples.notes
    assert "a.jsonl: in 2 rows a span is not at its index" in note
    assert f"(the first at {tmp_path / 'a.jsonl'}:1)" in note


def test_a_part_of_another_word_is_no_span(tmp_path):
    row = changed(WSC, ["target", "span2_text"], "li")  # of "lied.", at 5, not 4
    with pytest.raises(ValueError, match="span 'li' do not stand in the text"):
        read_wsc(write(tmp_path / "a.jsonl", row), "train")


@pytest.mark.parametrize("task", ["boolq", "multirc", "wsc"])
def test_a_lone_file_is_split_by_passage(task, tmp_path):
    rows = []
    for index in range(40):
        row = changed(GOOD[task], ["idx"], index)
        if task == "boolq":
            row["passage"] = f"Passage {index // 4}."
        if task == "multirc":
            row["passage"]["text"] = f"Passage {index // 4}."
        if task == "wsc":  # the same sentence with other spans
            row["text"] = f"Mark told Pete {index // 4} that he lied."
            number = index % 2
            span = ("Mark", "Pete")[number]
            row["target"] |= {"span1_text": span, "span1_index": 2 * number}
            row["target"]["span2_index"] = 5
        rows.append(row)
    write(tmp_path / "val.jsonl", *rows)
    train, validation, (note,) = load_splits(task, tmp_path)
    (held_out,) = validation.values()
    unit = "text" if task == "wsc" else "passage"
    assert f"no train.jsonl; val.jsonl was split by {unit}, " in note

    def passages(examples):
        if task == "wsc":
            return set(texts_without_marks(examples.fields))
        return set(examples.fields["passage"])

    assert len(passages(held_out)) == 1 and not passages(held_out) & passages(train)


def test_scores_of_multirc_are_of_questions():
    examples = read_multirc(
        pathlib.Path(__file__).parent / "samples/multirc/MultiRC/train.jsonl", "train"
    )
    assert question_ids(examples.ids) == ["0-0", "0-0", "0-0", "0-1", "4-7", "4-7"]
    metrics = get_task("multirc").own_metrics
    predictions = [1, 0, 0, 1, 1, 0]  # labels 1 0 1, 1, 1 0
    assert metrics["exact_match"](examples, predictions) == pytest.approx(2 / 3)
    assert metrics["f1a"](examples, predictions) == pytest.approx(6 / 7)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="needs RECBERT_DATA_DIR")
def test_real_files():
    """Rows of the published files."""
    boolq = read_boolq(REAL / "BoolQ/val.jsonl", "validation")
    assert (len(boolq), sum(boolq.targets["label"])) == (3270, 2033)
    test = read_boolq(REAL / "BoolQ/test.jsonl.gz", "test")
    assert len(test) == 3245 and test.targets is None
    cb, validation, notes = load_splits("cb", REAL)
    assert (len(cb), len(validation["validation"]), notes) == (250, 56, [])
    for split, answers, questions in (("train", 27243, 5131), ("val", 4848, 953)):
        examples = read_multirc(REAL / f"MultiRC/{split}.jsonl", split)
        assert len(examples) == answers
        assert len(set(question_ids(examples.ids))) == questions
    assert read_multirc(REAL / "MultiRC/test.jsonl", "test").targets is None
    train, validation, (note,) = load_splits("wsc", REAL)
    assert (len(train), len(validation["validation"])) == (554, 104)
    assert "val.jsonl: in 1 rows a span is not at its index" in note
