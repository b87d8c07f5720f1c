"""What a reader gives is checked, and labels are as heads take them."""

import dataclasses

import numpy as np
import pytest

from keras_recbert.data.examples import Examples
from keras_recbert.data.task_labels import check_examples
from keras_recbert.data.task_spec import TaskSpec

TASK = TaskSpec(
    name="mine",
    fields=("text",),
    head_arguments={"label_names": ("no", "yes", "maybe")},
    metrics=("accuracy",),
    files={"train": "a", "test": "b"},
    read=lambda path, split: None,
)
SCORES = TaskSpec(
    name="mine",
    fields=("text",),
    head="regressor",
    metrics=("pearson",),
    score_range=(0, 5),
)
SPANS = TaskSpec(
    name="mine",
    fields=("question", "context"),
    targets=("start", "end"),
    metrics=("f1",),
)


def checked(task, labels, split="train"):
    texts = [f"text {row}" for row in range(len(labels))]
    examples = Examples({"text": texts}, {"label": labels}, notes=("one left out",))
    return check_examples(task, "a.jsonl", split, examples)


@pytest.mark.parametrize(
    "labels", [["yes", "no", "maybe"], [1, 0, 2], np.array([1, 0, 2], np.int64)]
)
def test_names_and_ids_of_classes(labels):
    found = checked(TASK, labels)
    assert found.targets["label"].dtype == np.int32
    assert found.targets["label"].tolist() == [1, 0, 2]
    assert found.notes == ("one left out",)


@pytest.mark.parametrize(
    "labels",
    [[["yes", "maybe"], [], ["no"]], np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])],
)
def test_any_number_of_labels(labels):
    found = checked(TASK, labels).targets["label"]
    assert found.dtype == np.float32
    assert found.tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0]]


def test_numbers():
    found = checked(SCORES, [0, 2.5, np.float64(5)]).targets["label"]
    assert (found.dtype, found.tolist()) == (np.float32, [0, 2.5, 5])
    unbounded = dataclasses.replace(SCORES, score_range=None)
    assert checked(unbounded, [-1e9]).targets["label"].tolist() == [-1e9]


@pytest.mark.parametrize(
    ("task", "labels", "message"),
    [
        (TASK, ["yes", "Yes"], "a.jsonl, example '2': 'Yes' is not a label of task"),
        (TASK, ["Yes"], "of task 'mine'. Valid: 'no', 'yes', 'maybe'"),
        (TASK, [0, 3], "example '2': 3 is not .* Valid: 0 to 2, or a name"),
        (TASK, [0.5], "example '1': 0.5 is not"),
        (TASK, [["yes"], ["yes", "x"]], "example '2': 'x' is not a label"),
        (SCORES, [1, 5.5], "example '2': 5.5 is not .* numbers from 0 to 5"),
        (SCORES, [float("nan")], "example '1': nan is not"),
        (SCORES, ["4"], "example '1': '4' is not .* numbers from 0 to 5"),
        (TASK, [], r"a.jsonl \(train of mine\) has no examples"),
    ],
)
def test_labels_that_are_wrong_name_file_and_example(task, labels, message):
    with pytest.raises(ValueError, match=message):
        checked(task, labels)


def test_infinite_numbers_are_refused():
    unbounded = dataclasses.replace(SCORES, score_range=None)
    with pytest.raises(ValueError, match="example '1': inf is not .* finite numbers"):
        checked(unbounded, [float("inf")])


def test_fields_and_targets_are_those_of_the_task():
    fields = {"question": ["Who?"], "context": ["He did."]}
    good = Examples(fields, {"start": [0], "end": [2]})
    assert check_examples(SPANS, "a", "train", good).targets == good.targets
    turned = Examples(dict(reversed(fields.items())), good.targets)
    with pytest.raises(ValueError, match="the fields question, context, in this order"):
        check_examples(SPANS, "a", "train", turned)
    with pytest.raises(ValueError, match="targets start, end, .* Received: start."):
        check_examples(SPANS, "a", "train", Examples(fields, {"start": [0]}))
    with pytest.raises(TypeError, match="must give `keras_recbert.data.Examples`. Rec"):
        check_examples(TASK, "a", "train", (["a"], [0]))


def test_only_test_splits_may_lack_targets():
    examples = Examples({"text": ["a"]})
    assert check_examples(TASK, "a", "test", examples).targets is None
    with pytest.raises(ValueError, match="expected the targets label.* none"):
        check_examples(TASK, "a", "train", examples)
