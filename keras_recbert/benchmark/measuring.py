"""Times the candidates of a trial in turn, each in a process of its own."""

import contextlib
import dataclasses
import os
import pathlib
import sys
import time

import numpy as np

from keras_recbert.benchmark.environments import PEERS
from keras_recbert.benchmark.worker_process import Worker, WorkerError
from keras_recbert.core.answering import answering_variables

# What must be free, of what the largest worker so far took, to start another.
MEMORY_RESERVE = 1.3


@dataclasses.dataclass
class Measurement:
    """What was measured of one candidate in one trial.

    Attributes:
        label: str. The candidate.
        seconds: list of float. Median of each turn, in the order of the rounds.
        iterations: int. Steps in a turn.
        items: int. Tokens or texts that a step works off.
        parameters: int.
        peak_bytes: int or None. The most the process ever held.
        rss_bytes: int or None. What it held after its imports.
        ratios: list of float. For a reference: the subject's time divided by its
            own, round by round.
        versions: dict of distribution to version, and of `python`.
        others: list of float. Part of the processors that other processes took
            during each turn; empty where nobody says.
        logits: array `(num_examples, num_logits)` of what was answered, where
            candidates are to answer alike; else None.
        error: str. Why there is nothing, or an empty string.
    """

    label: str
    seconds: list = dataclasses.field(default_factory=list)
    iterations: int = 0
    items: int = 0
    parameters: int = 0
    peak_bytes: int | None = None
    rss_bytes: int | None = None
    versions: dict = dataclasses.field(default_factory=dict)
    ratios: list = dataclasses.field(default_factory=list)
    others: list = dataclasses.field(default_factory=list)
    logits: np.ndarray | None = None
    error: str = ""

    @property
    def median(self):
        return float(np.median(self.seconds))

    @property
    def rate(self):
        """Tokens or texts a second."""
        return self.items / self.median

    @property
    def memory_rise_bytes(self):
        """What building and running took, over the imports."""
        if self.peak_bytes is None or self.rss_bytes is None:
            return None
        return self.peak_bytes - self.rss_bytes

    @property
    def ratio(self):
        """Median, first and third quartile of the ratios."""
        low, middle, high = np.percentile(self.ratios, (25, 50, 75))
        return float(middle), float(low), float(high)


@dataclasses.dataclass(frozen=True)
class Trial:
    """One comparison at one shape, in one precision, in one pass."""

    comparison: object
    shape: object
    precision: str
    pass_: str

    def __str__(self):
        return f"{self.comparison.name} {self.shape} {self.precision} {self.pass_}"

    def candidates(self, pythons):
        """The subject and the references that can run here, the subject first."""
        return [
            candidate
            for candidate in (self.comparison.subject, *self.comparison.references)
            if candidate.worker in pythons
        ]

    def goal(self, label):
        """The goal for the reference of this label, or None."""
        return self.comparison.goal(label, self.shape, self.pass_, self.precision)

    def job(self, candidate, extra):
        """What the worker of a candidate is asked to prepare."""
        job = {**candidate.job, **extra}
        # Positions for rows longer than BERT's.
        for sizes in ("sizes", "overrides"):
            longest = job.get(sizes, {}).get("max_sequence_length", 512)
            if sizes in job and self.shape.sequence_length > longest:
                longest = self.shape.sequence_length
                job[sizes] = {**job[sizes], "max_sequence_length": longest}
        return {
            **job,
            "batch_size": self.shape.batch_size,
            "sequence_length": self.shape.sequence_length,
            "vocabulary_size": 30522,
            "precision": self.precision,
            "pass": self.pass_,
        }


def measure(trial, pythons, rounds, timeout, extra=None, say=lambda text: None):
    """Measures a trial.

    All its workers are alive at once and work one at a time, in an order that moves
    on by one each round, so that what else the machine does hits all alike. If
    memory is short, the references come in several sittings, each with the subject.

    Args:
        trial: `Trial`.
        pythons: dict of worker to interpreter; candidates without one are left out.
        rounds: int. Turns of each candidate.
        timeout: float. Seconds a worker may take for one request.
        extra: dict of worker to dict, added to its jobs.
        say: function of str, told what happens.

    Returns:
        List of `Measurement`, the subject first. One that failed has an `error`.
    """
    subject, *waiting = trial.candidates(pythons)
    measured = {c.label: Measurement(c.label) for c in (subject, *waiting)}
    while True:
        sitting = _Sitting(trial, measured, rounds, say)
        waiting = sitting.run([subject, *waiting], pythons, timeout, extra or {})
        if not waiting or measured[subject.label].error:
            return list(measured.values())


