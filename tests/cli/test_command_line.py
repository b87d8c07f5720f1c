import os
import signal
import subprocess
import sys
import time

import pytest

import keras_recbert
from keras_recbert.cli import COMMANDS, main

# Listing -----------------------------------------------------------------------


def test_list_shows_the_zoo(recbert):
    status, out, _ = recbert("list")
    assert status == 0
    header, *rows = out.splitlines()
    assert header.split() == ["model", "source"]
    assert [row.split()[0] for row in rows] == keras_recbert.list_models()


def test_list_takes_a_pattern(recbert):
    _, out, _ = recbert("list", "*blstm*")
    names = [row.split()[0] for row in out.splitlines()[1:]]
    assert names == keras_recbert.list_models("*blstm*")
    assert "trans_blstm_base" in names
    assert recbert("list", "blstm")[1] == out
    assert recbert("list", "bert_base")[1].count("\n") == 2  # a whole name
    status, out, err = recbert("list", "*gru*")
    assert (status, out) == (2, "")
    assert "No model matches '*gru*'. `recbert list` shows all." in err


def test_list_counts_parameters(recbert):
    _, out, _ = recbert("list", "bert_[tb]*", "--params")
    counts = {row.split()[0]: row.split()[1] for row in out.splitlines()[1:]}
    assert counts == {"bert_tiny": "4,385,920", "bert_base": "109,482,240"}


# Help and mistakes -------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_every_command(recbert, argv):
    status, out, _ = recbert(*argv)
    assert status == 0
    for command in COMMANDS:
        assert command in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(recbert, command):
    status, out, _ = recbert(command, "--help")
    assert status == 0
    assert f"recbert {command}" in out
    assert COMMANDS[command].__doc__.split(".")[0].split("\n")[0] in " ".join(
        out.split()
    )


def test_help_is_instant_and_loads_no_tensorflow():
    script = (
        "import sys; from keras_recbert.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        "main(['list'])\nassert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["export", "none.keras", "out"], "There is no file none.keras"),
        (["predict", "none", "a text"], "There is no SavedModel at none"),
        (["vocabulary", "none.txt"], "No text file at none.txt"),
        (["finetune", "--recipe", "none.yaml"], "There is no recipe none.yaml"),
        (["finetune", "--recipe"], "--recipe needs the path of a YAML file"),
        (["distill", "none.yaml"], "There is no recipe none.yaml"),
        (["distill", "a.yaml", "--recipe", "b.yaml"], "Name one recipe. Received: a."),
        (["distill", "a.yaml", "--recipe=b.yaml"], "Name one recipe. Received: a.yaml"),
        (["finetune", "--model", "bert_tinny"], "Did you mean 'bert_tiny'"),
        (
            ["finetune", "--task", "sst3", "--data-dir", "."],
            "No task is called 'sst3'. Did you mean 'sst2'",
        ),
        (["finetune"], "Say where the examples are: data_dir (--data-dir DIR)"),
        (["finetune", "--weights", "none"], "There is no folder none"),
        (["list", "--tasks", "squat*"], "No task matches 'squat*'. `recbert list --ta"),
        (
            ["list", "--tasks", "--params"],
            "A data set has no parameters. Leave out --p",
        ),
        (["convert", "none", "out"], "There is no folder none"),
        (["predict", "somewhere"], "nothing to ask: give one text or more"),
        (["quickstart", "--model", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["explain", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["explain", "none.keras"], "There is no file none.keras"),
        (
            ["explain", "swish_tiny", "--implementation", "fast"],
            "must be one of auto, reference, loop, xla. Received: "
            "implementation='fast'",
        ),
        (["profile", "swish_tyny"], "Did you mean 'swish_tiny'"),
        (["profile", "swish_tiny", "--shape", "8"], "A shape is rows x tokens"),
        (
            ["prepare", "none.txt", "--output-dir", "out", "--vocabulary-size", "99"],
            "none.txt",
        ),
        (["prepare", "none.txt", "--output-dir", "out"], "`vocabulary_size`, to learn"),
        (["pretrain"], "Pass corpus=DIR (--corpus DIR), a folder that `recbert prep"),
        (["pretrain", "--corpus", "none"], "none"),
        (["pretrain", "--recipe", "none.yaml"], "There is no recipe none.yaml"),
        (["table", "none.yaml", "--corpus", "c"], "There is no recipe none"),
        (["evaluate", "none.keras", "--corpora", "a", "b"], "No corpus at b"),
    ],
)
def test_mistakes_are_one_clear_line(recbert, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECBERT_TRACEBACK", raising=False)
    status, out, err = recbert(*argv)
    assert status == 2
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("recbert: error: ")
    assert message in first
    assert second == "(RECBERT_TRACEBACK=1 shows where it arose.)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lst"], "lst"),
        (["list", "--parms"], "--parms"),
        (["finetune", "--epoch", "3"], "--epoch"),
        (["finetune", "--epochs", "many"], "many"),
        (["finetune", "--epochs", "0"], "`epochs` must be at least 1"),
        (["pretrain", "--steps", "0"], "`steps` must be at least 1"),
        (["table", "a.yaml", "--corpora", "a"], "--corpora"),
        (["export", "model.keras"], "required"),
    ],
)
def test_wrong_flags_are_told(recbert, argv, message):
    status, _, err = recbert(*argv)
    assert status == 2
    assert message in err


def test_a_traceback_on_request(monkeypatch):
    monkeypatch.setenv("RECBERT_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError, match="There is no file none.keras"):
        main(["export", "none.keras", "out"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_a_command_with_a_message(recbert, monkeypatch, number):
    cleaned = []

    def work():
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            cleaned.append(number)

    monkeypatch.setitem(COMMANDS, "list", work)
    handler = signal.getsignal(number)
    status, out, err = recbert("list")
    assert (status, out) == (128 + number, "")
    assert err.startswith("\nrecbert: stopped. The same command resumes a run of ")
    assert cleaned == [number]
    assert signal.getsignal(number) is handler


def test_an_ignored_signal_stays_ignored(recbert, monkeypatch):
    monkeypatch.setitem(COMMANDS, "list", lambda: os.kill(os.getpid(), signal.SIGHUP))
    handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        assert recbert("list") == (0, "", "")
    finally:
        signal.signal(signal.SIGHUP, handler)
