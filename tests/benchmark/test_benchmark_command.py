import csv
import dataclasses
import re
import shutil
import subprocess
import sys

import pytest

from keras_recbert.benchmark import environments, run
from keras_recbert.benchmark.comparisons import (
    PRECISIONS,
    Candidate,
    Comparison,
    Shape,
    choose,
    comparisons,
    parse_shape,
)
from keras_recbert.benchmark.environments import PEERS, Peer, find_environments
from keras_recbert.benchmark.progress import Progress
from keras_recbert.cli import main

NOWHERE = Peer(
    "Nowhere",
    "torch_worker.py",
    ("no-such-thing",),
    ("no-such-thing==1",),
    "--no-python",
)


# Refusals ------------------------------------------------------------------------


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys, preset_of):
    """Runs a command that must end before any work; returns what it said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "config.json").write_text("{}")
    shutil.copytree(preset_of("fitting"), tmp_path / "teacher" / "preset")
    (tmp_path / "texts.txt").write_text("a text\n")
    (tmp_path / "empty.txt").write_text("\n \n")
    before = sorted(tmp_path.rglob("*"))

    def no_work(*_, **__):
        raise AssertionError("work started")

    monkeypatch.setattr(run, "measure", no_work)
    monkeypatch.setattr(run, "Worker", no_work)

    def refused(*argv):
        assert main(["benchmark", *argv]) == 2
        assert sorted(tmp_path.rglob("*")) == before
        return capsys.readouterr().err

    return refused


TASKS = ("tasks", "--weights", "weights", "--questions")
TEACHER = ("teacher", "--task", "sst2", "--data-dir", ".", "--teacher")
SAVEDMODEL = ("savedmodel", "--weights", "weights", "--texts", "texts.txt")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["swish_rn"], "No comparison is called 'swish_rn'. Did you mean 'swish_rnn'"),
        (["--shapes", "8x"], "A shape is rows x tokens, such as 8x128"),
        (["--shapes", "0x8"], "Received: '0x8'"),
        (
            [*SAVEDMODEL, "--shapes", "8x128"],
            "savedmodel takes --shapes of rows, such as 32. Received: 8x128.",
        ),
        (
            ["swish_rnn", "--shapes", "32"],
            "--shapes of rows x tokens, such as 8x128. Received: batches of 32.",
        ),
        (["--precision", "bfloat"], "--precision must be of float32, mixed_bfloat16"),
        (["--passes", "back"], "--passes must be of forward, train"),
        (["--rounds", "0"], "--rounds must be at least 1. Received: 0."),
        (["--timeout", "0"], "--timeout must be above 0 seconds"),
        (["--output-dir", "texts.txt"], "must be a folder. texts.txt is a file"),
        (
            [*SAVEDMODEL, "--passes", "train"],
            "savedmodel is timed in the pass forward only",
        ),
        (["savedmodel"], "savedmodel needs --weights FOLDER and --texts FILE"),
        ([*SAVEDMODEL[:3], "--texts", "none.txt"], "--texts must be a file"),
        ([*SAVEDMODEL[:3], "--texts", "empty.txt"], "empty.txt is empty"),
        (
            ["savedmodel", "--weights", ".", *SAVEDMODEL[3:]],
            "There is no config.json in .",
        ),
        (["tasks"], "tasks needs --weights FOLDER and --questions FILE: a BERT of"),
        ([*TASKS, "none.json"], "--questions must be a file of SQuAD's JSON: none.js"),
        ([*TASKS, "texts.txt"], "texts.txt"),
        (
            ["teacher"],
            "teacher needs --teacher FOLDER, --task NAME and --data-dir FOLD",
        ),
        ([*TEACHER, "weights"], "There is no card.json in weights"),
        ([*TEACHER[:2], "sst3", *TEACHER[3:], "teacher"], "Did you mean 'sst2'"),
        ([*TEACHER, "teacher"], "train.tsv not found"),
        ([*SAVEDMODEL, "--model", "bert_tinny"], "Did you mean 'bert_tiny'"),
        (["bert_model", "--torch-python", "none"], "There is none at 'none'"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(refused, argv, message):
    assert message in refused(*argv)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("heads", "--teacher must have one head, .* heads by name, sst2, stars, at"),
        ("encoder", "--teacher must have one head, .*Received: a model without a head"),
        ("pairs", "reads 2 text.s. an example, text, text_pair, and sst2 has 1"),
        ("regressor", "is a regressor, and sst2 needs a classifier"),
        ("words", "a plain BERT, .*Received: a WordBiLSTMEncoder, at"),
        ("swish", "a plain BERT, .*Received: an encoder of 'swish_rnn' blocks, at"),
        ("mean", "first token .*pooling='mean', at .* --task sst2 --pooling first"),
        ("without_vocabulary", "Received: a model without a vocabulary"),
    ],
)
def test_a_teacher_that_torch_cannot_be_is_refused(refused, preset_of, kind, message):
    assert re.search(message, refused(*TEACHER, str(preset_of(kind))))


def test_a_damaged_teacher_is_refused(refused, tmp_path):
    (tmp_path / "teacher" / "preset" / "config.json").write_text("{}")
    assert "config.json was changed or damaged" in refused(*TEACHER, "teacher")


def test_interpreter_without_the_peer_is_refused(refused, monkeypatch):
    monkeypatch.setitem(PEERS, "torch", NOWHERE)
    error = refused("bilstm_256", "--torch-python", sys.executable)
    assert "--no-python must name an interpreter that has Nowhere" in error
    assert "lacks no-such-thing: " in error
    assert '-m pip install "no-such-thing==1"' in error


def test_what_is_no_python_is_refused(refused):
    assert "does not run as a Python" in refused("bilstm_256", "--torch-python", "true")


def test_missing_matplotlib_is_told(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert 'pip install -e ".[benchmark]"' in refused("swish_rnn")


# Environments --------------------------------------------------------------------


def test_peer_that_is_not_installed_is_named_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.setitem(PEERS, "kerashub", NOWHERE)
    found, missing = find_environments(["recbert", "kerashub"], {}, tmp_path)
    assert found == {"recbert": sys.executable}
    assert missing == {
        "kerashub": "Nowhere is not installed, so it is left out. Install it beside "
        'this package (pip install "no-such-thing==1") or with --install-peers in an '
        "environment of its own, or name an interpreter that has it with --no-python."
    }


def test_what_needs_this_package_gets_no_environment(tmp_path, monkeypatch):
    lacking = dataclasses.replace(PEERS["onnx"], distributions=("keras_recbert", "no"))
    monkeypatch.setitem(PEERS, "onnx", lacking)
    found, missing = find_environments(["onnx"], {}, tmp_path, install=True)
    assert found == {} and list(tmp_path.iterdir()) == []
    assert missing["onnx"].endswith('"onnxruntime>=1.32,<2").')


def test_named_interpreter_comes_before_this_one(tmp_path):
    link = tmp_path / "python"
    # A wrapper, since a link would be another environment.
    link.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    link.chmod(0o755)
    found, _ = find_environments(["keras"], {"keras": str(link)}, tmp_path)
    assert found == {"keras": str(link)}


def test_installed_environment_is_used_again(tmp_path, monkeypatch):
    monkeypatch.setitem(PEERS, "kerashub", NOWHERE)
    made = environments.environment_python(tmp_path, "kerashub")
    calls = []

    def install(folder, key):
        calls.append(key)
        made.parent.mkdir(parents=True)
        made.touch()
        return str(made)

    def lacks(python, peer):
        return [] if python == made else ["no-such-thing"]

    monkeypatch.setattr(environments, "install_peer", install)
    monkeypatch.setattr(environments, "_lacks", lacks)
    for _ in range(2):
        found, missing = find_environments(
            ["kerashub"], {}, tmp_path, install=True, say=lambda text: None
        )
        assert (found, missing) == ({"kerashub": str(made)}, {})
    assert calls == ["kerashub"]


def test_installation_that_fails_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(PEERS, "kerashub", NOWHERE)

    def fake_run(command, **_):
        (tmp_path / "kerashub").mkdir(exist_ok=True)
        status = int("pip" in command)
        return subprocess.CompletedProcess(command, status, "", "no such thing at all")

    monkeypatch.setattr(environments.subprocess, "run", fake_run)
    with pytest.raises(
        RuntimeError, match="Nowhere could not be installed.*\n.*at all"
    ):
        environments.install_peer(tmp_path, "kerashub")
    assert list(tmp_path.iterdir()) == []


def test_extra_of_setup_names_what_install_peers_installs():
    import pathlib

    setup = (pathlib.Path(run.__file__).parents[2] / "setup.py").read_text()
    for key in ("torch", "kerashub", "model_garden", "onnx"):
        assert f'"{PEERS[key].requirements[0]}"' in setup


# What is compared -------------------------------------------------------------------


def test_every_comparison_can_be_chosen():
    names = list(comparisons())
    assert [one.name for one in choose([])] == names
    assert [one.name for one in choose([names[2], names[0], names[2]])] == [
        names[2],
        names[0],
    ]
    assert list(comparisons(quick=True)) == names
    assert [one.name for one in choose(["scaling"], quick=True)] == ["scaling"]
    assert "scaling" not in [one.name for one in choose([], quick=True)]


@pytest.mark.parametrize("quick", [False, True])
def test_goals_name_references(quick):
    for comparison in comparisons(quick).values():
        labels = {one.label for one in comparison.references}
        assert {goal.reference for goal in comparison.goals} <= labels
        assert comparison.subject.label not in labels
        for goal in comparison.goals:
            assert set(goal.shapes or ()) <= set(comparison.shapes)
            assert set(goal.precisions) <= set(PRECISIONS)


def test_goal_depends_on_where():
    bilstm = comparisons()["bilstm_768"]
    keras, torch = (one.label for one in bilstm.references)
    short, long = Shape(8, 128), Shape(8, 512)
    assert bilstm.goal(keras, long, "train", "float32") == 0.25
    assert bilstm.goal(keras, long, "forward", "float32") is None
    assert bilstm.goal(torch, short, "forward", "float32") == 0.85
    assert bilstm.goal(torch, long, "forward", "float32") is None
    bert = comparisons()["bert_model"]
    assert bert.goal("KerasHub", short, "train", "float32") is None
    assert bert.goal("KerasHub", short, "train", "mixed_bfloat16") == 0.6
    assert bert.goal("KerasHub", Shape(1, 8), "train", "mixed_bfloat16") is None


def test_shape_is_read():
    assert parse_shape("8x128") == Shape(8, 128)
    assert str(Shape(8, 128)) == "8x128"
    assert parse_shape("32", needs_tokens=False) == Shape(32, 0)
    with pytest.raises(ValueError, match="rows x tokens.*Received: '32'"):
        parse_shape("32")


def test_a_comparison_takes_its_own_shapes():
    (tasks,), (layer,) = choose(["tasks"]), choose(["swish_rnn"])
    shapes = [Shape(32, 0), Shape(8, 16)]
    assert run._shapes(tasks, shapes) == [Shape(32, 0)]
    assert run._shapes(layer, shapes) == [Shape(8, 16)]
    assert run._shapes(layer, [Shape(32, 0)]) == []


# A run ------------------------------------------------------------------------------


def rows_of(path):
    lines = path.read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("# ")))


@pytest.fixture
def tiny(monkeypatch):
    """One comparison, of layers that are built in an instant."""
    layer = {"kind": "layer", "hidden_dim": 4, "arguments": {"units": 4}}
    comparison = Comparison(
        "tiny",
        "tiny",
        Candidate("ours", "recbert", {**layer, "name": "BidirectionalLSTM"}),
        (
            Candidate("keras", "keras", {**layer, "name": "bidirectional_lstm"}),
            Candidate("wrong", "keras", {**layer, "name": "no_such_layer"}),
            Candidate("absent", "kerashub", {}),
        ),
        shapes=(Shape(2, 3),),
        passes=("train",),
        precisions=("float32",),
    )
    monkeypatch.setitem(PEERS, "kerashub", NOWHERE)
    monkeypatch.setattr(run, "choose", lambda names, quick: [comparison])


@pytest.mark.slow
def test_run_writes_what_it_could_measure_and_names_what_failed(tiny, tmp_path, capsys):
    status = main(["benchmark", "--rounds", "2", "--output-dir", str(tmp_path)])
    captured = capsys.readouterr()
    assert status == 2
    assert "1 of 3 measurements failed. The first: The worker of wrong" in captured.err
    assert "No layer is called 'no_such_layer' here" in captured.err
    assert "Nowhere is not installed, so it is left out" in captured.out
    assert "ours : keras = " in captured.out
    assert "Keras: python " in captured.out
    files = {"benchmark.csv", "benchmark.txt", "benchmark.png"}
    assert {path.name for path in tmp_path.iterdir()} == files
    ours, keras, wrong = rows_of(tmp_path / "benchmark.csv")
    assert (ours["rounds"], keras["rounds"]) == ("2", "2")
    assert float(keras["ratio"]) > 0
    assert ours["parameters"] == keras["parameters"]
    assert "no_such_layer" in wrong["error"]
    text = (tmp_path / "benchmark.txt").read_text()
    assert text.startswith("processor: ") and "ours : keras = " in text


def test_progress_moves_on_terminals_only(capsys):
    class Terminal:
        def __init__(self, is_terminal):
            self.text, self.isatty = "", lambda: is_terminal

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    for is_terminal in (True, False):
        terminal = Terminal(is_terminal)
        progress = Progress(terminal)
        progress.counter = "[1/2] "
        progress.live("round 1 " + 500 * "x")
        progress.say("done")
        assert ("[1/2] round 1" in terminal.text) == is_terminal
        assert terminal.text.endswith("done\n")
        assert len(terminal.text) < 400


@pytest.mark.benchmark
def test_quick_run_takes_two_minutes(tmp_path):
    import time

    start = time.monotonic()
    run.benchmark(quick=True, output_dir=tmp_path)
    assert time.monotonic() - start < 120
    rows = rows_of(tmp_path / "benchmark.csv")
    assert {row["comparison"] for row in rows} >= {"swish_rnn", "bert_model"}
    assert all(float(row["median_seconds"]) > 0 for row in rows)
