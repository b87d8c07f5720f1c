"""Data sets that a user registers: several labels, one file, no validation file."""

import pytest
from own_tables import config
from toy_texts import reviews

from keras_recbert.data import Examples, TaskSpec, register_task, task_spec
from keras_recbert.train.fine_tuning import fine_tune


@pytest.fixture
def registered(monkeypatch):
    """Registers a task, forgotten afterwards."""
    monkeypatch.setattr(task_spec._TASKS, "entries", dict(task_spec._TASKS.entries))
    return lambda **spec: register_task(TaskSpec(name="mine", source="toys", **spec))


def write_reviews(folder):
    """A file of split, label and text, as SentEval has them."""
    texts, labels = reviews(30)
    rows = [
        f"{'va' if index % 3 == 2 else 'tr'}\t{('bad', 'good')[label]}\t{text}\n"
        for index, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    (folder / "all.txt").write_text("".join(rows))


def read(path, split):
    wanted = {"train": "tr", "validation": "va"}[split]
    rows = [line.rstrip("\n").split("\t") for line in path.read_text().splitlines()]
    rows = [(label, text) for part, label, text in rows if part == wanted]
    labels = [label for label, _ in rows]
    return Examples({"text": [text for _, text in rows]}, {"label": labels})


def test_splits_of_one_file(eager_steps, registered, tmp_path):
    write_reviews(tmp_path)
    registered(
        fields=("text",),
        head_arguments={"label_names": ("bad", "good")},
        metrics=("matthews", "accuracy"),
        files={"train": "all.txt", "validation": "all.txt"},
        read=read,
        version=3,
    )
    options = {"task": "mine", "data_dir": str(tmp_path), "epochs": 1}
    model, results = fine_tune(config(**options, output_dir=str(tmp_path / "run")))
    assert (results["train_examples"], results["validation_examples"]) == (
        20,
        {"validation": 10},
    )
    assert set(results["scores"]) == {
        "validation_loss",
        "validation_matthews",
        "validation_accuracy",
    }
    assert results["task_version"] == 3
    assert results["notes"] == []
    assert model.label_names == ["bad", "good"]


@pytest.mark.slow
def test_several_labels_and_no_validation_file(registered, tmp_path):
    def read_tags(path, split):
        examples = read(path, split)
        tags = [[label, "long"] for label in examples.targets["label"]]
        return Examples(examples.fields, {"label": [[], *tags[1:]]})

    write_reviews(tmp_path)
    registered(
        fields=("text",),
        head="multilabel_classifier",
        head_arguments={"label_names": ("bad", "good", "long")},
        metrics=("micro_f1", "accuracy"),
        folder="toys",
        files={"train": "all.txt", "validation": "none.txt"},
        read=read_tags,
    )
    options = {"task": "mine", "data_dir": str(tmp_path), "epochs": 1}
    _, results = fine_tune(config(**options, output_dir=str(tmp_path / "run")))
    assert (results["train_examples"], results["validation_examples"]) == (
        18,
        {"validation": 2},
    )
    assert set(results["scores"]) == {
        "validation_loss",
        "validation_micro_f1",
        "validation_accuracy",
    }
    (note,) = results["notes"]
    assert "toys: no none.txt" in note and "all.txt was split by groups of rows" in note
    balanced = config(
        **options, output_dir=str(tmp_path / "b"), class_weights="balanced"
    )
    with pytest.raises(ValueError, match="whose head is 'multilabel_classifier'"):
        fine_tune(balanced)
