"""Predictions by Apache Beam: each line exactly once, whatever fails."""

import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import apache_beam as beam
import pytest
import tensorflow as tf
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that
from toy_texts import reviews

from keras_recbert.cli import main
from keras_recbert.core.beam_options import needs_beam
from keras_recbert.serving import predict_beam as module
from keras_recbert.serving import predict_pipeline
from keras_recbert.serving.answers import Predictor, savedmodel_predictor
from keras_recbert.serving.predict_beam import predict_beam
from keras_recbert.serving.predict_file import added_values
from keras_recbert.serving.predict_pipeline import PredictJob, SavedModelHandler

TEXTS = [
    f"{text} {'very ' * (index % 23)}" for index, text in enumerate(reviews(90)[0])
]
TEXT = (("text",), ("text",), ())  # columns, fields and those of lists
BROKEN = {
    b'{"text": ': "not valid JSON",
    b'{"text": "\xff"}': "can't decode byte 0xff",
    b"[1]": "found an array",
    b'{"id": 7}': "there is no 'text'",
    b'{"text": null}': "there is no text in 'text': it is null",
    b'{"text": ["a", "b"]}': "'text' must hold a text",
    b'{"text": "a", "score": 1}': "has a column 'score' already",
}


@pytest.fixture
def model(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(written("bert").path)


def write_input(folder="in"):
    """Three files of 90 rows, an empty line, and lines that are no rows."""
    pathlib.Path(folder).mkdir(exist_ok=True)
    rows = [{"id": index, "text": text} for index, text in enumerate(TEXTS)]
    lines = [json.dumps(row).encode("utf-8") for row in rows]
    pathlib.Path(folder, "a.jsonl").write_bytes(b"\n".join(lines[:40]))
    pathlib.Path(folder, "b.jsonl.gz").write_bytes(
        gzip.compress(b"\n".join(lines[40:]))
    )
    pathlib.Path(folder, "c.jsonl").write_bytes(b"\n" + b"\n".join(BROKEN))


def read_output(prefix="scores"):
    """Rows of all parts of an output, sorted by their number, and those rejected."""
    found = {"": [], ".rejected": []}
    for name, rows in found.items():
        for path in pathlib.Path().glob(f"{prefix}{name}-*-of-*.jsonl"):
            rows += map(json.loads, path.read_text("utf-8").splitlines())
    return sorted(found[""], key=lambda row: row["id"]), found[".rejected"]


def check_output(model, prefix="scores"):
    """Each line of `write_input` is there once, with what the SavedModel answers."""
    rows, rejected = read_output(prefix)
    alone = savedmodel_predictor(model)
    for index, (row, text) in enumerate(zip(rows, TEXTS, strict=True)):
        prediction, score = added_values(*alone([[text]])[0], text)
        assert {"id": index, "text": text, "prediction": prediction} == {
            key: value for key, value in row.items() if key != "score"
        }
        assert row["score"] == pytest.approx(score, abs=2e-6)
    assert {row["record"].encode("latin-1", "replace") for row in rejected} == {
        line.replace(b"\xff", b"\\xff") for line in BROKEN
    }
    for row in rejected:
        line = row["record"].replace("\\xff", "\xff").encode("latin-1")
        assert BROKEN[line] in row["reason"]
        assert row["input"].endswith("c.jsonl")


def test_each_line_is_answered_or_rejected(model, capsys):
    write_input()
    words = ["predict", model, "--input", "in/*.jsonl*", "--output", "scores.jsonl"]
    main(words)
    check_output(model)
    err = capsys.readouterr().err
    assert "3 file(s), texts in text." in err
    assert re.search(r"90 rows in \d+ s, [\d,]+ rows/s; 7 rejected, see ", err)

    pathlib.Path("scores-00000-of-00099.jsonl").write_text("of before")
    with pytest.raises(FileExistsError, match=r"scores-0.*--overwrite"):
        predict_beam(model, "in/*.jsonl*", "scores.jsonl")
    predict_beam(model, "in/a.jsonl", "scores.jsonl", overwrite=True)
    rows, rejected = read_output()
    assert [row["id"] for row in rows] == list(range(40))
    assert rejected == []


def test_one_text_that_fails_takes_no_other_along():
    def function(text):
        values = [one.decode() for one in text.numpy()]
        if "bad" in values:
            raise tf.errors.InvalidArgumentError(
                None, None, "no such text\nsecond line"
            )
        scores = [float("nan") if one == "nan" else len(one) / 10 for one in values]
        return {"scores": tf.constant(scores)}

    job = PredictJob("m", None, "in", "out", ".jsonl", *TEXT, 3)
    handler = SavedModelHandler(job)
    batch = [("f", {"text": text}) for text in ("abc", "bad", "nan", "a")]
    found = handler.run_inference(batch, Predictor(function, ("text",)))
    assert [result.example for result in found] == batch
    first, bad, nan, last = [result.inference for result in found]
    assert (first, last) == ((0.3, 0.3), (0.1, 0.1))
    assert bad == "no such text"
    assert "The model answers nan" in nan

    def lost(text):
        raise tf.errors.ResourceExhaustedError(None, None, "no memory")

    with pytest.raises(tf.errors.ResourceExhaustedError):
        handler.run_inference(batch, Predictor(lost, ("text",)))


def test_rows_of_like_length_are_answered_together():
    fields = ("question", "context")
    job = PredictJob("m", None, "in", "out", ".jsonl", fields, fields, (), 7)
    sizes = [3, 90, 17, 5000, 4, 4, 60, 61, 2, 80, 16, 1, 33, 0]
    rows = [("f", {"question": "who?", "context": "\u00e9" * size}) for size in sizes]

    def check(batches):
        found = [[len(row["context"]) for _, row in batch] for batch in batches]
        assert sorted(found) == [sorted(sizes)[:7], sorted(sizes)[7:]]

    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        assert_that(
            pipeline | beam.Create(rows) | predict_pipeline._batches(job), check
        )


def test_when_beam_is_needed():
    assert not needs_beam("a.jsonl", 1, "")
    assert needs_beam("*.jsonl", 1, "")
    assert needs_beam("gs://bucket/a.jsonl", 1, "")
    assert needs_beam("a.jsonl", 2, "")
    assert needs_beam("a.jsonl", 1, "--runner=X")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pattern": "no/*.jsonl"}, r"There is no file .*no/\*\.jsonl"),
        ({"pattern": "in.csv"}, r"in\.csv: Apache Beam reads JSON lines"),
        ({"pattern": "s3://b/a.jsonl"}, r"s3://b/a\.jsonl cannot be read"),
        ({"output": "scores.csv"}, r"scores\.csv: Apache Beam writes JSON lines"),
        ({"model": "in"}, "There is no SavedModel at .*in"),
        ({"head": "mood"}, "has no head 'mood'. Valid: .*serving_default"),
        ({"text_columns": ["review"]}, "There is no column 'review'"),
        ({"text_columns": ["id", "text"]}, r"takes 1 text\(s\) an example"),
        ({"batch_size": 0}, "batch_size"),
        ({"num_workers": 0}, "num_workers"),
        ({"beam_options": "--nope=1"}, "Beam has no option --nope=1"),
        ({"beam_options": "--runner=X", "num_workers": 2}, "Leave one of them out"),
    ],
)
def test_bad_arguments_are_refused_before_work(model, change, message):
    write_input()
    pathlib.Path("in.csv").write_text("text\na\n")
    arguments = {"model": model, "pattern": "in/a.jsonl", "output": "scores.jsonl"}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        predict_beam(**{**arguments, **change})
    assert not list(pathlib.Path().glob("scores*"))


@pytest.mark.parametrize(
    "line", [b"{", b'{"text": "\xff"}', b'{"score": 1, "text": "a"}']
)
def test_a_first_line_that_is_no_row_is_told_before_work(model, line):
    pathlib.Path("in.jsonl").write_bytes(line)
    with pytest.raises(ValueError, match=r"in\.jsonl:1"):
        predict_beam(model, "in.jsonl", "scores.jsonl")


def test_progress_is_shown_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_LOOKS", 0.01)
    with module._progress(True) as folder:
        job = PredictJob("m", None, "in", "out", ".jsonl", *TEXT, 3, folder)
        handler = SavedModelHandler(job)
        batch = [("f", {"text": "abc"})] * 5
        of_one = Predictor(lambda text: {"scores": tf.zeros(len(text))}, ("text",))
        handler.run_inference(batch, of_one)
        time.sleep(0.2)
    assert "5 rows" in capsys.readouterr().err
    assert not pathlib.Path(folder).exists()


@pytest.mark.slow
def test_two_processes_answer_as_one(model):
    write_input()
    assert predict_beam(model, "in/*.jsonl*", "scores.jsonl", num_workers=2) == (90, 7)
    check_output(model)


def check_runner(model, runner):
    """Another runner of Beam answers each line, by workers in this process."""
    options = f"--runner={runner} --environment_type=LOOPBACK"
    found = predict_beam(model, "in/*.jsonl*", "scores.jsonl", beam_options=options)
    assert found == (90, 7)
    check_output(model)


@pytest.mark.slow
def test_a_server_of_beams_portable_jobs_answers_alike(model):
    """The protocol by which Beam speaks to Flink and others, with Beam's own server."""
    write_input()
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    server = "apache_beam.runners.portability.local_job_service_main"
    with subprocess.Popen(
        [sys.executable, "-m", server, "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        try:
            _wait_for(port, process)
            check_runner(model, f"PortableRunner --job_endpoint=localhost:{port}")
        finally:
            process.send_signal(signal.SIGKILL)


@pytest.mark.slow
def test_prism_answers_alike(model):
    """Beam's runner in Go, the local one that its other languages use, too."""
    prism = shutil.which("prism")
    if prism is None:
        pytest.skip("no program prism, which Beam's releases have for download")
    write_input()
    check_runner(model, f"PrismRunner --prism_location={prism}")


def _wait_for(port, process):
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None, "Beam's server ended."
        assert time.monotonic() < deadline, "Beam's server does not answer."
        try:
            socket.create_connection(("localhost", port), 1).close()
            return
        except OSError:
            time.sleep(0.2)
