"""GLUE tasks of every score and layout on the real files, as far as they are there."""

import json

import pytest

from keras_recbert.config import FineTuningConfig
from keras_recbert.data.task_spec import get_task

# tests/data/test_glue.py reads the others, tests/data/test_task_contract.py trains.
GLUE = ["cola", "mrpc", "stsb", "mnli"]
SPLIT_HERE = {"mnli"}  # one labelled file


@pytest.mark.slow
@pytest.mark.parametrize("name", GLUE)
def test_task_trains_and_scores(name, data_dir, tmp_path, capsys):
    from keras_recbert.train.fine_tuning import fine_tune

    config = FineTuningConfig(
        model="swish_tiny",
        task=name,
        data_dir=str(data_dir / "glue"),
        vocabulary=str(data_dir / "vocab" / "bert-base-uncased-vocab.txt"),
        output_dir=str(tmp_path),
        epochs=1,
        limit=256,
        max_sequence_length=32,
        overrides={"num_layers": 1, "hidden_dim": 32, "num_heads": 2},
        export=False,
    )
    model, results = fine_tune(config)
    task = get_task(name)
    split = task.validation_splits[0]
    for metric in task.metrics:
        assert -1 <= results["scores"][f"{split}_{metric}"] <= 1
    assert len(model.fields) == len(task.fields)
    # A departure from the official files is told, and nothing else is.
    assert bool(results["notes"]) == (name in SPLIT_HERE)
    assert ("Note: " in capsys.readouterr().out) == (name in SPLIT_HERE)
    assert json.loads((tmp_path / "results.json").read_text())["task"] == name
