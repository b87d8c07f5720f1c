"""Several recipes and seeds, each a process, in one table and one picture."""

import json
import os
import pathlib
import shutil
import signal
import time

import numpy as np
import processes
import pytest
import yaml
from toy_texts import write_corpus

from keras_recbert.cli import main
from keras_recbert.train.pretraining_curves import (
    save_pretraining_curves,
    training_seconds,
)
from keras_recbert.train.pretraining_table import (
    make_table,
    plan_table,
    pretrain_table,
)
from keras_recbert.train.table_runs import run_in_background


def results(seed, loss, perplexity, seconds=(60.0, 120.0), **scores):
    return {
        "num_parameters": 1234567,
        "seconds_per_step": 0.25,
        "history": {"loss": [9.0, loss], "seconds": seconds},
        "scores": {"val_books_masked_lm_perplexity": perplexity, **scores},
        "config": {"seed": seed},
    }


def test_a_row_is_the_mean_of_the_seeds_and_their_range():
    accuracy = {"val_books_next_sentence_accuracy": 0.75, "val_books_loss": 4.0}
    slow = (80.0, 160.0)
    table = make_table(
        {
            "bert": [results(0, 5.0, 100.0), results(1, 6.0, 200.0)],
            "lower": [results(0, 5.0, 120.0, slow, **accuracy)],
        }
    )
    header, _, bert, lower = table.splitlines()
    assert header == (
        "| recipe | encoder parameters | s/step | training loss | after 2.0 minutes "
        "| books masked lm perplexity | books next sentence accuracy | seeds |"
    )
    assert bert == (
        "| `bert` | 1,234,567 | 0.250 | 5.500 (5.000–6.000) | 5.500 (5.000–6.000) "
        "| 150.0 (100.0–200.0) | – | 0, 1 |"
    )
    # Half-way between its checkpoints, which are 80 seconds apart.
    assert lower == "| `lower` | 1,234,567 | 0.250 | 5.000 | 7.000 | 120.0 | 75.0 | 0 |"


def test_a_pause_and_compilation_do_not_count_as_training():
    history = {"seconds": [50.0, 60.0, 70.0, 1000.0, 1010.0]}
    np.testing.assert_allclose(training_seconds(history), [10, 20, 30, 40, 50])


