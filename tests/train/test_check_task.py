"""A task spec that does not fit its head is told before its files are read."""

import dataclasses

import pytest

from keras_recbert.data import TaskSpec, list_tasks
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
    assert check_task("SST-2").name == list_tasks()[1]


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
            {"metrics": ("acuracy",), "main_metric": None},
            "of task 'mine' has no metric 'acuracy'. Did you mean 'accuracy'",
        ),
        (
            {"head": "regressor", "head_arguments": {}},
            "'regressor' of task 'mine' has no metric 'accuracy'. Valid: pearson, spea",
        ),
    ],
)
def test_what_does_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        check_task(dataclasses.replace(TASK, **changes))
