"""A task spec that does not fit its head is told before its files are read."""

import dataclasses

import pytest

from keras_recbert.data import TaskSpec
from keras_recbert.train.fine_tuning import check_task

TASK = TaskSpec(
    name="mine",
    fields=("text",),
    head_arguments={"label_names": ("no", "yes")},
    metrics=("accuracy", "matthews"),
)


def test_what_fits():
    assert check_task(TASK) is TASK
    several = dataclasses.replace(
        TASK, head="multilabel_classifier", metrics=("micro_f1",), main_metric=None
    )
    assert check_task(several).main_metric == "micro_f1"
    for names in (("no", "yes"), ("no", "maybe", "yes")):
        scored = ("f1" if len(names) == 2 else "macro_f1", "accuracy")
        fits = dataclasses.replace(
            TASK, head_arguments={"label_names": names}, metrics=scored
        )
        assert check_task(fits) is fits
    assert check_task("SST-2").name == "sst2"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"head": "clasifier"},
            "No task is called 'clasifier'. Did you mean 'classifi",
        ),
        (
            {"head_arguments": {"labels": ("no", "yes")}},
            "The head 'classifier' of task 'mine' takes no argument 'labels'",
        ),
        (
            {"packer_arguments": {"truncate": "only_second"}},
            "The packer TextPreprocessor of task 'mine' takes no argument 'truncate'",
        ),
        (
            {"metrics": ("acuracy",), "main_metric": None},
            "Task 'mine': The head 'classifier' has no metric 'acuracy'. Did you mean "
            "'accuracy'",
        ),
        (
            {"head": "regressor", "head_arguments": {}},
            "Task 'mine': The head 'regressor' has no metric 'accuracy'. Valid: pear",
        ),
        (
            {
                "head_arguments": {"label_names": ("no", "maybe", "yes")},
                "metrics": ("accuracy", "f1"),
            },
            r"Task 'mine': 'f1' is the score of the second of two classes. Received: "
            r"metrics=\('accuracy', 'f1'\) with 3 classes \(no, maybe, yes\). Try 'm",
        ),
        (
            {"head_arguments": {"num_classes": 3}, "metrics": ("f1", "accuracy")},
            r"with 3 classes. Try 'macro_f1'",
        ),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        check_task(dataclasses.replace(TASK, **changes))
