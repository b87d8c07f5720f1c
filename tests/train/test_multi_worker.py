"""One device, two devices and two workers take the same steps; workers end alike."""

import contextlib
import json
import signal
import socket
import time
import types

import numpy as np
import pytest
import tensorflow as tf
from harness import largest_difference
from multi_worker_script import run_cases
from processes import fork

from keras_recbert.train.multi_worker import (
    MultiWorkerStrategy,
    check_workers_agree,
    is_chief,
    read_cluster,
    report_lost_workers,
    shared_batches,
    take_shares,
)
from keras_recbert.train.strategy import make_strategy

TIME_LIMIT = 1800  # seconds; on an idle machine it takes a tenth

# 24 steps each, dropout 0. The names of the losses that a batch logs are in its logs.
EQUAL = {
    "bert": {
        "model": "bert_tiny",
        "accumulation_steps": 2,
        "ema_momentum": 0.9,
        "writes": True,
        "sizes": {"num_layers": 2},
    },
    "swish": {
        "model": "swish_tiny",
        "amsgrad": True,
        "sizes": {"implementation": "xla"},
    },
}
FINITE = {
    "long_bfloat16": {
        "model": "trans_blstm_tiny",
        "epochs": 1,
        "steps": 80,
        "dropout": 0.1,
        "precision": "mixed_bfloat16",
    },
}


def free_ports(number):
    """Ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def tf_configs(*jobs):
    """`TF_CONFIG` of each process of a cluster on this machine."""
    cluster = {}
    for job, port in zip(jobs, free_ports(len(jobs)), strict=True):
        cluster.setdefault(job, []).append(f"127.0.0.1:{port}")
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}
        for task in (
            {"type": job, "index": jobs[:place].count(job)}
            for place, job in enumerate(jobs)
        )
    ]


def run_together(strategy, cases, folders, environments, time_limit=TIME_LIMIT):
    """Runs a process for each folder; ends them in any case.

    Returns:
        List of `(exit status, output)`.
    """
    processes = []
    logs = [folder.with_suffix(".log") for folder in folders]
    try:
        for folder, log, environment in zip(folders, logs, environments, strict=True):
            processes.append(
                fork(run_cases, (strategy, folder, cases), log, **environment)
            )
        end = time.monotonic() + time_limit
        for process in processes:
            process.join(max(1, end - time.monotonic()))
            if process.is_alive():
                text = "\n".join(log.read_text()[-2000:] for log in logs)
                pytest.fail(f"not finished after {time_limit} s:\n{text}")
    finally:
        for process in processes:
            process.kill()
            process.join()
    return [
        (process.exitcode, log.read_text())
        for process, log in zip(processes, logs, strict=True)
    ]


def run_well(*args):
    for status, output in run_together(*args):
        assert status == 0 and "finished" in output, output[-4000:]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Folder of the results of all cases: `one`, `two`, `worker` and `chief`."""
    folder = tmp_path_factory.mktemp("trained")
    equal, finite = (
        [{"run": "train", "name": name, **case} for name, case in cases.items()]
        for cases in (EQUAL, FINITE)
    )
    run_well("one_device", equal, [folder / "one"], [{}])
    run_well("mirrored", equal, [folder / "two"], [{}])
    cases = [*equal, *finite, {"run": "disagree", "name": "said"}]
    workers = [folder / "worker", folder / "chief"]
    run_well("multi_worker", cases, workers, tf_configs("worker", "chief"))
    return folder


