"""`recbert benchmark frontier`: what it measures, writes, and says is missing."""

import importlib
import json
import pathlib
import sys
import time

import numpy as np
import pytest
from harness import randomize
from saved_kinds import NAMES, WORDS
from toy_texts import reviews, tiny_model, write_glue_task

import keras_recbert
from keras_recbert.benchmark import frontier, worker_process
from keras_recbert.benchmark.environments import PEERS, Peer
from keras_recbert.benchmark.frontier_report import frontier_of
from keras_recbert.benchmark.worker_process import Worker, WorkerError
from keras_recbert.cli import main

NOWHERE = Peer("Nowhere", "fasttext_worker.py", ("no-such-thing",), ("no-such-thing",))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, a teacher, a student, and an encoder of another kind."""
    folder = tmp_path_factory.mktemp("frontier")
    write_glue_task(folder, "sst2")
    teacher = tiny_model(label_names=NAMES)
    teacher.save_preset(folder / "teacher" / "preset")
    sizes = {"recurrent_dim": 5, "vector_dim": 700, "vocabulary": WORDS}
    student = keras_recbert.build(
        "bilstm_student", task="classifier", label_names=NAMES, **sizes
    )
    student.save_preset(folder / "student" / "preset")
    return folder


class InProcess:
    """A worker's job done here: TensorFlow is not loaded for each system anew."""

    def __init__(self, label, script, python, own, timeout, threads, variables):
        folder = str(worker_process.WORKERS)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        self.label = label
        module = importlib.import_module(script.removesuffix(".py"))
        preparing = importlib.import_module("answering").preparing
        fit = getattr(module, "fit", None)
        prepare = getattr(module, "prepare", None)
        self._prepare = prepare or preparing(module.open_system, fit)
        self.threads = threads

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def imported(self):
        return {"versions": {"python": "3"}}

    def prepare(self, job):
        self.step, facts = self._prepare(job)
        if job.get("kind") == "answer":
            assert self.threads == 1
        return {"iterations": 2, **facts}

    def time(self, iterations):
        seconds = []
        for _ in range(iterations):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return seconds, None

    def cpu_seconds(self):
        return time.process_time()


def run(place, output_dir, *options):
    argv = ["--data-dir", place, "--task", "sst2", "--teacher", place / "teacher"]
    argv += ["--models", place / "student", "--output-dir", output_dir, *options]
    return main(["benchmark", "frontier", *map(str, argv)])


