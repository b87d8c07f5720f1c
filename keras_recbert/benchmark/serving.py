"""`recbert benchmark serving`: requests a second, latency, overhead and memory."""

import contextlib
import pathlib
import sys
import tempfile

import numpy as np

from keras_recbert.benchmark.environments import PEERS, find_environments, installed
from keras_recbert.benchmark.load import (
    body_of,
    mean_of_passes,
    measure_turn,
    run_load,
)
from keras_recbert.benchmark.picture import check_matplotlib
from keras_recbert.benchmark.progress import Progress
from keras_recbert.benchmark.report import describe_device
from keras_recbert.benchmark.server_answers import ask_all, check_agreement
from keras_recbert.benchmark.server_process import ServerProcess
from keras_recbert.benchmark.serving_report import save_report
from keras_recbert.benchmark.serving_systems import OURS, PEER, list_systems
from keras_recbert.benchmark.soak import soak
from keras_recbert.benchmark.worker_process import Worker, WorkerError
from keras_recbert.core.answering import answering_variables
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place
from keras_recbert.core.machine import num_cores
from keras_recbert.data.rows import TEXT, TableRows, as_text
from keras_recbert.serving.text_columns import choose_text_columns
from keras_recbert.train.teacher import find_model

TOGETHER = 32  # texts of a request that is compared with a call of the SavedModel
NUM_DIRECT = {TOGETHER: 256, 1: 64}  # texts of a step without HTTP, by its batches
WARM_UP = 2.0  # seconds of load before the first round
DIRECT = "answering without HTTP"
OUR_VERSIONS = ("keras_recbert", "tensorflow", "tensorflow-text", "starlette")
HTTP_VERSIONS = ("uvicorn", "uvloop", "httptools")  # the last two if they are there


def measure_serving(config):
    """Measures the server of this zoo, beside one of FastAPI and torch.

    Every server and every model that is called directly is a process of its own; they
    take turns, in rounds, in an order that moves on by one each round.

    Args:
        config: `keras_recbert.config.ServingBenchmarkConfig`.

    Returns:
        List of `serving_systems.System`.

    Raises:
        ValueError, OSError, ImportError: if an option is wrong or something is not
            installed, before any work.
        RuntimeError: if both servers do not answer alike; or at the end, if a system
            failed, when everything else is written.
    """
    check_matplotlib()
    modules = ("starlette", "uvicorn", "prometheus_client", "tensorflow_serving")
    check_installed("Serving over HTTP", "serve", *modules)
    model = find_model(config.model)
    texts = read_texts(config.texts, config.text_column, config.num_texts)
    output_dir = pathlib.Path(config.output_dir)
    check_place(output_dir)
    environments, missing = find_environments(
        ("export", "labels", "torch_server"),
        {"torch_server": config.torch_python},
        output_dir / "environments",
        config.install_peers,
    )
    progress = Progress()
    for line in (*describe_device(), *missing.values()):
        progress.say(line)
    output_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".serving-", dir=output_dir) as folder:
        folder = pathlib.Path(folder).absolute()
        systems = list_systems(config.precision, folder)
        for system in systems:
            _find_python(system, environments, missing)
        run = _Run(config, texts, systems, progress)
        run.export(model)
        with contextlib.ExitStack() as stack:
            run.load(stack)
            run.call_directly()
            if config.soak_minutes:
                save_report(output_dir, run.facts(), systems)  # a soak may be stopped
                run.soak()
    facts = run.facts()
    progress.say(save_report(output_dir, facts, systems))
    errors = [one.error for one in systems if one.error]
    failed = [error for error in errors if not error.startswith("not measured")]
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(systems)} systems failed. The first: {failed[0]}"
        )
    return systems


def read_texts(path, text_column, most):
    """Reads what is asked: texts from all over a file.

    Args:
        path: str or path, a table or a text file, see `TableRows`.
        text_column: str or None.
        most: int. How many are taken, in even steps; empty ones are left out.

    Returns:
        List of str.

    Raises:
        FileNotFoundError, ValueError: if the file cannot be read, or holds no text.
    """
    table = TableRows(path)
    wanted = () if text_column is None or table.kind == TEXT else (text_column,)
    columns = choose_text_columns(path, table.columns(), wanted)
    if len(columns) > 1:
        raise ValueError(
            f"A request has one text, and {path} has texts in the columns "
            f"{', '.join(columns)}. Name one: text_column (--text-column)."
        )
    found = (as_text(row[columns[0]]) for _, row in table.rows())
    texts = [text for text in found if text.strip()]
    if not texts:
        raise ValueError(f"{path} holds no text.")
    return _from_all_over(texts, most)


