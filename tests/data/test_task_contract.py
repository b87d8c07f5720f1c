"""What every registered task keeps; a new one joins by registering and a sample.

`samples/NAME/` holds the files of a task, with few and awkward rows, as `--data-dir`
takes them, and `expected.json`: ids, fields and targets of every split.
"""

import json
import pathlib

import numpy as np
import pytest
from own_tables import config
from toy_texts import VOCABULARY

from keras_recbert.data import get_task, list_tasks
from keras_recbert.data.task_files import available_splits, load_splits, read_split

SAMPLES = pathlib.Path(__file__).parent / "samples"
MOST_BYTES = 20_000

each_task = pytest.mark.parametrize("name", list_tasks())


@each_task
def test_a_task_says_what_it_is(name):
    from keras_recbert.train.fine_tuning import check_task

    task = check_task(name)  # head, its arguments, metrics
    assert task.name == name.lower()
    assert task.version >= 1
    assert task.source
    assert task.main_metric in task.metrics
    assert task.files and task.validation_splits
    tfds = task.tfds
    assert not tfds or tfds.as_file or tuple(tfds.features) == task.fields


@each_task
def test_a_task_reads_its_sample(name):
    task, sample = get_task(name), SAMPLES / name
    assert sample.is_dir(), f"write {sample}, see the head of this file"
    files = [path for path in sample.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    expected = json.loads((sample / "expected.json").read_text(encoding="utf-8"))
    assert set(expected) == set(task.files)
    assert available_splits(name, sample) == list(task.files)
    for split, rows in expected.items():
        examples = read_split(name, sample, split)
        assert list(examples.ids) == [row["id"] for row in rows]
        assert len(set(examples.ids)) == len(examples)
        assert tuple(examples.fields) == task.fields
        for field, column in examples.fields.items():
            assert list(column) == [row["fields"][field] for row in rows]
        if "targets" not in rows[0]:
            assert examples.targets is None and split in task.test_splits
            continue
        assert tuple(examples.targets) == task.targets
        for target, column in examples.targets.items():
            for found, row in zip(column, rows, strict=True):
                assert _plain(found) == _plain(row["targets"][target])


def _plain(target):
    """A number or a row of numbers as float32, which JSON has not; else as it is."""
    if isinstance(target, (dict, str, list)):
        return target
    return np.asarray(target, np.float32).tolist()


@each_task
def test_a_task_has_a_train_and_a_validation_split(name):
    task = get_task(name)
    train, validation, notes = load_splits(name, SAMPLES / name)
    assert len(train) and train.targets is not None
    assert tuple(validation) == task.validation_splits
    assert not any("split by" in note for note in notes) or "train" not in task.files
    if task.label_names is not None:
        for examples in (train, *validation.values()):
            if "label" in examples.targets:
                labels = set(np.unique(examples.targets["label"]))
                assert labels <= set(range(len(task.label_names)))
            else:  # a tag for each word
                tags = {tag for row in examples.targets["tags"] for tag in row}
                assert tags <= set(task.label_names)


def kinds_of_task():
    """The first task of each way to read, learn, score and hand in."""
    kinds = {}
    for name in list_tasks():
        task = get_task(name)
        read = getattr(task.read, "__name__", type(task.read).__name__)
        kind = (read, task.head, task.metrics, len(task.fields), not task.submission)
        kinds.setdefault(kind, name)
    return list(kinds.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", kinds_of_task())
def test_a_task_trains_on_its_sample(name, tmp_path):
    from keras_recbert.train.fine_tuning import fine_tune

    task = get_task(name)
    (tmp_path / "pieces.txt").write_text("\n".join(VOCABULARY))
    options = {
        "task": name,
        "data_dir": str(SAMPLES / name),
        "vocabulary": str(tmp_path / "pieces.txt"),
        "epochs": 1,
        "submission": task.submission is not None,
    }
    _, results = fine_tune(config(**options, output_dir=str(tmp_path / "run")))
    assert (results["task"], results["task_version"]) == (name, task.version)
    scores = {
        f"{split}_{name}" for split in task.validation_splits for name in task.metrics
    }
    assert scores < set(results["scores"])
    if task.submission is not None:
        for split, file in task.submission.files.items():
            ids = read_split(name, SAMPLES / name, split).ids
            written = (tmp_path / "run" / file).read_text(encoding="utf-8")
            assert all(id.rpartition("-")[2] in written for id in ids)
