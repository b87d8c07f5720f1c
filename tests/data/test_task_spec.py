"""Task specs: what contradicts itself, and what is registered."""

import dataclasses
import pathlib
import sys

import pytest

from keras_recbert.data import (
    Examples,
    TaskSpec,
    get_task,
    list_tasks,
    register_task,
    task_spec,
    tasks,
)
from keras_recbert.data.submissions import Submission
from keras_recbert.data.task_table import make_task_table

MINE = {"name": "mine", "fields": ("text",), "metrics": ("accuracy", "f1")}
FILES = {"files": {"train": "a.txt", "validation_x": "a.txt"}, "read": lambda *_: None}


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    monkeypatch.setattr(task_spec._TASKS, "entries", dict(task_spec._TASKS.entries))


def test_what_a_spec_says():
    spec = TaskSpec(**MINE, **FILES, head_arguments={"label_names": ("no", "yes")})
    assert (spec.main_metric, spec.version, spec.targets) == ("accuracy", 1, ("label",))
    assert spec.label_names == ("no", "yes")
    assert (spec.validation_splits, spec.test_splits) == (("validation_x",), ())
    assert TaskSpec(**MINE).label_names is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "A task needs a `name`. Received: name=''"),
        ({"fields": ("text", "text")}, r"'mine': `fields` must be a tuple of names"),
        ({"fields": "text"}, r"such as \('text',\). Received: fields='text'"),
        ({"metrics": ()}, r"`metrics` must be a tuple .* metrics=\(\)"),
        ({"main_metric": "auc"}, "`main_metric` must be one of accuracy, f1. Received"),
        ({"group_by": "first"}, "`group_by` must be one of text. Received"),
        (
            {"own_metrics": {"recall": max, "f1": max}},
            r"`own_metrics` must be among `metrics`. Received: own_metrics=\['recall'",
        ),
        (
            {"submission": Submission({"test": "A.tsv"}, print)},
            r"`submission` must name files of test splits, \(\). Received: \('test',",
        ),
        ({"version": "2"}, "`version` must be an int. Received: version='2'"),
        (
            {**FILES, "files": {"valid": "a"}},
            "splits are train, validation, test, or such as",
        ),
        (
            {**FILES, "files": {"train_1": "a"}},
            "splits are train, validation, test, or such",
        ),
        ({"files": {"train": "a"}}, "`files` and `read` go together"),
    ],
)
def test_what_contradicts_itself_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        TaskSpec(**{**MINE, **changes})


def test_a_name_is_registered_once():
    spec = register_task(TaskSpec(**{**MINE, "name": "My-Task"}, **FILES))
    assert list_tasks()[-1] == "My-Task"
    assert get_task("my_task") is get_task(spec) is spec
    assert list_tasks("My*") == ["My-Task"]
    for taken in ("mytask", "SST-2", "regressor"):
        with pytest.raises(ValueError, match=f"a name of its own. Received: '{taken}'"):
            register_task(dataclasses.replace(spec, name=taken))
    for files in ({}, {"test": "a.txt"}):
        read = FILES["read"] if files else None
        nothing = dataclasses.replace(spec, name="other", files=files, read=read)
        with pytest.raises(
            ValueError, match="needs `read` and `files` with a train or"
        ):
            register_task(nothing)


def test_an_unknown_name_is_told_with_the_nearest():
    with pytest.raises(ValueError) as caught:
        get_task("mnil")
    message = str(caught.value)
    assert message.startswith("No task is called 'mnil'. Did you mean 'mnli'")
    assert "`recbert list --tasks` shows all" in message
    assert "--import FILE.py adds yours" in message


def test_a_table_shows_the_main_metric_first():
    *_, mrpc = make_task_table(["mrpc"]).splitlines()
    assert mrpc.startswith(
        "| `mrpc` | 1 | text, text_pair | classifier | f1, accuracy |"
    )


def test_every_file_of_the_package_registers_its_tasks():
    for file in pathlib.Path(tasks.__file__).parent.glob("*.py"):
        name = "" if file.stem == "__init__" else f".{file.stem}"
        assert f"keras_recbert.data.tasks{name}" in sys.modules


def test_examples_are_public():
    assert len(Examples({"text": ["a"]})) == 1