class _Sitting:
    """As many candidates of a trial as fit into memory, timed side by side."""

    def __init__(self, trial, measured, rounds, say):
        self.trial = trial
        self.measured = measured
        self.rounds = rounds
        self.say = say
        self.workers = {}  # by label; those that are ready

    def run(self, candidates, pythons, timeout, extra):
        """Measures; returns the candidates that did not fit."""
        subject = candidates[0].label
        with contextlib.ExitStack() as stack:
            started = []
            for candidate in candidates:  # they import side by side
                peer, python = PEERS[candidate.worker], pythons[candidate.worker]
                own = python == sys.executable
                worker = Worker(
                    candidate.label,
                    peer.script,
                    python,
                    own,
                    timeout,
                    variables=answering_variables() if peer.answers else None,
                )
                started.append(stack.enter_context(worker))
            for index, (candidate, worker) in enumerate(
                zip(candidates, started, strict=True)
            ):
                if len(self.workers) > 1 and not self._fits():
                    self.say(f"{self.trial}: memory is short, the rest comes later")
                    self._rounds(subject)
                    return candidates[index:]
                self.say(f"{self.trial}: preparing {candidate.label}")
                self._attempt(
                    candidate.label,
                    worker,
                    self._prepare,
                    self.trial.job(candidate, extra.get(candidate.worker, {})),
                )
                if subject not in self.workers:
                    return []
            self._rounds(subject)
        return []

    def _rounds(self, subject):
        for number in range(self.rounds):
            labels = list(self.workers)
            start = number % len(labels)
            seconds = {}
            for label in labels[start:] + labels[:start]:
                self.say(f"{self.trial}: round {number + 1} of {self.rounds}, {label}")
                self._attempt(label, self.workers[label], self._turn, seconds)
            if subject not in seconds:
                return
            for label in seconds:
                if label != subject:
                    ratio = seconds[subject] / seconds[label]
                    self.measured[label].ratios.append(ratio)

    def _attempt(self, label, worker, what, argument):
        """Does something with a worker; notes why if it failed."""
        try:
            what(label, worker, argument)
        except WorkerError as error:
            self.say(f"{self.trial}: {label} failed")
            self.measured[label].error = str(error)
            self.workers.pop(label, None)

    def _prepare(self, label, worker, job):
        result = self.measured[label]
        imported = worker.imported()
        facts = worker.prepare(job)
        result.versions = imported["versions"]
        result.rss_bytes = imported["rss_bytes"]
        result.iterations = facts["iterations"]
        result.items = facts["items"]
        result.parameters = facts["parameters"]
        result.peak_bytes = facts["peak_bytes"]
        if "logits" in facts:
            result.logits = np.asarray(facts["logits"])
        self.workers[label] = worker

    def _turn(self, label, worker, seconds):
        result = self.measured[label]
        with Others(worker) as others:
            taken, result.peak_bytes = worker.time(result.iterations)
        if others.share is not None:
            result.others.append(others.share)
        seconds[label] = float(np.median(taken))
        result.seconds.append(seconds[label])

    def _fits(self):
        """Whether memory is left for one more like the largest so far."""
        free = available_bytes()
        if free is None:
            return True
        largest = max(self.measured[label].peak_bytes for label in self.workers)
        return free > MEMORY_RESERVE * largest


class Others:
    """Notes which part of the processors others than a worker take in the meantime."""

    def __init__(self, worker):
        self._worker = worker
        self.share = None

    def __enter__(self):
        self._before = (
            time.monotonic(),
            self._worker.cpu_seconds(),
            busy_seconds(),
        )
        return self

    def __exit__(self, *error):
        start, own, busy = self._before
        if own is None or busy is None or error[0] is not None:
            return
        wall = (time.monotonic() - start) * os.cpu_count()
        taken = busy_seconds() - busy - (self._worker.cpu_seconds() - own)
        self.share = min(1.0, max(0.0, taken / wall))


def busy_seconds():
    """Processor time of everything that ran here so far; None where nobody says."""
    try:
        fields = pathlib.Path("/proc/stat").read_text(encoding="ascii").split()[1:9]
    except FileNotFoundError:  # not Linux
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields)
    busy = user + nice + system + irq + softirq + steal
    return busy / os.sysconf("SC_CLK_TCK")


def available_bytes():
    """Memory that can be had without swapping, or None where nobody says."""
    try:
        with open("/proc/meminfo", encoding="ascii") as meminfo:
            for line in meminfo:
                if line.startswith("MemAvailable:"):
                    return 1024 * int(line.split()[1])
    except FileNotFoundError:  # not Linux
        pass
    return None
