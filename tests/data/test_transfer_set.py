"""Texts with the logits of a teacher: made once, checked, resumed."""

import json
import math

import numpy as np
import pytest

from keras_recbert.data.transfer_set import (
    DESCRIPTION,
    open_transfer_set,
    write_transfer_set,
)

TEXTS = [("a good film", "good"), ("", "a"), ("dull \u2014 \U0001f600", "b\0c")] * 5
TEXTS = [(f"{first} {index}", second) for index, (first, second) in enumerate(TEXTS)]
MADE_FROM = {"teacher": "abc", "texts": "xyz"}


def examples():
    for index, texts in enumerate(TEXTS):
        yield texts, index % 3 if index < 10 else None


def score(columns):
    """Logits that depend on the texts alone."""
    return np.array(
        [[len(a.encode()), -len(b)] for a, b in zip(*columns, strict=True)], "float32"
    )


def write(folder, score=score, examples=examples, made_from=MADE_FROM, **options):
    options = {"shard_records": 4, **options}
    fields = ("text", "text_pair")
    return write_transfer_set(folder, fields, 2, examples, score, made_from, **options)


def test_records_are_what_was_written(tmp_path):
    made = write(tmp_path)
    assert [shard["records"] for shard in made.shards] == [4, 4, 4, 3]
    assert (made.num_records, made.num_labels) == (15, 10)
    for found in (made, open_transfer_set(tmp_path)):
        records = list(found.records())
        assert [texts for texts, _, _ in records] == TEXTS
        logits = np.stack([logits for _, logits, _ in records])
        np.testing.assert_array_equal(logits, score(list(zip(*TEXTS, strict=True))))
        labels = [label for _, _, label in records]
        assert labels[:10] == [index % 3 for index in range(10)]
        assert all(map(math.isnan, labels[10:]))
    assert made.sha256() == found.sha256()


def test_a_stop_costs_one_shard(tmp_path):
    calls = []

    def failing(columns):
        calls.append(len(columns[0]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(columns)

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, failing)
    with pytest.raises(ValueError, match="unfinished transfer set"):
        open_transfer_set(tmp_path)
    calls.clear()
    calls.append("first")
    resumed = write(tmp_path, lambda columns: calls.append(0) or score(columns))
    assert len(calls) == 3  # two of four shards
    whole = write(tmp_path / "whole")
    assert resumed.sha256() == whole.sha256()


def test_what_is_finished_is_found(tmp_path):
    made = write(tmp_path)

    def never(*_):
        raise AssertionError

    assert write(tmp_path, never, never).sha256() == made.sha256()


def test_another_teacher_is_refused(tmp_path):
    write(tmp_path)
    with pytest.raises(
        ValueError, match=r"something else: another teacher or tokenizer. Ch"
    ):
        write(tmp_path, made_from={**MADE_FROM, "teacher": "other"})
    assert open_transfer_set(tmp_path).num_records == 15  # nothing lost


def test_damage_is_noticed(tmp_path):
    made = write(tmp_path)
    shard = tmp_path / made.shards[1]["name"]
    content = shard.read_bytes()
    shard.write_bytes(content[:-3])
    with pytest.raises(ValueError, match="00001.tfrecord is damaged or cut short"):
        open_transfer_set(tmp_path)
    with pytest.raises(ValueError, match="00001.tfrecord is damaged or cut short"):
        write(tmp_path)
    shard.unlink()
    with pytest.raises(FileNotFoundError, match="00001.tfrecord is missing"):
        open_transfer_set(tmp_path)
    shard.write_bytes(content)
    path = tmp_path / DESCRIPTION
    description = json.loads(path.read_text())
    description["made_from"]["teacher"] = "other"
    path.write_text(json.dumps(description))
    with pytest.raises(ValueError, match="record 0, counted from 0: the key is not"):
        next(open_transfer_set(tmp_path).records())
    path.write_text("{}")
    with pytest.raises(
        ValueError, match="is damaged: there is no 'format_version'. Ma"
    ):
        open_transfer_set(tmp_path)
    del description["num_labels"]
    path.write_text(json.dumps(description))
    with pytest.raises(ValueError, match="is damaged: there is no 'num_labels'. Make"):
        open_transfer_set(tmp_path)
    for content, message in (
        ("[]", "expected an object of JSON"),
        ('{"format_version": ', r"Expecting value: line 1 .*char \d+\)\. Make"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=f"{DESCRIPTION} is damaged: {message}"):
            open_transfer_set(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no transfer set"):
        open_transfer_set(tmp_path / "nowhere")


def test_wrong_logits_and_no_texts(tmp_path):
    with pytest.raises(ValueError, match=r"gives \[nan, 0.0\] for the text 'a good"):
        write(tmp_path, lambda columns: [[np.nan, 0]] + [[0, 0]] * 3)
    with pytest.raises(ValueError, match="2 logits a text. Received: logits of"):
        write(tmp_path, lambda columns: np.zeros((4, 3)))
    with pytest.raises(ValueError, match="no text to make"):
        write(tmp_path, examples=lambda: iter(()))
    assert not list(tmp_path.glob("*.tfrecord"))