def results(folder, name):
    """Weights and logs of a case."""
    weights = np.load(folder / f"{name}.npz")
    logs = json.loads((folder / f"{name}.json").read_text())
    return [weights[key] for key in weights.files], logs


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL)
def test_two_devices_and_two_workers_equal_one(trained, name):
    expected, logs = results(trained / "one", name)
    assert logs["replicas"] == 1 and logs["iterations"] == 24
    assert logs["moved"] > 0.01
    assert any("token_embedding" in path for path in logs["paths"])  # the tied table
    for who in ("two", "worker", "chief"):
        weights, others = results(trained / who, name)
        assert others["replicas"] == 2 and others["iterations"] == 24
        differences = {
            path: largest_difference(a, b)
            for path, a, b in zip(logs["paths"], weights, expected, strict=True)
        }
        worst = max(differences, key=differences.get)
        print(f"{name} {who}: {worst} differs by {differences[worst]:.1e}")
        assert differences[worst] <= 1e-5
        # All of an epoch, training and validation.
        assert others["history"].keys() == logs["history"].keys()
        for key, values in logs["history"].items():
            assert largest_difference(others["history"][key], values) <= 1e-5, key
        for key, value in logs["scores"].items():
            assert abs(others["scores"][key] - value) <= 1e-5, key
        assert len(others["batches"]) == len(logs["batches"])
        for key in logs["batches"][0]:
            if key.endswith("loss"):
                values = [
                    [batch[key] for batch in x["batches"]] for x in (others, logs)
                ]
                assert largest_difference(*values) <= 1e-5, key


@pytest.mark.slow
@pytest.mark.parametrize("name", [*EQUAL, *FINITE])
def test_workers_log_the_same_to_the_last_bit(trained, name):
    first, second = (results(trained / who, name) for who in ("worker", "chief"))
    assert first[1] == second[1]  # so that they decide alike, such as when to freeze
    assert all((a == b).all() for a, b in zip(first[0], second[0], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", FINITE)
def test_80_steps_stay_finite(trained, name):
    weights, logs = results(trained / "chief", name)
    assert len(logs["batches"]) == 80
    assert all(np.isfinite(list(batch.values())).all() for batch in logs["batches"])
    assert all(np.isfinite(weight).all() for weight in weights)
    assert logs["batches"][-1]["loss"] < logs["batches"][0]["loss"]


@pytest.mark.slow
def test_only_the_chief_writes(trained):
    written = {"epoch_0.weights.h5", "epoch_1.weights.h5", "model.keras"}
    for who in ("one", "two", "chief"):
        names = {path.name for path in (trained / who).iterdir()}
        assert written <= names and "checkpoint.index" in names
    names = {path.name for path in (trained / "worker").iterdir()}
    assert all(name.endswith((".npz", ".json", ".txt")) for name in names)


@pytest.mark.slow
def test_workers_that_begin_differently_are_told(trained):
    for who in ("worker", "chief"):
        said = (trained / who / "said.txt").read_text()
        assert "different values of masked_lm/bias" in said
        assert "the same checkpoint" in said


@pytest.mark.slow
def test_a_killed_chief_ends_the_worker_with_a_clear_error(tmp_path):
    """The other way round: tests/train/test_pretraining_workers.py."""
    folders = [tmp_path / "chief", tmp_path / "worker"]
    cases = [{"run": "die", "name": "dead", "worker": 0}]
    configs = tf_configs("worker", "worker")
    ended = run_together("multi_worker", cases, folders, configs, 600)
    assert ended[0][0] == -signal.SIGKILL
    status, output = ended[1]
    assert status == 1, output[-4000:]
    assert "RuntimeError: worker 1 stopped because another" in output
    assert "start all of them again" in output


VALID = {
    "cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},
    "task": {"type": "worker", "index": 1},
}


def test_the_chief_comes_first():
    assert read_cluster(json.dumps(VALID)) == (VALID["cluster"]["worker"], 1)
    cluster = {"worker": ["a:1", "b:2"], "chief": ["c:3"]}
    task = {"type": "worker", "index": 1}
    text = json.dumps({"cluster": cluster, "task": task})
    assert read_cluster(text) == (["c:3", "a:1", "b:2"], 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "environment variable TF_CONFIG, such as .* It is not set"),
        ("{'cluster'", "TF_CONFIG must be JSON. Received: .*'cluster'.* A valid one"),
        ("[]", "needs a `cluster`, a mapping of chief and worker .*cluster=None"),
        ({"cluster": {"ps": ["a:1"]}}, r"mapping of .*cluster=\{'ps'"),
        ({"cluster": {"worker": "a:1"}}, "list of addresses for worker.*'a:1'"),
        ({"cluster": {"worker": ["a:1", "b"]}}, "host:port.*'b' in worker"),
        ({"cluster": {"worker": ["a:1", "b:0"]}}, "ports from 1 to 65535.*'b:0'"),
        ({"cluster": {"worker": ["a:1", "a:1"]}}, "another address for each worker"),
        ({"cluster": {"worker": ["a:1"]}}, "two workers or more .*strategy='auto'"),
        ({"cluster": {"chief": ["a:1", "b:1"]}}, "one chief at most"),
        ({"task": None}, "`task` whose `type` is one of worker.*task=None"),
        ({"task": {"type": "chief", "index": 0}}, "`type` is one of worker"),
        ({"task": {"type": "worker", "index": 2}}, "from 0 to 1, .*index=2"),
        ({"task": {"type": "worker", "index": "0"}}, "`index` is from 0 .*index='0'"),
        ({"task": {"type": "worker"}}, "`index` is from 0 to 1.*index=None"),
    ],
)
def test_a_wrong_tf_config_is_told_before_work_starts(monkeypatch, text, message):
    if isinstance(text, dict):
        text = json.dumps({**VALID, **text})
    with pytest.raises(ValueError, match=message):
        read_cluster(text)
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if text is not None:
        monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=message):
        make_strategy("multi_worker")