def test_curves_are_drawn_of_runs_of_unequal_length(tmp_path):
    def history(length, scale):
        return {
            "loss": list(scale / np.arange(1, 1 + length)),
            "val_books_masked_lm_perplexity": list(
                9 * scale / np.arange(1, 1 + length)
            ),
            "seconds": list(np.arange(length)),
        }

    runs = {"bert": [history(3, 5.0), history(2, 6.0)], "swish": [history(1, 4.0)]}
    every = {"bert": 100, "swish": 50, "causal": 10}
    save_pretraining_curves(tmp_path / "curves.png", runs, every, "Two")
    both = (tmp_path / "curves.png").read_bytes()
    assert both.startswith(b"\x89PNG")
    # A run without the score: all are drawn by their loss.
    runs["causal"] = [{"loss": [3.0, 2.0], "seconds": [1.0, 2.0]}]
    save_pretraining_curves(tmp_path / "curves.png", runs, every, "Three")
    assert (tmp_path / "curves.png").read_bytes() != both
    assert len(list(tmp_path.iterdir())) == 1


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Folder with a corpus, a recipe that works and one that names no model."""
    folder = tmp_path_factory.mktemp("table")
    write_corpus(folder)
    recipe = {
        "model": "bert_tiny",
        "objectives": {"masked_lm": None},
        "steps": 4,
        "checkpoint_every": 2,
        "batch_size": 2,
        "sequence_length": 16,
        "warmup_steps": 1,
        "validation_examples": 4,
        "overrides": {"num_layers": 1, "hidden_dim": 16, "num_heads": 2},
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(recipe))
    (folder / "nothing.yaml").write_text(yaml.safe_dump({**recipe, "model": "no"}))
    (folder / "long.yaml").write_text(yaml.safe_dump({**recipe, "steps": 100_000}))
    (folder / "wrong.yaml").write_text("stebs: 3")
    return folder


def test_a_wrong_recipe_is_told_before_anything_runs(toy, tmp_path):
    recipes = [toy / "small.yaml", toy / "wrong.yaml"]
    with pytest.raises(ValueError, match="wrong.yaml: unknown key 'stebs'"):
        pretrain_table(recipes, [0], tmp_path / "table", corpus=str(toy / "corpus"))
    options = {"corpus": str(toy / "corpus")}
    for recipes, seeds, message in (
        ([toy / "small.yaml"] * 2, [0], "`recipes` must differ"),
        ([toy / "small.yaml"], [0, 1, 0], r"`seeds` must differ. Rec.*\[0, 1, 0\]"),
        ([toy / "small.yaml"], [], "`seeds` is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            pretrain_table(recipes, seeds, tmp_path / "table", **options)
    with pytest.raises(FileNotFoundError, match="No corpus at .*none"):
        pretrain_table(recipes, [0], tmp_path / "table", corpus=str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="No corpus at .*nowhere"):
        pretrain_table(
            [toy / "small.yaml"], [0], tmp_path / "table", {"a": "nowhere"}, **options
        )
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_keeps_its_own_validation(toy, tmp_path):
    own = {"own": str(toy / "corpus")}
    recipe = yaml.safe_load((toy / "small.yaml").read_text())
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**recipe, "validation": own}))
    options = {"corpus": str(toy / "corpus")}
    runs = plan_table([tmp_path / "own.yaml"], [0, 4], tmp_path / "table", **options)
    assert list(runs) == ["own-seed0", "own-seed4"]
    assert [config.seed for config in runs.values()] == [0, 4]
    assert all(config.validation == own for config in runs.values())


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_what_is_finished_is_kept_and_what_failed_is_named(
    toy, tmp_path, capsys, monkeypatch
):
    processes.fork_runs_of_tables(monkeypatch)
    corpus = str(toy / "corpus")
    options = {"corpus": corpus, "validation": {"toy": corpus}}
    recipes = [toy / "small.yaml", toy / "nothing.yaml"]
    with pytest.raises(RuntimeError, match="nothing-seed3 ended with status 2: .*'no'"):
        pretrain_table(recipes, [3], tmp_path, **options)
    first = (tmp_path / "small-seed3" / "results.json").stat()
    table = pretrain_table(recipes[:1], [3, 4], tmp_path, **options)
    assert (tmp_path / "small-seed3" / "results.json").stat() == first
    assert capsys.readouterr().out.splitlines() == [
        "[1/2] small-seed3",
        "[2/2] nothing-seed3",
        "[2/2] small-seed4",
    ]
    row = table.read_text().splitlines()[-1]
    assert row.startswith("| `small` | ")
    assert row.endswith("| 3, 4 |")
    assert (tmp_path / "curves.png").is_file()
    scores = [
        json.loads((tmp_path / f"small-seed{seed}" / "results.json").read_text())
        for seed in (3, 4)
    ]
    assert scores[0]["scores"] != scores[1]["scores"]

    # Scored on the whole of other corpora at the end, once.
    test = {"all": corpus}
    table = pretrain_table(recipes[:1], [3, 4], tmp_path, test, **options)
    assert capsys.readouterr().out.count("small-seed3, scored on all\n") == 1
    scored = [
        json.loads((tmp_path / f"small-seed{seed}" / "test_scores.json").read_text())
        for seed in (3, 4)
    ]
    values = [one["scores"]["test_all_masked_lm_perplexity"] for one in scored]
    low, high = sorted(values)
    assert f"{np.mean(values):.1f} ({low:.1f}–{high:.1f}) | 3, 4 |" in table.read_text()
    pretrain_table(recipes[:1], [3, 4], tmp_path, test, **options)
    assert capsys.readouterr().out == ""
    # Another run in its place is scored anew.
    path = tmp_path / "small-seed3" / "test_scores.json"
    path.write_text(json.dumps({**scored[0], "results_sha256": "0" * 64}))
    pretrain_table(recipes[:1], [3, 4], tmp_path, test, **options)
    assert capsys.readouterr().out == "[1/2] small-seed3, scored on all\n"
    assert json.loads(path.read_text()) == scored[0]

    # What is there must be what is asked for.
    with pytest.raises(ValueError, match=r"small-seed3 holds .* steps=4 \(now 8\)"):
        pretrain_table(recipes[:1], [3, 4], tmp_path, **options, steps=8)
    other = tmp_path / "other"
    shutil.copytree(corpus, other)
    description = json.loads((other / "corpus.json").read_text())
    description["shards"][0]["sha256"] = "0" * 64
    (other / "corpus.json").write_text(json.dumps(description))
    path = tmp_path / "small-seed3" / "results.json"
    held = json.loads(path.read_text())
    held["config"] |= {"corpus": str(other), "validation": {"toy": str(other)}}
    path.write_text(json.dumps(held))
    moved = {"corpus": str(other), "validation": {"toy": str(other)}}
    with pytest.raises(ValueError, match="small-seed3 holds .* another text in the"):
        pretrain_table(recipes[:1], [3], tmp_path, **moved)
    path.write_text("{")
    with pytest.raises(ValueError, match="results.json is damaged"):
        pretrain_table(recipes[:1], [3], tmp_path, **options)


@pytest.mark.slow
def test_in_the_background_it_can_be_stopped_and_goes_on(toy, tmp_path, capsys):
    corpus = str(toy / "corpus")
    arguments = ["table", str(toy / "long.yaml"), "--corpus", corpus]
    arguments += ["--seeds", "0", "--output-dir", str(tmp_path)]
    run = tmp_path / "long-seed0" / "checkpoints"

    def steps():
        names = [path.name for path in run.glob("step_*")]
        return max((int(name.removeprefix("step_")) for name in names), default=0)

    def start_until(step):
        pid, log = run_in_background(arguments, tmp_path)
        until = time.monotonic() + 120
        while steps() < step and time.monotonic() < until:
            time.sleep(0.2)
        assert steps() >= step, log.read_text()
        return pid, log

    pid, log = start_until(2)
    assert main(arguments) == 2
    assert "Another process is at work in" in capsys.readouterr().err
    stop(pid)
    reached = steps()
    pid, log = start_until(reached + 2)
    stop(pid)
    text = (tmp_path / "long-seed0.log").read_text()
    assert f"Resuming after step {reached:,}." in text
    lines = [line for line in log.read_text().splitlines() if line]
    assert len(lines) == 4
    assert set(lines[::2]) == {"[1/1] long-seed0"}
    assert all(line.startswith("recbert: stopped.") for line in lines[1::2])


def stop(pid):
    """What `kill PID` does; the process of the run ends too."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert children
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    until = time.monotonic() + 60
    while any(pathlib.Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.1)
