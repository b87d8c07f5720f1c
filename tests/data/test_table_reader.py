"""Tables as data sets: columns by name, broken rows by line."""

import json

import pytest

from keras_recbert.data.table_reader import TableReader

READER = TableReader(
    {"question": "q", "label": "passage"}, "answer", id_column="idx"
)  # a field may have any name, that of a target too


def test_json_lines(tmp_path):
    rows = [
        {"idx": 7, "q": "is it", "passage": "It\u2028is.", "answer": True, "more": []},
        {"passage": "No.", "q": "is he", "answer": False, "idx": "x-8"},
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)))
    examples = READER(path)
    assert examples.ids == ["7", "x-8"]
    assert examples.fields == {
        "question": ["is it", "is he"],
        "label": ["It\u2028is.", "No."],
    }
    assert examples.targets == {"label": ["true", "false"]}
    path.write_text('{"idx": 7, "q": "is it", "answer": true}\n')
    with pytest.raises(ValueError, match="a.jsonl:1: there is no column 'passage'. Fo"):
        READER(path)


def test_csv_and_a_test_split_without_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('t,y\n"one, ""two""\n",NA\n', newline="")
    reader = TableReader({"text": "t"}, "y")
    examples = reader(path)
    assert examples.fields == {"text": ['one, "two"\n']}
    assert (examples.targets, examples.ids) == ({"label": ["NA"]}, ["1"])
    path.write_text("t\none\n")
    assert reader(path, "test").targets is None
    with pytest.raises(ValueError, match="a.csv:2: there is no column 'y'. Found 't'"):
        reader(path, "validation")