def test_a_port_in_use_is_told(monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        cluster = {"worker": [f"127.0.0.1:{port}", "127.0.0.2:1"]}
        task = {"type": "worker", "index": 0}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
        message = f"uses port {port} of TF_CONFIG.*have two the same index"
        with pytest.raises(RuntimeError, match=message):
            make_strategy("multi_worker")


def test_a_strategy_made_too_late_is_told(monkeypatch):
    assert int(tf.constant(1) + 1) == 2  # TensorFlow computes
    monkeypatch.setenv("TF_CONFIG", tf_configs("worker", "worker")[0]["TF_CONFIG"])
    with pytest.raises(RuntimeError, match="before TensorFlow computes anything"):
        make_strategy("multi_worker")


@pytest.mark.parametrize("known", [True, False])
def test_shares_are_the_rows_of_a_batch_in_order(known):
    batches = tf.data.Dataset.range(24).batch(8, drop_remainder=known)
    batches = batches.map(lambda x: ({"x": x}, tf.stack([x, -x], axis=1)))
    first = [y.tolist() for _, y in take_shares(batches, 4, 0, 1).as_numpy_iterator()]
    assert first == [[[n, -n], [n + 1, -n - 1]] for n in (0, 8, 16)]
    last = take_shares(batches, 4, 2, 2)
    assert [x["x"].tolist() for x, _ in last.as_numpy_iterator()] == [
        [n, n + 1] for n in (4, 6, 12, 14, 20, 22)
    ]
    # Keras counts the steps of an epoch by it; two devices take two elements a step.
    assert int(take_shares(batches, 4, 0, 1).cardinality()) == 3
    assert int(last.cardinality()) == tf.data.UNKNOWN_CARDINALITY


def test_batches_that_cannot_be_shared_are_told():
    def pairs(number, size, known=False):
        numbers = tf.data.Dataset.range(number)
        return tf.data.Dataset.zip(numbers, numbers).batch(size, drop_remainder=known)

    one = tf.distribute.get_strategy()
    batches = pairs(14, 7)
    assert shared_batches(batches, one) is batches
    two = types.SimpleNamespace(num_replicas_in_sync=2)
    with pytest.raises(ValueError, match="2 devices must share.*: 7 rows. Try 6"):
        shared_batches(pairs(14, 7, known=True), two)
    with pytest.raises(tf.errors.InvalidArgumentError, match="multiple of 2 examples"):
        list(shared_batches(batches, two))
    assert [len(x) for x, _ in shared_batches(pairs(10, 8), two)] == [8, 2]


def test_other_strategies_have_one_chief_and_lose_nobody():
    strategy = tf.distribute.get_strategy()
    assert not isinstance(strategy, MultiWorkerStrategy)
    assert is_chief(strategy)
    check_workers_agree([], strategy)
    with (
        pytest.raises(tf.errors.UnavailableError, match="a disk"),
        report_lost_workers(strategy),
    ):
        raise tf.errors.UnavailableError(None, None, "a disk")
