"""`recbert pretrain` on two workers of this machine, stopped and started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from toy_texts import write_corpus

import keras_recbert

pytestmark = pytest.mark.slow

RECIPE = {
    "model": "bert_tiny",
    "objectives": {"masked_lm": {"concatenate": "cls"}, "next_sentence": {"layer": 1}},
    "steps": 60,
    "checkpoint_every": 20,
    "batch_size": 8,
    "accumulation_steps": 2,
    "sequence_length": 24,
    "warmup_steps": 10,
    "learning_rate": 3e-3,
    "dropout": 0.0,  # of which each device draws its own
    "validation_examples": 8,
    "overrides": {"num_layers": 2, "hidden_dim": 32, "num_heads": 2},
}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipe")
    corpus = write_corpus(folder, num_documents=20)
    path = folder / "recipe.yaml"
    path.write_text(
        yaml.safe_dump({**RECIPE, "corpus": corpus, "validation": {"toy": corpus}})
    )
    return path


def start(recipe, folder, *flags, **environment):
    command = [sys.executable, "-m", "keras_recbert.cli", "pretrain"]
    command += ["--recipe", str(recipe), "--output-dir", str(folder), *flags]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )


def start_workers(recipe, folder, *flags):
    """Two processes that find each other on free ports of this machine."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("localhost", 0))
        other.bind(("localhost", 0))
        ports = [one.getsockname()[1], other.getsockname()[1]]
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    return [
        start(
            recipe,
            folder,
            *("--strategy", "multi_worker", *flags),
            TF_CONFIG=json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(2)
    ]


def finish(processes):
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-3000:]
    return outputs


def weights_of(folder):
    model = keras_recbert.load(folder / "model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.fixture(scope="module")
def left_alone(recipe, tmp_path_factory):
    """A worker whose partner was killed, past the first checkpoint.

    Without accumulation. TensorFlow waits a minute for the partner, in which the first
    test trains.
    """
    folder = tmp_path_factory.mktemp("left_alone") / "run"
    steps = ("--steps", "100000", "--checkpoint-every", "10")
    workers = start_workers(recipe, folder, "--accumulation-steps", "1", *steps)
    try:
        while not (folder / "checkpoints" / "step_00000010").is_dir():
            assert workers[0].poll() is None, workers[0].communicate()[0][-3000:]
            time.sleep(0.02)
        workers[1].send_signal(signal.SIGKILL)
        yield workers[0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


@pytest.mark.usefixtures("left_alone")
def test_workers_equal_one_device_and_go_on_where_they_were(recipe, tmp_path):
    finish([start(recipe, tmp_path / "one")])
    outputs = finish(start_workers(recipe, tmp_path / "two"))
    assert "Done. The results are with the chief." not in outputs[0]
    assert "Done. The results are with the chief." in outputs[1]
    one, two = weights_of(tmp_path / "one"), weights_of(tmp_path / "two")
    for path, value in one.items():
        np.testing.assert_allclose(two[path], value, atol=1e-5, err_msg=path)
    results = [
        json.loads((tmp_path / name / "results.json").read_text())
        for name in ("one", "two")
    ]
    assert results[0]["scores"].keys() == results[1]["scores"].keys()
    for name, score in results[0]["scores"].items():
        assert results[1]["scores"][name] == pytest.approx(score, rel=1e-3), name

    killed = start_workers(recipe, tmp_path / "killed")
    first = tmp_path / "killed" / "checkpoints" / "step_00000020"
    while not first.is_dir():
        assert killed[0].poll() is None, killed[0].communicate()[0][-3000:]
        time.sleep(0.02)
    for process in killed:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    outputs = finish(start_workers(recipe, tmp_path / "killed"))
    assert all("Resuming after step " in output for output in outputs)
    for path, value in weights_of(tmp_path / "killed").items():
        np.testing.assert_array_equal(value, two[path], err_msg=path)


def test_a_worker_whose_partner_died_says_so_in_one_line(left_alone):
    output = left_alone.communicate(timeout=300)[0]
    assert left_alone.returncode == 2, output[-3000:]
    assert "Traceback" not in output
    (line,) = [line for line in output.splitlines() if "recbert: error" in line]
    assert "worker 0 stopped because another worker" in line
    assert "start all of them again. TensorFlow said: " in line
    assert output.splitlines()[-2:][0] == line  # how to see where it arose is last
