import contextlib
import os
import sys
import time

import numpy as np
import pytest
from toy_texts import reviews, tiny_model

from keras_recbert import count_parameters
from keras_recbert.benchmark.comparisons import sizes_of
from keras_recbert.benchmark.worker_process import WORKERS, Worker, WorkerError

LAYER = {
    "kind": "layer",
    "hidden_dim": 6,
    "batch_size": 2,
    "sequence_length": 5,
    "arguments": {"units": 6},
    "precision": "float32",
    "pass": "train",
}
MODEL = {
    "kind": "model",
    "name": "bert_tiny",
    "batch_size": 2,
    "sequence_length": 5,
    "vocabulary_size": 50,
    "precision": "float32",
    "pass": "train",
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Threads that wait for each other in a loop crawl on a busy machine."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def start(tmp_path):
    """Starts a worker from the lines of its `load` and `prepare`."""
    workers = []

    def start(load="return []", prepare="return (lambda: None), {}", timeout=60):
        script = tmp_path / f"worker_{len(workers)}.py"
        script.write_text(
            f"import os, sys, time\nsys.path.insert(0, {str(WORKERS)!r})\n"
            "from worker_protocol import serve\n"
            f"def load():\n    {load}\n"
            f"def prepare(job):\n    {prepare}\n"
            "serve(load, prepare)\n"
        )
        worker = Worker("some layer", script, sys.executable, timeout=timeout)
        workers.append(worker)
        return worker

    yield start
    for worker in workers:
        worker.close()


def is_alive(worker):
    return worker._process.poll() is None


# The protocol --------------------------------------------------------------------


def test_worker_answers_and_reports_its_memory(start):
    held = "kept = bytearray(50_000_000); return (lambda: len(kept)), {'items': 7}"
    worker = start(load="return ['numpy']", prepare=held)
    imported = worker.imported()
    assert set(imported["versions"]) == {"python", "numpy"}
    facts = worker.prepare({})
    assert facts["items"] == 7
    assert facts["iterations"] == 200  # a step that takes no time
    seconds, peak_bytes = worker.time(3)
    assert len(seconds) == 3
    if sys.platform == "linux":
        assert peak_bytes - imported["rss_bytes"] > 40_000_000
        assert worker.cpu_seconds() > 0


def test_long_steps_run_once_in_a_turn(start):
    worker = start(prepare="return (lambda: time.sleep(0.4)), {}")
    worker.imported()
    assert worker.prepare({})["iterations"] == 1


def test_libraries_that_print_or_read_do_not_disturb(start):
    worker = start(
        load="print('hello'); os.system('echo again'); return []",
        prepare="print(sys.stdin.read()); return (lambda: print('step')), {}",
    )
    worker.imported()
    worker.prepare({})
    assert len(worker.time(2)[0]) == 2


def test_parents_python_path_stays_out_of_other_environments(start, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    script = "assert 'PYTHONPATH' not in os.environ; return []"
    with pytest.raises(WorkerError, match="AssertionError"):
        start(load=script).imported()
    worker = start(load=script)
    other = Worker("x", worker._process.args[1], sys.executable, own=False)
    with other:
        other.imported()


# What goes wrong -------------------------------------------------------------------


def test_failure_is_told_with_the_end_of_the_traceback(start):
    worker = start(prepare="raise KeyError('no such size')")
    worker.imported()
    with pytest.raises(WorkerError) as caught:
        worker.prepare({})
    message = str(caught.value)
    assert "The worker of some layer could not build and warm up" in message
    assert "KeyError: 'no such size'" in message
    assert "in prepare" in message  # of the traceback
    assert not is_alive(worker)


def test_death_is_told_with_its_status(start):
    worker = start(load="print('almost', file=sys.stderr); os._exit(3)")
    with pytest.raises(WorkerError, match="ended with status 3 when .* import") as why:
        worker.imported()
    assert "almost" in str(why.value)


def test_missing_framework_is_told(start):
    with pytest.raises(WorkerError, match="No module named 'no_such_framework'"):
        start(load="import no_such_framework").imported()


def test_worker_that_does_not_answer_is_ended(start):
    worker = start(prepare="time.sleep(60)", timeout=2)
    worker.imported()
    with pytest.raises(WorkerError, match="took longer than 2 seconds to build"):
        worker.prepare({})
    assert not is_alive(worker)


def test_no_process_outlives_its_context(start):
    with start(prepare="return (lambda: time.sleep(60)), {}") as worker:
        worker.imported()
        assert is_alive(worker)
    assert not is_alive(worker)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_worker_ends_by_itself_when_its_parent_is_gone(start):
    worker = start()
    worker.imported()
    worker._process.stdin.close()  # what the system does when the parent dies
    deadline = time.monotonic() + 30
    while is_alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert worker._process.poll() == 0


# The frameworks ----------------------------------------------------------------------


def facts_of(*scripts_and_jobs):
    """Facts of workers that import side by side, each after one turn of two steps."""
    facts = []
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(Worker(script, script, sys.executable, timeout=120))
            for script, _ in scripts_and_jobs
        ]
        for worker, (_, job) in zip(workers, scripts_and_jobs, strict=True):
            worker.imported()
            facts.append(worker.prepare(job))
            assert len(worker.time(2)[0]) == 2
    return facts


@pytest.mark.slow  # three processes that load TensorFlow or Torch
def test_bilstm_is_the_same_size_in_every_framework():
    pytest.importorskip("torch")
    ours, theirs, torchs = facts_of(
        ("recbert_worker.py", {**LAYER, "name": "BidirectionalLSTM"}),
        ("keras_worker.py", {**LAYER, "name": "bidirectional_lstm"}),
        ("torch_worker.py", {**LAYER, "name": "lstm"}),
    )
    assert ours["parameters"] == theirs["parameters"] == 2 * 4 * 6 * (6 + 6 + 1)
    # Torch has two biases a gate, which add up to one.
    assert torchs["parameters"] == ours["parameters"] + 2 * 4 * 6
    assert ours["items"] == theirs["items"] == torchs["items"] == 10


def test_bert_is_the_same_size_on_torch_without_anything_of_ours(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    for name in ("tensorflow", "keras", "keras_recbert"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('not for torch')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = {**MODEL, "sizes": sizes_of("bert_tiny", vocabulary_size=50)}
    (facts,) = facts_of(("torch_worker.py", job))
    head = 2 * 128 + 2
    assert (
        facts["parameters"] == count_parameters("bert_tiny", vocabulary_size=50) + head
    )


@pytest.mark.slow  # three processes that load TensorFlow or Torch
def test_teacher_gives_the_logits_of_torch(tmp_path, monkeypatch):
    """In both orders of the batches, of texts of several lengths."""
    pytest.importorskip("transformers")
    preset = tmp_path / "preset"
    model = tiny_model(pooling="first", label_names=["bad", "good"])
    model.save_preset(preset)
    model.save_huggingface(tmp_path / "weights")
    texts = reviews(17)[0]
    job = {
        "kind": "teacher",
        "teacher": str(preset),
        "weights": str(tmp_path / "weights"),
        "columns": {"text": texts},
        "batch_size": 4,
        "threads": 1,
        "precision": "float32",
    }
    ours, in_order, by_length = facts_of(
        ("recbert_worker.py", job),
        ("torch_teacher_worker.py", {**job, "sorted": False}),
        ("torch_teacher_worker.py", {**job, "sorted": True}),
    )
    expected = model.predict(texts, verbose=0)
    for facts in (ours, in_order, by_length):
        np.testing.assert_allclose(facts["logits"], expected, atol=1e-5)
        assert facts["items"] == 17
