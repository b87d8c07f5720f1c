"""Files of SentEval's probing tasks; classes are the labels of the training split."""

import pytest

from keras_recbert.data import get_task
from keras_recbert.data.senteval import read_senteval
from keras_recbert.data.task_files import load_splits, read_split
from keras_recbert.data.task_labels import name_labels

LINES = ["tr\tO\ta film .", "te\tI\tfilm a .", "va\tI\tstory a .", "tr\tI\tmusic a ."]


def write(tmp_path, lines, name="bigram_shift"):
    path = tmp_path / f"{name}.txt"
    path.write_bytes("\n".join(lines).encode() if isinstance(lines, list) else lines)
    return path


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["tr\tO\ta film .", "tr\tO"],
            r"shift.txt:2: expected tr, va, te .* 2 columns",
        ),
        (["train\tO\ta film ."], "shift.txt:1: expected tr, va, te .* 'train' in the"),
        (["tr\t\ta film ."], "shift.txt:1: the label is empty"),
        (["tr\tO\ta .", "va\tO\t "], "shift.txt:2: the sentence is empty"),
        (["va\tO\ta film ."], "shift.txt has no line of the train split: none begins "),
        (b"tr\tO\ta film\ntr\tO\tcaf\xe9\n", "shift.txt:2: not valid UTF-8"),
        (b"", "shift.txt has no line of the train split"),
    ],
)
def test_bad_files_are_told(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_senteval(write(tmp_path, lines), "train")


def test_classes_are_those_of_the_training_split(tmp_path):
    write(tmp_path, LINES)
    task = get_task("bigram_shift")
    train, validation, notes = load_splits(task, tmp_path)
    test = read_split(task, tmp_path, "test")
    task, train, validation, rest = name_labels(task, train, validation, {"test": test})
    assert notes == [] and task.label_names == ("I", "O")
    assert train.targets["label"].tolist() == [1, 0]
    assert validation["validation"].targets["label"].tolist() == [0]
    assert (rest["test"].ids, rest["test"].targets["label"].tolist()) == (["2"], [0])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [line.replace("I", "O") for line in LINES[:3]],
            "shift.txt .train of bigram_shift.: expected two .* 'O' for all 1",
        ),
        (
            [*LINES, "te\tC\ta ."],
            "/bigram_shift.txt:5: no line of the train split has the label 'C'",
        ),
    ],
)
def test_labels_that_cannot_be_learned(tmp_path, lines, message):
    write(tmp_path, lines)
    task = get_task("bigram_shift")
    with pytest.raises(ValueError, match=message):
        splits = {name: read_split(task, tmp_path, name) for name in task.files}
        name_labels(task, splits.pop("train"), splits)
