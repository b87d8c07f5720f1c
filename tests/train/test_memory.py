"""Runs that no machine can hold end in one line, before anything is written."""

import pytest
from toy_texts import write_corpus, write_glue_task

from keras_recbert.cli import main


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_glue_task(folder / "glue", "sst2")
    tiny = ("--model", "bert_tiny")
    data = ("--task", "sst2", "--data-dir", str(folder / "glue"))
    return {
        "finetune": ("finetune", *tiny, *data, "--vocabulary-size", "90"),
        "pretrain": ("pretrain", *tiny, "--corpus", write_corpus(folder)),
    }


@pytest.mark.parametrize(
    "command, options, message",
    [
        ("finetune", ("--overrides", "hidden_dim", 10**8), "hidden_dim=100000000"),
        ("finetune", ("--max-sequence-length", 10**12), "max_sequence_length=10"),
        ("pretrain", ("--overrides", "hidden_dim", 10**8), "hidden_dim=100000000"),
        ("pretrain", ("--batch-size", 10**8), "step of 12,800,000,000 tokens"),
        ("pretrain", ("--sequence-length", 10**6), "step of 64,000,000 tokens"),
        ("pretrain", ("--sequence-length", 10**12), "max_sequence_length=10"),
    ],
)
def test_what_cannot_fit_is_refused(
    commands, tmp_path, capsys, command, options, message
):
    argv = [*commands[command], *map(str, options), "--output-dir", str(tmp_path / "x")]
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "TB of memory, and this machine has" in error and "Lower " in error
    assert not (tmp_path / "x").exists()
