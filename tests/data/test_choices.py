"""Files of texts with choices, as they should be and as they should not."""

import csv
import json
import os
import pathlib

import numpy as np
import pytest

from keras_recbert.data.choices import (
    read_arc,
    read_copa,
    read_swag,
    write_choices,
)
from keras_recbert.data.examples import Examples

SAMPLES = pathlib.Path(__file__).parent / "samples"
REAL = pathlib.Path(os.environ.get("RECBERT_DATA_DIR", "missing"))
FULL = (
    "video-id,startphrase,gold-ending,distractor-0,distractor-1,distractor-2,"
    "distractor-3,gold-source,sent1,sent2\n"
)


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_all_endings_of_swag(tmp_path):
    path = tmp_path / "val_full.csv"
    path.write_text(
        FULL
        + 'v1,,"sings, loud.",runs.,bows.,runs.,,gold,A man.,He\n'
        + "v2,,acts.,zooms.,walks.,x,y,gold,Actors.,\n",
        encoding="utf-8",
    )
    examples = read_swag(path, "validation")
    # Alphabetical; one that is empty or stands twice is no choice.
    assert examples.fields["choices"] == [
        ["He bows.", "He runs.", "He sings, loud."],
        ["acts.", "walks.", "x", "y", "zooms."],
    ]
    assert examples.targets["label"] == [2, 0]


def test_rows_of_arc_without_their_choices_are_left_out(tmp_path):
    path = write(
        tmp_path / "arc.csv",
        '"What, then?",a,b,c,d,B',
        "Lost,,,,,2",
        "Beyond,a,b,c,d,E",
        "Between,a,,c,d,C",
        "Three?,a,b,c,,3",
    )
    examples = read_arc(path, "train")
    assert examples.fields == {
        "text": ["What, then?", "Three?"],
        "choices": [["a", "b", "c", "d"], ["a", "b", "c"]],
    }
    assert examples.targets == {"label": [1, 2]} and examples.ids == ["1", "2"]
    (note,) = examples.notes
    assert (
        f"left out 3 rows without their choices or the right one (the first at {path}:2"
        in note
    )


def test_a_test_split_may_lack_answers(tmp_path):
    row = {"id": "q", "question": {"stem": "?", "choices": CHOICES}}
    path = write(tmp_path / "a.jsonl", json.dumps(row))
    assert read_arc(path, "test").targets is None
    with pytest.raises(ValueError, match="a.jsonl:1: there is no 'answerKey'"):
        read_arc(path, "validation")


