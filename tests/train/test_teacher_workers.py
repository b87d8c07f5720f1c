"""A transfer set by several workers: equal bytes, restarts, failures."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from toy_texts import reviews, tiny_model

from keras_recbert.cli import main
from keras_recbert.config import DistillationConfig
from keras_recbert.data.transfer_set import open_transfer_set, write_transfer_set
from keras_recbert.data.transfer_shards import ShardWriter
from keras_recbert.train import teacher_pipeline, teacher_workers
from keras_recbert.train.precision import Precision
from keras_recbert.train.teacher import TaskTeacher, Teacher
from keras_recbert.train.teacher_ensemble import TeacherEnsemble

PRECISION = Precision("float32", "asked for")
TEXTS = [f"{text} [MASK] {index}" for index, text in enumerate(reviews(60)[0])]
# A program, as workers are started by one and killed with it.
PROGRAM = """
import sys
sys.path[:0] = sys.argv[4:]
from test_teacher_workers import make
make(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def make(teacher, folder, workers, texts=TEXTS, **options):
    """Writes a transfer set of 60 texts in shards of 4."""
    config = DistillationConfig(
        teacher=str(teacher), teacher_workers=workers, teacher_batch_size=3, **options
    )
    whole = Teacher(teacher, PRECISION, config.teacher_batch_size)
    model = TeacherEnsemble([TaskTeacher(whole, whole.model, [1, 0])])

    def examples():
        for index, text in enumerate(texts):
            yield (text,), index % 2 if index < 40 else None

    return write_transfer_set(
        folder,
        ("text",),
        2,
        examples,
        model.logits,
        {"teacher": whole.checksum},
        shard_records=4,
        share_out=teacher_workers.sharing(config, model, PRECISION),
    )


@pytest.fixture(scope="module", autouse=True)
def eager(eager_module):
    """All of them, to begin with."""


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    path = tmp_path_factory.mktemp("teacher") / "preset"
    tiny_model(label_names=["bad", "good"]).save_preset(path)
    return path


@pytest.fixture(scope="module")
def alone(teacher, tmp_path_factory):
    """The transfer set of one process."""
    return make(teacher, tmp_path_factory.mktemp("alone"), 1)


def shards(folder):
    return {path.name: path.read_bytes() for path in folder.glob("transfer-*")}


def test_beam_in_this_process_writes_the_same_bytes(teacher, alone, tmp_path, capfd):
    """As a runner of the user's choice would; and resumes what was stopped."""
    options = {"beam_options": "--direct_num_workers=1"}
    calls = []

    def lost(*arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keras_recbert.train.teacher_pipeline.run", lost)
        with pytest.raises(KeyboardInterrupt):
            make(teacher, tmp_path, 1, **options)
    with pytest.raises(ValueError, match="unfinished transfer set"):
        open_transfer_set(tmp_path)
    made = make(teacher, tmp_path, 1, **options)
    assert calls and shards(tmp_path) == shards(alone.folder)
    assert (made.sha256(), made.num_labels) == (alone.sha256(), 40)
    assert sorted(os.listdir(tmp_path))[0] == "transfer-00000.tfrecord"
    assert not (tmp_path / "parts").exists()
    assert "Teacher: 60 texts." in capfd.readouterr().out


def test_the_cause_of_a_failure_reaches_the_user(teacher, alone, tmp_path, monkeypatch):
    """And the same command resumes, in one process too."""
    logits = Teacher.logits

    def fails(self, columns, model):
        if TEXTS[17] in columns[0]:
            return np.full((len(columns[0]), 2), np.nan)
        return logits(self, columns, model)

    with monkeypatch.context() as patch:
        patch.setattr(Teacher, "logits", fails)
        with pytest.raises(RuntimeError, match=r"gives \[nan, nan\] for .* resumes"):
            make(teacher, tmp_path, 1, beam_options="--direct_num_workers=1")
    there = len(shards(tmp_path))
    assert there
    scored = []
    monkeypatch.setattr(
        Teacher,
        "logits",
        lambda self, *arguments: scored.append(1) or logits(self, *arguments),
    )
    made = make(teacher, tmp_path, 1)
    assert made.sha256() == alone.sha256() and len(scored) == 15 - there


def test_batches_have_no_more_padding_than_their_longest_row(teacher):
    """And logits do not depend on it."""
    model = Teacher(teacher, PRECISION, batch_size=7)
    lengths = {}
    for places, batch in model._batches([TEXTS], np.arange(len(TEXTS))):
        assert batch["padding_mask"].sum(1).max() == batch["token_ids"].shape[1]
        for place, row in zip(places, batch["padding_mask"], strict=True):
            lengths[int(place)] = row.sum()
    assert sorted(lengths) == list(range(len(TEXTS)))
    single = Teacher(teacher, PRECISION, batch_size=1).logits([TEXTS[:5]])
    np.testing.assert_allclose(model.logits([TEXTS])[:5], single, atol=1e-5)


def test_a_worker_asks_the_head_of_its_task_and_no_other_teacher(tmp_path):
    heads = {"tone": "classifier", "stars": "regressor"}
    tiny_model(task=heads).save_preset(tmp_path)
    whole = Teacher(tmp_path, PRECISION)
    writer = ShardWriter(str(tmp_path), ("text",), 1, whole.checksum)
    member = teacher_pipeline.Member(str(tmp_path), (0,), "stars")
    job = teacher_pipeline.TeacherJob(writer, (member,), "float32", 128)
    found = teacher_pipeline._Scorer(job)([TEXTS[:9]])
    expected = whole.logits([TEXTS[:9]], whole.model.head_view("stars"))
    np.testing.assert_array_equal(found, expected)
    assert found.shape == (9, 1)
    other = dataclasses.replace(writer, teacher="another")
    with pytest.raises(ValueError, match="changed while it was scoring"):
        teacher_pipeline._Scorer(dataclasses.replace(job, writer=other))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--teacher-workers", "0"], "`teacher_workers` must be a whole number"),
        (["--teacher-workers", "2", "--beam-options=--runner=X"], "Leave one of them"),
        (["--beam-options=--nope"], "Beam has no option --nope"),
        (["--teacher-logits", "a.jsonl", "--teacher-workers", "2"], "scored already"),
    ],
)
def test_wrong_workers_are_refused(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if "--teacher-logits" not in arguments:
        arguments = [*arguments, "--teacher", "x"]
    assert main(["distill", "--task", "sst2", "--data-dir", ".", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not os.listdir(tmp_path)


@pytest.mark.slow  # every worker imports TensorFlow
def test_workers_that_are_killed_resume_with_the_same_bytes(teacher, tmp_path):
    folder = tmp_path / "made"
    paths = [path for path in sys.path if "tests" in path]

    def command(folder, workers):
        arguments = [str(teacher), str(folder), str(workers), *paths]
        return [sys.executable, "-c", PROGRAM, *arguments]

    with subprocess.Popen(command(folder, 2)) as process:
        deadline = time.monotonic() + 300
        while len(shards(folder)) < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    with pytest.raises(ValueError, match="unfinished transfer set"):
        open_transfer_set(folder)
    for name, workers in (("made", 2), ("alone", 1)):
        subprocess.run(command(tmp_path / name, workers), check=True)
    assert shards(folder) == shards(tmp_path / "alone")
    assert open_transfer_set(folder).num_records == len(TEXTS)
