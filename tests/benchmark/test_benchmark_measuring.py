import itertools

import pytest

from keras_recbert.benchmark import measuring
from keras_recbert.benchmark.comparisons import Candidate, Comparison, Goal, Shape
from keras_recbert.benchmark.measuring import Trial, available_bytes, measure
from keras_recbert.benchmark.worker_process import WorkerError

PYTHONS = dict.fromkeys(("recbert", "keras", "torch"), "python")


class FakeWorker:
    """Answers what its job says; notes in `turns` who was asked when."""

    turns, alive = [], []

    def __init__(self, label, script, python, own, timeout, variables):
        assert variables is None  # the candidates train
        self.label = label

    def __enter__(self):
        self.alive.append(self.label)
        return self

    def __exit__(self, *_):
        self.alive.remove(self.label)

    def imported(self):
        return {"versions": {"python": "3"}, "rss_bytes": 100}

    def prepare(self, job):
        if "broken" in job:
            raise WorkerError(f"The worker of {self.label} broke.\nmore")
        self.seconds = iter(job["seconds"])
        return {"iterations": 2, "items": 40, "parameters": 9, "peak_bytes": 1000}

    def time(self, iterations):
        self.turns.append(self.label)
        second = next(self.seconds)
        if second is None:
            raise WorkerError(f"The worker of {self.label} died.")
        return [second] * iterations, 1100

    def cpu_seconds(self):
        return 0.0


@pytest.fixture
def fake_workers(monkeypatch):
    monkeypatch.setattr(measuring, "Worker", FakeWorker)
    monkeypatch.setattr(FakeWorker, "turns", [])
    monkeypatch.setattr(FakeWorker, "alive", [])
    return FakeWorker


def trial(*jobs):
    """A trial with candidates a, b, c of these jobs."""
    workers = ("recbert", "keras", "torch")
    subject, *references = (
        Candidate(label, worker, {"seconds": itertools.cycle([1.0]), **job})
        for label, worker, job in zip("abc", workers, jobs, strict=False)
    )
    goals = (Goal("b", 0.5),)
    shape = Shape(2, 20)
    comparison = Comparison("x", "x", subject, tuple(references), goals, (shape,))
    return Trial(comparison, shape, "float32", "train")


def test_ratio_is_the_median_of_the_rounds(fake_workers):
    some = trial(
        {"seconds": [1.0, 2.0, 3.0, 9.0, 5.0]},
        {"seconds": [2.0, 4.0, 4.0, 9.0, 50.0]},
    )
    a, b = measure(some, PYTHONS, rounds=5, timeout=1)
    # 0.5, 0.5, 0.75, 1.0, 0.1: not the quotient of the medians, 3 / 4.
    assert b.ratio == (0.5, 0.5, 0.75)
    assert a.median == 3.0
    assert a.rate == pytest.approx(40 / 3)
    assert (a.ratios, a.iterations, a.parameters) == ([], 2, 9)
    assert (a.peak_bytes, a.memory_rise_bytes) == (1100, 1000)


def test_candidates_work_in_turn_and_start_in_turn(fake_workers):
    measure(trial({}, {}, {}), PYTHONS, rounds=3, timeout=1)
    assert "".join(fake_workers.turns) == "abc" + "bca" + "cab"
    assert fake_workers.alive == []


def test_candidate_without_an_environment_is_left_out(fake_workers):
    measured = measure(trial({}, {}, {}), {"recbert": "p", "torch": "p"}, 1, 1)
    assert [one.label for one in measured] == ["a", "c"]


def test_reference_that_fails_leaves_the_others(fake_workers):
    some = trial({}, {"broken": True}, {"seconds": [1.0, None]})
    a, b, c = measure(some, PYTHONS, rounds=3, timeout=1)
    assert (len(a.seconds), b.seconds, len(c.seconds)) == (3, [], 1)
    assert b.error == "The worker of b broke.\nmore"
    assert c.error == "The worker of c died."
    assert c.ratios == [1.0]


@pytest.mark.parametrize("job", [{"broken": True}, {"seconds": [None]}])
def test_subject_that_fails_ends_the_trial(fake_workers, job):
    a, b = measure(trial(job, {}), PYTHONS, rounds=3, timeout=1)
    assert a.error and not a.seconds and not b.ratios
    assert fake_workers.alive == []


def test_short_memory_brings_the_subject_again(fake_workers, monkeypatch):
    monkeypatch.setattr(measuring, "available_bytes", lambda: 1299)  # 1.3 x 1000
    said = []
    some = trial({}, {}, {})
    a, b, c = measure(some, PYTHONS, rounds=2, timeout=1, say=said.append)
    assert "".join(fake_workers.turns) == "abba" + "acca"
    assert (len(a.seconds), len(b.ratios), len(c.ratios)) == (4, 2, 2)
    assert any("memory is short" in text for text in said)
    fake_workers.turns.clear()
    monkeypatch.setattr(measuring, "available_bytes", lambda: 1301)
    measure(some, PYTHONS, rounds=1, timeout=1)
    assert "".join(fake_workers.turns) == "abc"


def test_job_says_where_and_how(fake_workers):
    sizes = {"max_sequence_length": 512, "num_layers": 2}
    candidate = Candidate("a", "torch", {"kind": "model", "sizes": sizes})
    some = trial({}, {})
    long = Trial(some.comparison, Shape(2, 700), "bfloat16", "forward")
    job = long.job(candidate, {"texts": ["x"]})
    assert job["sizes"] == {"max_sequence_length": 700, "num_layers": 2}
    assert sizes["max_sequence_length"] == 512
    assert (job["batch_size"], job["sequence_length"]) == (2, 700)
    assert (job["precision"], job["pass"]) == ("bfloat16", "forward")
    assert job["texts"] == ["x"]
    assert some.job(candidate, {})["sizes"] == sizes


def test_share_of_others_is_what_the_worker_did_not_take(fake_workers, monkeypatch):
    clock = iter([10.0, 12.0] * 9)
    monkeypatch.setattr(measuring.time, "monotonic", lambda: next(clock))
    busy = itertools.count(100.0, 1.5)
    monkeypatch.setattr(measuring, "busy_seconds", lambda: next(busy))
    monkeypatch.setattr(measuring.os, "cpu_count", lambda: 2)
    cpu = itertools.count(0.0, 0.5)
    monkeypatch.setattr(fake_workers, "cpu_seconds", lambda self: next(cpu))
    (a,) = measure(trial({}), PYTHONS, rounds=1, timeout=1)
    assert a.others == [0.25]  # (1.5 - 0.5) of 2 x 2 seconds


def test_available_memory_is_read():
    assert available_bytes() is None or 2**20 < available_bytes() < 2**50
