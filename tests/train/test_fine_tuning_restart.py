"""`kill -9` at any moment, the same command again, and the same weights bit for bit."""

import itertools
import json
import random
import resource
import signal
import time

import numpy as np
import processes
import pytest
import yaml
from own_tables import write_rows
from processes import finish, wait_for
from toy_texts import reviews, write_glue_task

import keras_recbert
from keras_recbert.train.checkpoints import Checkpoints

pytestmark = pytest.mark.slow

RECIPE = {
    "model": "swish_tiny",
    "task": "sst2",
    "vocabulary_size": 90,
    "epochs": 4,
    "batch_size": 4,
    "learning_rate": 5e-3,
    "max_sequence_length": 32,
    "checkpoint_every": 1,
    "export": False,
    "overrides": {
        "num_layers": 1,
        "hidden_dim": 16,
        "num_heads": 2,
        "recurrent_dim": 16,
    },
}
# What comes after training, in the order it is written.
LAST_FILES = (".model.keras", "model.keras", "preset")


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Function that starts `recbert finetune` in a folder as a process."""
    folder = tmp_path_factory.mktemp("restart")
    write_glue_task(folder / "glue", "sst2", 48, 12)
    return starter(folder, {**RECIPE, "data_dir": str(folder / "glue")})


@pytest.fixture
def start_on_table(tmp_path):
    """Function that starts `recbert finetune` on a table of one's own."""
    texts, labels = reviews(60)
    names = ("bad", "good")
    rows = [(text, names[label]) for text, label in zip(texts, labels, strict=True)]
    header = ("text", "label")
    tables = {
        "train": write_rows(tmp_path / "train.csv", header, rows[:48]),
        "test": write_rows(tmp_path / "test.csv", header, rows[48:]),
    }
    return starter(tmp_path, {**RECIPE, "task": None, "epochs": 2, **tables})


def starter(folder, recipe):
    """Function that starts a recipe as a process that writes into a folder."""
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(recipe))

    def run(output, *flags):
        argv = ("--recipe", path, "--output-dir", output, *flags)
        return processes.start("finetune", *argv)

    return run


def weights_of(folder):
    model = keras_recbert.load(folder / "model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


def check_weights(folder, other):
    """Checks that two runs have the same weights, bit for bit."""
    found, expected = weights_of(folder), weights_of(other)
    assert expected.keys() == found.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)


def kill_somewhere(process, folder, number):
    """Kills a run that resumes: as it starts, between two writes, or inside one."""
    checkpoints = Checkpoints(folder / "checkpoints")
    first = max(checkpoints.steps(), default=0)

    def has_passed(steps):
        return lambda: max(checkpoints.steps(), default=0) >= first + steps

    def is_writing():
        return any(checkpoints.folder.glob(".step_*"))

    if number % 4 == 3:
        wait_for(process, has_passed(1), random.uniform(1, 6))
    else:
        wait_for(process, has_passed(random.randrange(1, 6)))
        if number % 2:
            wait_for(process, is_writing)
        else:
            time.sleep(random.uniform(0, 0.1))
    kill(process)


def kill(process):
    assert process.poll() is None, process.communicate()[0][-3000:]
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_killed_at_any_moment_the_weights_are_the_same(start, tmp_path):
    finish(start(tmp_path / "whole"))
    random.seed(0)
    run = tmp_path / "killed"
    killed_at = []
    for number in range(5):
        kill_somewhere(start(run), run, number)
        killed_at.append(max(Checkpoints(run / "checkpoints").steps(), default=0))
    print("latest checkpoint at each kill:", *killed_at)
    assert len(set(killed_at)) > 3, killed_at
    assert not (run / "results.json").exists()
    for name in LAST_FILES:
        process = start(run)
        wait_for(process, (run / name).exists)
        kill(process)
        assert not (run / "results.json").exists()
    output = finish(start(run))
    assert "Epoch" not in output  # all was trained
    left = [path.relative_to(run) for path in run.rglob(".*")]
    assert not left

    whole, found = (
        json.loads((tmp_path / name / "results.json").read_text())
        for name in ("whole", "killed")
    )
    for key in ("scores", "best_epoch", "history", "steps", "precision"):
        assert found[key] == whole[key], key
    check_weights(run, tmp_path / "whole")
    process = start(run)
    assert "holds a finished run" in finish(process, status=2)


def test_killed_on_a_table_the_files_are_the_same(start_on_table, tmp_path):
    finish(start_on_table(tmp_path / "whole"))
    random.seed(1)
    run = tmp_path / "killed"
    kill_somewhere(start_on_table(run), run, number=1)
    process = start_on_table(run)
    wait_for(process, (run / "predictions.csv").exists)
    kill(process)
    assert not (run / "results.json").exists()
    finish(start_on_table(run))
    check_weights(run, tmp_path / "whole")
    for name in ("history.csv", "predictions.csv", "report_test.md"):
        assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_full_disk_ends_with_what_to_do(start, tmp_path):
    """Files may not grow to half the size of a checkpoint; then, not at all."""
    run = tmp_path / "run"
    checkpoints = Checkpoints(run / "checkpoints")
    last = 0
    for share in (0.5, 0.0):
        process = start(run)
        wait_for(process, (run / "checkpoints" / f"step_{last + 1:08d}").is_dir)
        newest = run / "checkpoints" / f"step_{checkpoints.steps()[-1]:08d}"
        size = next(itertools.chain(newest.glob("*.data-*"))).stat().st_size
        limit = max(64, int(share * size))
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        output = finish(process, status=2)
        last = checkpoints.steps()[-1]
        assert f"The run in {run} has ended: " in output
        assert f"The checkpoint of step {last} is intact: make room" in output
        assert "Traceback" not in output
        assert not list(run.rglob(".*"))
    process = start(run)
    wait_for(process, (run / "checkpoints" / f"step_{last + 1:08d}").is_dir)
    kill(process)


def test_two_processes_in_one_folder(start, tmp_path):
    first = start(tmp_path / "run")
    wait_for(first, (tmp_path / "run" / "checkpoints").is_dir)
    output = finish(start(tmp_path / "run"), status=2)
    assert "Another process is at work in" in output
    assert "Epoch" not in output and "Learning" not in output
    kill(first)