CHOICES = [{"text": "one", "label": "A"}, {"text": "two", "label": "B"}]
COPA = {
    "premise": "It rained.",
    "choice1": "He ran.",
    "choice2": "He sang.",
    "question": "effect",
    "label": 0,
    "idx": 3,
}
ARC = {"id": "q", "question": {"stem": "?", "choices": CHOICES}, "answerKey": "A"}
BROKEN = {
    "label of COPA": (read_copa, {**COPA, "label": 2}, "'label' must be one of 0, 1."),
    "truth of COPA": (read_copa, {**COPA, "label": True}, "Received: True"),
    "kind of COPA": (read_copa, {**COPA, "question": "why"}, "one of cause, effect"),
    "premise": (read_copa, {**COPA, "premise": 7}, "a string under 'premise'"),
    "choice": (read_copa, {**COPA, "choice2": ""}, "two choices or more, none of them"),
    "no choice": (
        read_copa,
        {k: v for k, v in COPA.items() if k != "choice1"},
        "there is no 'choice1'. Found 'premise', 'choice2'",
    ),
    "key": (
        read_arc,
        {**ARC, "answerKey": "C"},
        "must be one of 'A', 'B'. Received: 'C'",
    ),
    "question": (read_arc, {**ARC, "question": "?"}, "an object under 'question'"),
    "list": (
        read_arc,
        {**ARC, "question": {"stem": "?", "choices": ["one", "two"]}},
        "choice 1: expected an object. Received: 'one'.",
    ),
    "empty choice": (
        read_arc,
        {**ARC, "question": {"stem": "?", "choices": [CHOICES[0], {}]}},
        "choice 2: there is no 'text'. Found nothing.",
    ),
    "one choice": (
        read_arc,
        {**ARC, "question": {"stem": "?", "choices": CHOICES[:1]}},
        r"two choices or more.*Received: \['one'\]",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_row_is_refused(name, tmp_path):
    read, row, message = BROKEN[name]
    good = COPA if read is read_copa else ARC
    path = write(tmp_path / "some.jsonl", json.dumps(good), json.dumps(row))
    with pytest.raises(ValueError, match=rf"some.jsonl:2: .*{message}"):
        read(path, "train")


def test_a_broken_csv_is_refused(tmp_path):
    path = write(tmp_path / "arc.csv", "Which?,a,b,c,d,A", "Which?,a,b,c,d,F")
    with pytest.raises(ValueError, match="arc.csv:2: 'answer' must be .*Received: 'F'"):
        read_arc(path, "train")
    path = write(tmp_path / "arc.csv", "Which?,a,b,c,d,A", "Which?,a,b,A")
    with pytest.raises(ValueError, match="arc.csv:2: expected 6 fields.* found 4"):
        read_arc(path, "train")
    path = tmp_path / "val_full.csv"
    path.write_text(FULL + "v,,,a,b,c,d,gold,A man.,He\n", encoding="utf-8")
    with pytest.raises(ValueError, match="val_full.csv:2: an ending is empty"):
        read_swag(path, "validation")
    lines = (SAMPLES / "swag/swag/train.csv").read_text("utf-8").splitlines()
    path = write(tmp_path / "train.csv", lines[0], lines[1].removesuffix("3") + "4")
    with pytest.raises(ValueError, match="train.csv:2: 'label' must be one of '0'"):
        read_swag(path, "train")
    path = write(tmp_path / "train.csv", "sent1,ending0", "a,b")
    with pytest.raises(ValueError, match="train.csv:2: there is no 'sent2'"):
        read_swag(path, "train")


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason="needs RECBERT_DATA_DIR")
def test_real_files():
    both = [
        read_swag(REAL / "swag" / name, "validation")
        for name in ("swag_sample_val.csv", "swag_sample_val.regular_layout.csv")
    ]
    for full, four, one, other in zip(
        both[0].fields["choices"],
        both[1].fields["choices"],
        both[0].targets["label"],
        both[1].targets["label"],
        strict=True,
    ):
        assert set(four) <= set(full) and full[one] == four[other]
    assert read_swag(REAL / "swag" / "swag_sample_test.csv", "test").targets is None
    # 1,119 and 299 questions, some of which lost their choices.
    assert len(read_arc(REAL / "arc" / "arc_challenge_dev.csv", "train")) == 1096
    validation = read_arc(REAL / "arc" / "arc_challenge_test.csv", "validation")
    assert len(validation) == 294 and set(map(len, validation.fields["choices"])) == {
        3,
        4,
    }
    copa = read_copa(REAL / "superglue" / "COPA" / "val.jsonl", "validation")
    assert len(copa) == 100 and sum(copa.targets["label"]) == 45


def test_predictions_are_the_likeliest_choices_of_each_text(tmp_path):
    fields = {
        "text": ["rain, at last", "a book"],
        "choices": [["wet", "dry"], list("abc")],
    }
    examples = Examples(fields, {"label": [0, 2]}, ["7", "q-1"])
    logits = np.array([[-1.0, 1.0, 9.0], [0.0, 0.0, np.log(2.0)]])  # 9.0 is padding
    write_choices(tmp_path, examples, logits)
    with (tmp_path / "predictions.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["7", "q-1"]
    assert rows[0]["text"] == "rain, at last"
    assert [row["label"] for row in rows] == ["wet", "c"]
    assert [row["prediction"] for row in rows] == ["dry", "c"]
    expected = [1 / (1 + np.exp(-2)), 0.5]
    np.testing.assert_allclose([float(row["score"]) for row in rows], expected)
