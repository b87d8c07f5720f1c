"""`recbert benchmark frontier`: accuracy against texts a second, and against bytes."""

import contextlib
import functools
import json
import pathlib
import sys
import tempfile
import time

import numpy as np

from keras_recbert.benchmark.environments import PEERS, find_environments
from keras_recbert.benchmark.frontier_report import save_report
from keras_recbert.benchmark.frontier_systems import list_systems, name_models
from keras_recbert.benchmark.picture import check_matplotlib
from keras_recbert.benchmark.progress import Progress
from keras_recbert.benchmark.report import describe_device
from keras_recbert.benchmark.saved_models import label_names_of, read_model_facts
from keras_recbert.benchmark.worker_process import Worker, WorkerError
from keras_recbert.core.answering import answering_variables
from keras_recbert.core.folders import check_place
from keras_recbert.data.task_files import load_splits
from keras_recbert.data.task_spec import get_task
from keras_recbert.models import zoo  # noqa: F401  registers the names
from keras_recbert.models.registry import get_card
from keras_recbert.train.teacher import find_model
from keras_recbert.train.teacher_tasks import class_places

BATCH_SIZES = (1, 64)
ASKED_AT = 64  # size of the batches in which the validation set is answered
# Large models with random weights: fewer texts one by one, and fewer rounds.
FEW_TEXTS, FEW_ROUNDS = {1: 16, 64: 64}, 3


def frontier(config):
    """Measures systems that answer raw strings with labels, and draws them.

    Each runs in a process of its own, in one thread. They are timed in turn, in rounds,
    in an order that moves on by one each round. A step answers all texts that are
    timed, in the order of the file, in batches.

    Args:
        config: `keras_recbert.config.FrontierConfig`.

    Returns:
        List of `frontier_systems.System`.

    Raises:
        ValueError, FileNotFoundError: if an option is wrong, before any work.
        RuntimeError: at the end, if a system failed; everything else is written.
    """
    check_matplotlib()
    task = _check_task(config.task)
    models = name_models(config.models, functools.partial(find_model, what="model"))
    find = functools.partial(find_model, what="teacher")
    ((teacher_name, teacher),) = name_models([config.teacher], find).items()
    for option, paths in (("models", models.values()), ("teacher", [teacher])):
        for path in paths:
            _check_model(option, path, task)
    for name in config.speed_only:
        get_card(name)
    _check_weights(config.weights)
    output_dir = pathlib.Path(config.output_dir)
    check_place(output_dir)
    train, validation, notes = load_splits(task, config.data_dir)
    data = _Data.of(task, train, next(iter(validation.values())), config.num_texts)

    progress = Progress()
    output_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".frontier-", dir=output_dir) as folder:
        folder = pathlib.Path(folder).absolute()
        systems = list_systems(config, models, (teacher_name, teacher), folder)
        environments, missing = find_environments(
            dict.fromkeys(["export", *(system.worker for system in systems)]),
            config.pythons(),
            output_dir / "environments",
            config.install_peers,
            progress.say,
        )
        for system in systems:
            if system.worker in missing and not system.error:
                needs = " ".join(f'"{r}"' for r in PEERS[system.worker].requirements)
                system.error = f"not measured: pip install {needs}"
        for line in (*describe_device(), *notes, *missing.values()):
            progress.say(line)
        start = functools.partial(_start, environments, config.timeout)
        data.write(folder)
        _make_peers(systems, start, data, config.weights, progress)
        _make_exports(systems, start, teacher, progress)
        _measure(systems, start, data, config.rounds, progress)
    facts = {
        "task": task.name,
        "training_examples": len(train),
        "validation_examples": len(data.ask),
        "timed_texts": len(data.timed),
        "rounds": config.rounds,
        "device": describe_device(),
    }
    progress.say(save_report(output_dir, facts, systems))
    failed = [one for one in systems if one.error.startswith("The worker")]
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(systems)} systems failed. The first: "
            f"{failed[0].error}"
        )
    return systems


