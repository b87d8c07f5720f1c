"""`recbert pretrain` on two workers of this machine, stopped and started again."""

import json
import signal
import socket

import numpy as np
import pytest
import yaml
from processes import finish, start, wait_for
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


def start_workers(recipe, folder):
    """Two processes that find each other on free ports of this machine."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("localhost", 0))
        other.bind(("localhost", 0))
        ports = [one.getsockname()[1], other.getsockname()[1]]
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    argv = ("pretrain", "--recipe", recipe, "--output-dir", folder)
    return [
        start(
            *(*argv, "--strategy", "multi_worker"),
            TF_CONFIG=json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(2)
    ]


def weights_of(folder):
    model = keras_recbert.load(folder / "model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.fixture(scope="module")
def runs(recipe, tmp_path_factory):
    """Folder of a run on one device, `one`, and on two workers, `two`.

    One of the workers is killed past the first checkpoint, then both start again. As
    TensorFlow waits a minute for the lost one, the run on one device is meanwhile.

    Returns:
        The folder, how the other worker ended and what it printed, and what the two
        printed that resumed.
    """
    folder = tmp_path_factory.mktemp("runs")
    workers = start_workers(recipe, folder / "two")
    try:
        first = folder / "two" / "checkpoints" / "step_00000020"
        wait_for(workers[0], first.is_dir)
        workers[1].send_signal(signal.SIGKILL)
        one = ("pretrain", "--recipe", recipe, "--output-dir", folder / "one")
        finish(start(*one))
        left_alone = workers[0].communicate(timeout=300)[0]
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.send_signal(signal.SIGKILL)
    resumed = [finish(worker) for worker in start_workers(recipe, folder / "two")]
    return folder, workers[0].returncode, left_alone, resumed


def test_workers_that_resume_equal_one_device(runs):
    folder, _, _, resumed = runs
    assert all("Resuming after step " in output for output in resumed)
    assert "Done. The results are with the chief." not in resumed[0]
    assert "Done. The results are with the chief." in resumed[1]
    one, two = weights_of(folder / "one"), weights_of(folder / "two")
    for path, value in one.items():
        np.testing.assert_allclose(two[path], value, atol=1e-5, err_msg=path)
    results = [
        json.loads((folder / name / "results.json").read_text())
        for name in ("one", "two")
    ]
    assert results[0]["scores"].keys() == results[1]["scores"].keys()
    for name, score in results[0]["scores"].items():
        assert results[1]["scores"][name] == pytest.approx(score, rel=1e-3), name


def test_a_worker_whose_partner_died_says_so_in_one_line(runs):
    _, status, output, _ = runs
    assert status == 2, output[-3000:]
    assert "Traceback" not in output
    (line,) = [line for line in output.splitlines() if "recbert: error" in line]
    assert "worker 0 stopped because another worker" in line
    assert "start all of them again. TensorFlow said: " in line
    assert output.splitlines()[-2:][0] == line  # how to see where it arose is last
