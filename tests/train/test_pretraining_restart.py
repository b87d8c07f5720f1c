"""`kill -9` at any moment, the same command again, and the same weights bit for bit."""

import json
import random
import resource
import signal
import time

import numpy as np
import processes
import pytest
import yaml
from processes import finish, wait_for
from toy_texts import write_corpus

import keras_recbert

pytestmark = pytest.mark.slow

NUM_KILLS, EVERY = 4, 5
RECIPE = {
    "model": "swish_tiny",
    "objectives": {
        "masked_lm": {"concatenate": "next_sentence"},
        "next_sentence": {"layer": 1},
    },
    "steps": 80,
    "checkpoint_every": EVERY,
    "batch_size": 4,
    "accumulation_steps": 2,
    "sequence_length": 24,
    "warmup_steps": 8,
    "ema_momentum": 0.9,
    "validation_examples": 8,
    "precision": "bfloat16",
    "overrides": {"num_layers": 2, "hidden_dim": 32, "num_heads": 2},
}


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Function that starts `recbert pretrain` in a folder as a process."""
    folder = tmp_path_factory.mktemp("restart")
    corpus = write_corpus(folder, num_documents=20)
    recipe = folder / "recipe.yaml"
    recipe.write_text(
        yaml.safe_dump({**RECIPE, "corpus": corpus, "validation": {"toy": corpus}})
    )

    def run(output, *flags):
        argv = ("--recipe", recipe, "--output-dir", output, *flags)
        return processes.start("pretrain", *argv)

    run.corpus = folder / "corpus"
    return run


def weights_of(folder):
    model = keras_recbert.load(folder / "model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


def test_killed_at_any_moment_the_weights_are_the_same(start, tmp_path):
    begin = time.perf_counter()
    process = start(tmp_path / "whole")
    wait_for(process, (tmp_path / "whole/checkpoints/step_00000005").is_dir)
    first = time.perf_counter() - begin
    finish(process)
    rest = time.perf_counter() - begin - first

    # At random, but not after more than two checkpoints, however busy the machine is.
    random.seed(0)
    killed_at = [0]
    checkpoints = tmp_path / "killed" / "checkpoints"
    for number in range(NUM_KILLS):
        process = start(tmp_path / "killed")
        following, second = (
            checkpoints / f"step_{killed_at[-1] + EVERY * more:08d}" for more in (1, 2)
        )
        if number % 2:
            wait_for(process, following.is_dir)
            wait_for(process, second.is_dir, random.uniform(0, rest / 8))
        else:
            wait_for(process, following.is_dir, random.uniform(0.4, 1.1) * first)
        assert process.poll() is None, process.communicate()[0][-3000:]
        process.send_signal(signal.SIGKILL)
        process.communicate()
        names = [path.name for path in checkpoints.glob("step_*")]
        steps = [int(name.removeprefix("step_")) for name in names]
        killed_at.append(max(steps, default=0))
    print("latest checkpoint at each kill:", *killed_at[1:])
    assert len(set(killed_at)) > NUM_KILLS // 2, killed_at
    finish(start(tmp_path / "killed"))

    expected, found = weights_of(tmp_path / "whole"), weights_of(tmp_path / "killed")
    assert expected.keys() == found.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)
    results = [
        json.loads((tmp_path / name / "results.json").read_text())
        for name in ("whole", "killed")
    ]
    assert results[0]["scores"] == results[1]["scores"]
    assert results[0]["history"]["loss"] == results[1]["history"]["loss"]


def test_a_full_disk_ends_with_what_to_do(start, tmp_path):
    """Files may not grow to the size of a checkpoint; then, resumed, not at all."""
    checkpoints = tmp_path / "run" / "checkpoints"
    last = 0
    for small in (False, True):
        process = start(tmp_path / "run")
        newest = checkpoints / f"step_{last + EVERY:08d}"
        wait_for(process, newest.is_dir)
        size = (newest / "variables.data-00000-of-00001").stat().st_size
        limit = 64 if small else size - 64
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        output = finish(process, status=2)
        if small:
            assert f"Resuming after step {last}." in output
        held = sorted(path.name for path in checkpoints.iterdir())
        last = int(held[-1].removeprefix("step_"))
        assert f"The run in {tmp_path / 'run'} has ended: " in output
        checkpoint = f"The checkpoint of step {last + EVERY} could not be written: "
        assert (checkpoint in output) is not small
        assert f"The checkpoint of step {last} is intact: make room" in output
        assert not [name for name in held if not name.startswith("step_")]


def test_a_vanished_data_file_is_named(start, tmp_path):
    flags = ("--steps", "10")
    shard = next(start.corpus.glob("*.tfrecord"))
    hidden = shard.with_suffix(".hidden")
    shard.rename(hidden)
    try:
        output = finish(start(tmp_path / "run", *flags), status=2)
    finally:
        hidden.rename(shard)
    assert shard.name in output
    assert "Traceback" not in output
    assert not (tmp_path / "run").exists()
