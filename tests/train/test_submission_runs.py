"""Test splits of a registered task: read, predicted and written."""

import pathlib

import numpy as np
import pytest
from own_tables import config

import keras_recbert
from keras_recbert.cli.arguments import config_from
from keras_recbert.cli.training import finetune
from keras_recbert.config import FineTuningConfig
from keras_recbert.data import get_task
from keras_recbert.data.task_files import MissingSplitError
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.submissions import SubmissionFiles
from keras_recbert.train.training_run import FINE_TUNING

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "samples"


def predict(examples):
    """Contradiction for texts with a quotation mark, else neutral."""
    classes = [1 + ('"' in text) for text in examples.texts()]
    return np.eye(3, dtype=np.float32)[classes]


def test_each_test_split_has_its_file(tmp_path, capsys):
    submission = SubmissionFiles.read(get_task("mnli"), SAMPLES / "mnli")
    submission.write(tmp_path, predict)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {
        "MNLI-m.tsv": "index\tprediction\n9847\tneutral\n",
        "MNLI-mm.tsv": "index\tprediction\n9848\tcontradiction\n",
        "AX.tsv": "index\tprediction\n0\tcontradiction\n3\tneutral\n",
    }
    printed = capsys.readouterr().out
    assert "Predicting 2 examples of test_diagnostic ..." in printed
    assert f"Wrote {tmp_path / 'AX.tsv'} for the leaderboard." in printed
    assert set(written) < set(FINE_TUNING.files)  # a run replaces its own


def test_what_a_user_types(tmp_path, monkeypatch, recbert_options):
    """One command and one call, with nothing that is optional."""
    assert recbert_options("--task", "boolq", "--data-dir", "D", "--submission") == (
        FineTuningConfig(task="boolq", data_dir="D", submission=True)
    )
    seen = []
    monkeypatch.setattr("keras_recbert.train.fine_tuning.fine_tune", seen.append)
    keras_recbert.finetune(task="boolq", data_dir=tmp_path, submission=True)
    assert seen == [
        FineTuningConfig(task="boolq", data_dir=str(tmp_path), submission=True)
    ]


@pytest.fixture
def recbert_options():
    """The config of `recbert finetune` with some words."""
    return lambda *words: config_from(list(words), finetune, FineTuningConfig)


def write_rte(folder, rows, header="index\tsentence1\tsentence2"):
    (folder / "RTE").mkdir(exist_ok=True)
    (folder / "RTE" / "test.tsv").write_text("\n".join([header, *rows]) + "\n")


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("sentence1\tsentence2", ["a\tb"], "test.tsv:1: column 'index' is not in the"),
        (
            "index\tsentence1\tsentence2",
            ["0\ta\tb", "1\tc\td", "0\te\tf"],
            "test.tsv:4: the id '0' stands twice, first at .*test.tsv:2",
        ),
        ("index\tsentence1\tsentence2", ["0\ta"], "test.tsv:2: expected 3 tab-sep"),
    ],
)
def test_a_test_file_that_cannot_be_submitted_is_refused(
    header, rows, message, tmp_path
):
    write_rte(tmp_path, rows, header)
    with pytest.raises(ValueError, match=message):
        SubmissionFiles.read(get_task("rte"), tmp_path)


def test_every_row_of_a_test_file_is_predicted(tmp_path):
    """A file of QQP may have broken rows, but not one to submit."""
    (tmp_path / "QQP").mkdir()
    rows = "id\tquestion1\tquestion2\n0\ta\tb\n1\tbroken\n"
    (tmp_path / "QQP" / "test.tsv").write_text(rows)
    with pytest.raises(ValueError, match="test.tsv:3: expected 3 tab-separated fields"):
        SubmissionFiles.read(get_task("qqp"), tmp_path)


def test_a_run_that_cannot_submit_ends_before_it_begins(tmp_path):
    options = {"submission": True, "output_dir": str(tmp_path / "run")}
    folder = tmp_path / "data"
    (folder / "RTE").mkdir(parents=True)
    with pytest.raises(MissingSplitError, match="RTE: test.tsv not .*--submission"):
        fine_tune(config(**options, task="rte", data_dir=str(folder)))
    with pytest.raises(
        ValueError, match="a leaderboard: cola, .* task='squad1'. Leave"
    ):
        fine_tune(config(**options, task="squad1", data_dir=str(folder)))
    assert not (tmp_path / "run").exists()
    for given in ({"task": "rte", "tfds": True}, {"train": "a.csv"}):
        with pytest.raises(ValueError, match="`submission` is of the test files of a"):
            FineTuningConfig(submission=True, **given)