class _Data:
    """What systems learn from and are asked.

    Args:
        names: list of str, the labels of the task.
        train, ask: tuples of texts and their labels, str.
        num_texts: int. How many of the texts that are asked are timed.
    """

    def __init__(self, names, train, ask, num_texts):
        self.names = names
        self.train = train
        self.ask, self.labels = ask
        every = max(1, len(self.ask) // num_texts)
        self.timed = self.ask[::every][:num_texts]

    @classmethod
    def of(cls, task, train, validation, num_texts):
        names = list(task.label_names)

        def columns(examples):
            (texts,), (ids,) = examples.fields.values(), examples.targets.values()
            return list(texts), [names[int(one)] for one in ids]

        return cls(names, columns(train), columns(validation), num_texts)

    def write(self, folder):
        """Writes the files that workers read."""
        texts, labels = self.train
        train = {"texts": texts, "labels": labels}
        self.train_file, self.ask_file = folder / "train.json", folder / "ask.json"
        self.train_file.write_text(json.dumps(train), "utf-8")
        self.ask_file.write_text(json.dumps(self.ask), "utf-8")

    def accuracy(self, labels):
        """Part of the asked texts whose label is right.

        Raises:
            ValueError: for labels that the task has not.
        """
        if not set(labels) <= set(self.names):
            # Classes that nobody has named.
            numbers = {str(index): name for index, name in enumerate(self.names)}
            if not set(labels) <= set(numbers):
                raise ValueError(
                    f"answers {', '.join(sorted(set(labels)))}, and the task has "
                    f"{', '.join(self.names)}"
                )
            labels = [numbers[label] for label in labels]
        return float(np.mean(np.array(labels) == np.array(self.labels)))


def _check_task(name):
    """The task of a name, of one text and classes."""
    task = get_task(name)
    if task.head != "classifier" or len(task.fields) != 1 or task.labels_of_train:
        raise ValueError(
            "`task` must have one text an example and classes with names, such as "
            f"sst2. Received: task={name!r}, a {task.head} of "
            f"{', '.join(task.fields)}."
        )
    return task


def _check_model(option, path, task):
    """Raises `ValueError` for a model that does not answer with a task's labels."""
    other = _other_than_labels(read_model_facts(path), task)
    if other is not None:
        raise ValueError(
            f"`{option}` needs a classifier of one text, with a vocabulary and the "
            f"labels of {task.name}, {', '.join(task.label_names)}. Received: {other}, "
            f"at {path}. Train one: recbert finetune --task {task.name}, or recbert "
            f"distill --task {task.name}."
        )


def _other_than_labels(model, task):
    """Words on what keeps a model from answering a task; None if nothing does."""
    if model.head is None or model.head["task"] != task.head:
        return model.describe_heads()
    if not model.has_vocabulary:
        return "a classifier without a vocabulary"
    if len(model.fields) != len(task.fields):
        return f"a classifier of {len(model.fields)} texts, {', '.join(model.fields)}"
    names = label_names_of(model.head)
    if class_places(names, task) is None:
        return f"a classifier with the labels {', '.join(names)}"
    return None


def _check_weights(weights):
    if weights is not None and not (pathlib.Path(weights) / "config.json").is_file():
        raise FileNotFoundError(
            "`weights` must be a folder of Hugging Face, which Model2Vec reads. There "
            f"is no config.json in {weights}."
        )


def _start(environments, timeout, label, key, threads=None):
    """A worker of one of `PEERS`, whose imports begin."""
    python = environments[key]
    own = python == sys.executable
    peer = PEERS[key]
    variables = answering_variables() if peer.answers else None
    return Worker(label, peer.script, python, own, timeout, threads, variables)


def _make_peers(systems, start, data, weights, progress):
    """Trains the peers, each by its own library."""
    for system in systems:
        if system.group != "peer" or system.error:
            continue
        progress.say(f"Training {system.name} ...")
        job = {
            "kind": "fit",
            "folder": str(system.folder),
            "train": str(data.train_file),
            "weights": None if weights is None else str(pathlib.Path(weights)),
        }
        with _noting(system), start(system.name, system.worker) as worker:
            worker.imported()
            worker.prepare(job)


def _make_exports(systems, start, teacher, progress):
    """Writes models of this zoo in their forms, those of one source by one worker."""
    sources = {}
    for system in systems:
        if system.form and not system.error:
            # The teacher may be one of the students: each has a folder of its own.
            sources.setdefault((system.group, system.source), []).append(system)
    for (_, source), group in sources.items():
        progress.say(f"Exporting {source} ...")
        job = {"forms": {one.form: str(one.folder) for one in group}}
        if group[0].group == "speed only":
            job |= {"name": source, "vocabulary_of": str(teacher)}
        else:
            job["model"] = str(source)
        with _noting(*group), start(f"export of {source}", "export") as worker:
            worker.imported()
            facts = worker.prepare(job)
            for system in group:
                system.parameters = facts["parameters"]
                why = facts["errors"].get(system.form)
                system.error = f"not measured: {why}" if why else ""


def _measure(systems, start, data, rounds, progress):
    """Asks for the labels of the validation set, and times all systems in turn."""
    ready = [system for system in systems if not system.error]
    with contextlib.ExitStack() as stack:
        workers = {}
        for system in ready:  # they import side by side
            files = [path for path in system.folder.rglob("*") if path.is_file()]
            system.num_bytes = sum(path.stat().st_size for path in files)
            worker = start(system.name, system.worker, 1)
            workers[system] = stack.enter_context(worker)
        for system in ready:
            with _noting(system):
                system.versions = workers[system].imported()["versions"]
        for size in BATCH_SIZES:
            for system in (one for one in ready if not one.error):
                progress.say(f"Batches of {size}: loading and asking {system.name}")
                with _noting(system):
                    _prepare(system, workers[system], size, data)
            for number in range(rounds):
                progress.say(f"Batches of {size}: round {number + 1} of {rounds}")
                alive = [one for one in ready if not one.error]
                place = number % max(1, len(alive))
                for system in alive[place:] + alive[:place]:
                    if system.group == "speed only" and number >= FEW_ROUNDS:
                        continue
                    with _noting(system):
                        _turn(system, workers[system], size)


def _prepare(system, worker, size, data):
    texts = data.timed
    job = {"kind": "answer", "folder": str(system.folder), "batch_size": size}
    if system.group == "speed only":
        texts = texts[: FEW_TEXTS[size]]
    elif size == ASKED_AT:
        answers = system.folder.with_suffix(".json")
        job |= {"ask": str(data.ask_file), "answers": str(answers)}
    facts = worker.prepare({**job, "texts": texts})
    system.items[size] = facts["items"]
    system.seconds[size], system.cores[size] = [], []
    if system.parameters is None:
        system.parameters = facts["parameters"]
    system.iterations = facts["iterations"]
    if "answers" in job:
        labels = json.loads(answers.read_text("utf-8"))
        try:
            system.accuracy = data.accuracy(labels)
        except ValueError as error:
            system.error = f"not measured: {error}"


def _turn(system, worker, size):
    before = time.monotonic(), worker.cpu_seconds()
    seconds, _ = worker.time(system.iterations)
    system.seconds[size].append(float(np.median(seconds)))
    if before[1] is not None:
        wall = time.monotonic() - before[0]
        system.cores[size].append((worker.cpu_seconds() - before[1]) / wall)


@contextlib.contextmanager
def _noting(*systems):
    """Notes in systems why a worker failed; the others are measured all the same."""
    try:
        yield
    except WorkerError as error:
        for system in systems:
            system.error = str(error)