def _from_all_over(texts, most):
    return texts[:: max(1, len(texts) // most)][:most]


def _find_python(system, environments, missing):
    key = "labels" if system.kind == OURS else "torch_server"
    if key in missing:
        needs = " ".join(f'"{one}"' for one in PEERS[key].requirements)
        system.error = f"not measured: pip install {needs}"
        return
    system.python = environments[key]
    wanted = OUR_VERSIONS if system.kind == OURS else PEERS[key].distributions
    system.versions = installed(system.python, (*wanted, *HTTP_VERSIONS))


class _Run:
    """What a run measures, step by step.

    Args:
        config: `keras_recbert.config.ServingBenchmarkConfig`.
        texts: list of str.
        systems: list of `System`.
        progress: `Progress`.
    """

    def __init__(self, config, texts, systems, progress):
        self.config = config
        self.texts = texts
        self.direct_texts = {
            size: _from_all_over(texts, most) for size, most in NUM_DIRECT.items()
        }
        self.systems = systems
        self.agreement, self.soaked = [], None
        self._progress = progress
        self._cores = num_cores()
        self._threads = max(1, self._cores // config.num_batch_threads)  # of a call
        self._servers = {}  # `ServerProcess` by system

    def _ready(self, kind=None):
        return [
            one for one in self.systems if not one.error and kind in (None, one.kind)
        ]

    def export(self, model):
        """Writes the model in all forms.

        Raises:
            ValueError: if it is no classifier, or has no SavedModel.
        """
        self._progress.say(f"Exporting {model} ...")
        forms = {one.form: str(one.folder) for one in self._ready()}
        with self._worker("export", "export_worker.py", sys.executable) as worker:
            worker.imported()
            facts = worker.prepare({"model": str(model), "forms": forms})
        for system in self._ready():
            if facts["task"] != "classifier" or (
                system.kind == OURS and system.form in facts["errors"]
            ):
                raise ValueError(
                    "`model` must be a classifier of one text. Received: "
                    f"{model}, {facts['task'] or 'an encoder without a head'}. "
                    f"{facts['errors'].get(system.form, '')}".rstrip()
                )
            if system.form in facts["errors"]:
                system.error = f"not measured: {facts['errors'][system.form]}"

    def _worker(self, label, script, python, threads=None, variables=None):
        own = python == sys.executable
        timeout = self.config.timeout
        return Worker(label, script, python, own, timeout, threads, variables)

    def load(self, stack):
        """Starts the servers, checks what they answer, and loads them in turn.

        Those of this zoo stay until `stack` ends.
        """
        config = self.config
        with contextlib.ExitStack() as peers:
            for system in self._ready():  # they import side by side
                server = ServerProcess(
                    system.server_name,
                    system.command(config),
                    system.python == sys.executable,
                    None if system.kind == OURS else self._threads,
                    config.timeout,
                )
                owner = stack if system.kind == OURS else peers
                self._servers[system] = owner.enter_context(server)
            answers = {}
            for system in self._ready():
                self._progress.say(f"Loading and asking {system.server_name}")
                with _noting(system):
                    self._servers[system].wait()
                    url = self._servers[system].url + system.path
                    asked = system.server_name, url, self.texts, config.clients
                    answers[system] = ask_all(*asked)
            self._compare(answers)
            seconds = min(WARM_UP, config.seconds)
            for system in self._ready():
                self._progress.say(f"Warming up {system.server_name}")
                with _noting(system):
                    self._turn(system, seconds)
            for number, alive in self._rounds():
                for system in alive:
                    self._say_round(number, system.server_name)
                    with _noting(system):
                        turn = self._turn(system, config.seconds)
                        system.turns.append(turn)

    def _compare(self, answers):
        alive = [one for one in answers if not one.error]
        for ours in (one for one in alive if one.kind == OURS):
            for peer in (one for one in alive if one.kind == PEER):
                if ours.precision == peer.precision:
                    self.agreement.append(
                        check_agreement(
                            self.texts,
                            ours.precision,
                            (ours.server_name, answers[ours]),
                            (peer.server_name, answers[peer]),
                        )
                    )

    def _job(self, system, groups):
        """A job of the load generator: a request for each group of texts."""
        url = self._servers[system].url + system.path
        return {"url": url, "bodies": [body_of(group) for group in groups]}

    def _turn(self, system, seconds):
        job = self._job(system, [[text] for text in self.texts])
        job |= {"clients": self.config.clients, "seconds": seconds}
        limit = seconds + self.config.timeout
        return measure_turn(self._servers[system], job, limit)

    def call_directly(self):
        """Times models without HTTP: batches beside requests of as many, and one text.

        Requests of several texts are those of one client of the server of this zoo, and
        are compared with calls that have the threads of its calls. One text is answered
        by what is quickest: one thread here, all cores on torch.
        """
        as_served = answering_variables(self._threads)
        for size, kind, threads, variables in (
            (TOGETHER, OURS, None, as_served),
            (1, None, {OURS: 1, PEER: self._cores}, answering_variables()),
        ):
            with contextlib.ExitStack() as stack:
                workers, iterations = {}, {}
                for system in self._ready(kind):
                    worker = self._worker(
                        system.direct_name,
                        system.direct_worker,
                        system.python,
                        threads and threads[system.kind],
                        variables,
                    )
                    workers[system] = stack.enter_context(worker)
                for system in self._ready(kind):
                    self._progress.say(
                        f"Batches of {size}: loading {system.direct_name}"
                    )
                    with _noting(system):
                        workers[system].imported()
                        iterations[system] = self._prepare(
                            workers[system], system, size
                        )
                for number, alive in self._rounds(kind):
                    for system in alive:
                        self._say_round(number, f"{system.direct_name}, {DIRECT}")
                        with _noting(system):
                            passes = iterations[system]
                            self._direct_turn(workers[system], system, size, passes)

    def _prepare(self, worker, system, size):
        texts = self.direct_texts[size]
        job = {"kind": "answer", "folder": str(system.folder), "texts": texts}
        return worker.prepare({**job, "batch_size": size})["iterations"]

    def _direct_turn(self, worker, system, size, passes):
        """A turn of a model, and of its server where that is asked for several."""
        texts = self.direct_texts[size]
        groups = [texts[start : start + size] for start in range(0, len(texts), size)]
        if size == TOGETHER:
            job = self._job(system, groups)
            # The first pass wakes the server up.
            job |= {"clients": 1, "requests": (passes + 1) * len(groups)}
            (window,) = run_load(job, self.config.timeout)
            window["latencies"] = window["latencies"][len(groups) :]
            system.together.append(mean_of_passes(window, len(groups)))
        seconds, _ = worker.time(passes)
        own = system.direct.setdefault(size, [])
        own.append(float(np.median(seconds)) / len(groups))

    def _rounds(self, kind=None):
        """Yields the numbers of the rounds, and the systems in their order."""
        for number in range(self.config.rounds):
            alive = self._ready(kind)
            place = number % max(1, len(alive))
            yield number, alive[place:] + alive[:place]

    def _say_round(self, number, what):
        self._progress.say(f"Round {number + 1} of {self.config.rounds}: {what}")

    def soak(self):
        """Loads the faster server of this zoo for long."""
        ready = [one for one in self._ready(OURS) if one.turns]
        if not ready:
            return
        system = max(ready, key=lambda one: np.median([t.rate for t in one.turns]))
        rate = float(np.median([turn.rate for turn in system.turns]))
        job = self._job(system, [[text] for text in self.texts])
        with _noting(system):
            self.soaked = soak(
                system.server_name,
                self._servers[system],
                job,
                rate,
                self.config,
                self._progress.say,
            )
            self._servers[system].check()  # the table is kept

    def facts(self):
        """What is reported, see `serving_report.save_report`."""
        config = self.config
        return {
            "model": str(config.model),
            "texts": len(self.texts),
            "direct_texts": {n: len(own) for n, own in self.direct_texts.items()},
            "together": TOGETHER,
            "clients": config.clients,
            "seconds": config.seconds,
            "rounds": config.rounds,
            "max_batch_size": config.max_batch_size,
            "batch_timeout_ms": config.batch_timeout_ms,
            "num_batch_threads": config.num_batch_threads,
            "cores": self._cores,
            "device": describe_device(),
            "agreement": self.agreement,
            "soak": self.soaked,
        }


@contextlib.contextmanager
def _noting(system):
    """Notes why a system failed; the others are measured all the same."""
    try:
        yield
    except WorkerError as error:
        system.error = str(error)