# A run ------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_measures_what_is_there_and_names_what_is_not(
    place, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(frontier, "Worker", InProcess)
    monkeypatch.setitem(PEERS, "fasttext", NOWHERE)
    peers = ("--peers", "tfidf", "fasttext", "model2vec", "--speed-only", "bert_tiny")
    few = ("--rounds", "2", "--num-texts", "3")
    assert run(place, tmp_path, *peers, *few) == 0
    out = capsys.readouterr().out
    names = {"frontier.json", "frontier.md", "frontier.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    written = json.loads((tmp_path / "frontier.json").read_text())
    assert written["validation_examples"] == 10 and written["timed_texts"] == 3
    rows = {row["name"]: row for row in written["rows"]}
    student = [
        "student, SavedModel",
        "student, SavedModel, bfloat16 weights",
        "student, LiteRT",
        "student, LiteRT int8",
        "student, ONNX Runtime",
    ]
    assert list(rows)[3:] == [*student, "teacher, SavedModel", "bert_tiny, SavedModel"]

    float32, bfloat16, litert, int8, onnx = (rows[name] for name in student)
    assert bfloat16["bytes"] < float32["bytes"] and int8["bytes"] < litert["bytes"]
    assert float32["accuracy"] == litert["accuracy"] == onnx["accuracy"]
    assert float32["parameters"] == litert["parameters"] > 0
    assert rows["TF-IDF, 1-2-grams, logistic regression"]["accuracy"] > 0.8
    timed = [row for row in rows.values() if not row["error"]]
    for row in timed:
        assert set(row["batch_size"]) == {"1", "64"}
        for measured in row["batch_size"].values():
            rate = measured["texts_per_second"]
            assert 0 < rate["least"] <= rate["median"] <= rate["most"]
            assert measured["rounds"] == 2 and measured["texts"] == 3
        assert (row["accuracy"] is None) == (row["group"] == "speed only")

    missing = {name: row["error"] for name, row in rows.items() if row["error"]}
    assert missing == {
        "fastText, 2-grams": 'not measured: pip install "no-such-thing"',
        "Model2Vec, 256 wide, logistic regression": "not measured: name a BERT to "
        "distil, --weights FOLDER",
    }
    table = (tmp_path / "frontier.md").read_text()
    assert table in out
    assert all(why in table for why in missing.values())
    assert "bert\\_tiny, SavedModel (random weights: speed only) | –" in table
    picture = (tmp_path / "frontier.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000


def test_a_system_that_fails_is_named_after_the_others(
    place, tmp_path, monkeypatch, capsys
):
    class Failing(InProcess):
        def prepare(self, job):
            if job["kind"] == "fit" and "TF-IDF" in self.label:
                raise WorkerError(f"The worker of {self.label} ended")
            return super().prepare(job)

    monkeypatch.setattr(frontier, "Worker", Failing)
    monkeypatch.setattr(frontier, "_make_exports", lambda *_: None)
    monkeypatch.setattr(frontier, "_measure", lambda *_: None)
    monkeypatch.setattr(frontier, "save_report", lambda *_: "a report")
    assert run(place, tmp_path, "--peers", "tfidf", "--speed-only") == 2
    captured = capsys.readouterr()
    assert "a report" in captured.out
    assert "1 of 7 systems failed. The first: The worker of TF-IDF" in captured.err


def test_a_process_answers_in_one_thread(tmp_path):
    """The real one, of the library that is imported fastest."""
    train, ask = tmp_path / "train.json", tmp_path / "ask.json"
    data = {"texts": ["good film", "bad film"] * 3, "labels": ["yes", "no"] * 3}
    train.write_text(json.dumps(data))
    ask.write_text(json.dumps(["a bad one", "good"]))
    folder, answers = tmp_path / "system", tmp_path / "answers.json"
    with Worker("TF-IDF", "tfidf_worker.py", sys.executable, threads=1) as worker:
        assert "scikit-learn" in worker.imported()["versions"]
        worker.prepare({"kind": "fit", "folder": str(folder), "train": str(train)})
        job = {"kind": "answer", "folder": str(folder), "texts": ["good"] * 3}
        job |= {"batch_size": 2, "ask": str(ask), "answers": str(answers)}
        assert worker.prepare(job)["items"] == 3
        environment = pathlib.Path(f"/proc/{worker._process.pid}/environ").read_bytes()
        assert len(worker.time(2)[0]) == 2
    assert json.loads(answers.read_text()) == ["no", "yes"]
    for name in worker_process.THREADS:
        assert f"{name}=1".encode() in environment.split(b"\0")


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_torch_gives_the_labels_of_the_teacher(pooling, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(worker_process.WORKERS)
    export = importlib.import_module("export_worker")
    torch_worker = importlib.import_module("torch_classifier_worker")
    model = tiny_model(label_names=NAMES, pooling=pooling)
    randomize(model)
    texts = reviews(12)[0]
    packed = model.preprocessor(texts)
    first, second = model(packed, training=False).numpy().T
    shift = np.median(second - first)  # so that half of the texts have each label
    model.head.dense.bias.assign_add([shift, 0.0])
    export._write(model, "huggingface", tmp_path / "teacher")
    answer, parameters = torch_worker.open_system(tmp_path / "teacher")
    logits = model(packed, training=False).numpy()
    expected = [NAMES[row.argmax()] for row in logits]
    assert len(set(expected)) == 2
    assert answer(texts) == expected
    assert parameters > 0


# What it is made of -----------------------------------------------------------------


def test_frontier_has_the_points_that_no_other_beats():
    points = [(10, 80), (100, 70), (50, 80), (5, 90), (60, 60), (200, 50)]
    assert frontier_of(points) == [(200, 50), (100, 70), (50, 80), (5, 90)]
    assert frontier_of(points, low=True) == [(5, 90)]


def test_labels_without_names_are_numbers_of_the_classes():
    data = frontier._Data(NAMES, ([], []), (["a", "b"], NAMES), 1)
    assert data.timed == ["a"]
    assert data.accuracy(["0", "1"]) == 1.0
    assert data.accuracy(["positive", "positive"]) == 0.5
    with pytest.raises(ValueError, match="answers good, and the task has negative, p"):
        data.accuracy(["good", "good"])


# Refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--task", "mrpc"), "`task` must have one text an example and classes"),
        (("--models", "nowhere"), "nowhere holds no model"),
        (("--teacher", "nowhere"), "nowhere holds no teacher"),
        (("--models",), "`models` is empty. Expected one output folder"),
        (("--models", "student", "student/preset"), "Received: 'student' twice"),
        (("--speed-only", "bert_bas"), "Did you mean 'bert_base'"),
        (("--weights", "student"), "There is no config.json in student"),
        (("--peers", "tfdif"), "`peers` must be of tfidf, fasttext, model2vec, torch"),
        (("--rounds", "0"), "`rounds` must be a whole number of at least 1"),
        (("--timeout", "0"), "`timeout` must be above 0 seconds"),
        (("--data-dir", "student"), "student"),
    ],
)
def test_wrong_options_are_refused_before_any_work(
    place, tmp_path, monkeypatch, capsys, options, message
):
    monkeypatch.chdir(place)
    monkeypatch.setattr(frontier, "find_environments", lambda *_: pytest.fail("work"))
    assert run(place, tmp_path / "out", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["models", "teacher"])
@pytest.mark.parametrize(
    ("kind", "received"),
    [
        ("heads", "a model with heads by name, sst2, stars"),
        ("encoder", "a model without a head"),
        ("pairs", "a classifier of 2 texts, text, text_pair"),
        ("regressor", "a regressor"),
        ("other_labels", "a classifier with the labels bad, good"),
        ("without_vocabulary", "a classifier without a vocabulary"),
    ],
)
def test_models_of_something_else_are_refused_before_any_work(
    place, tmp_path, monkeypatch, capsys, preset_of, option, kind, received
):
    monkeypatch.setattr(frontier, "find_environments", lambda *_: pytest.fail("work"))
    path = preset_of(kind)
    assert run(place, tmp_path / "out", f"--{option}", path) == 2
    error = capsys.readouterr().err
    assert f"`{option}` needs a classifier of one text, with a vocabulary" in error
    assert f"the labels of sst2, negative, positive. Received: {received}, at" in error
    assert str(path) in error and "recbert distill --task sst2" in error
    assert not (tmp_path / "out").exists()
