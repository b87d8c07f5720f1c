"""Grids, tuning on a part of train, several jobs, and runs that fail.

The processes are real; what they run is a script that trains nothing. Its score is 0.9
where the learning rate is 2e-3, less elsewhere, and it fails with learning rate 1.
"""

import json
import re
import sys
import time

import processes
import pytest
import yaml
from toy_texts import VOCABULARY, write_glue_task

from keras_recbert.cli import main
from keras_recbert.train import table_runs
from keras_recbert.train.fine_tuning_plan import plan_rows
from keras_recbert.train.fine_tuning_table import plan_fine_tuning_table

SCRIPT = """
import json, pathlib, sys, yaml
config = yaml.safe_load(open(sys.argv[3]))
if config["learning_rate"] == 1.0:
    print("recbert: error: the loss is NaN")
    print("(something else)")
    sys.exit(2)
score = 0.9 - 50 * abs(config["learning_rate"] - 2e-3) - 0.01 * config["seed"]
folder = pathlib.Path(config["output_dir"])
folder.mkdir()
(folder / "results.json").write_text(json.dumps({
    "model": config["model"], "task": config["task"], "num_parameters": 7,
    "learning_rate": config["learning_rate"], "train_examples": 5,
    "validation_examples": {"validation": 3}, "main_score": "validation_accuracy",
    "scores": {"validation_loss": 0.1, "validation_accuracy": score},
    "config": config,
}))
"""
RATES = "learning_rate=0.001,0.002,1.0"


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Function from options to the command, of two recipes; in `tmp_path`."""
    (tmp_path / "script.py").write_text(SCRIPT)
    program = (sys.executable, str(tmp_path / "script.py"))
    monkeypatch.setattr(table_runs, "RECBERT", program)
    monkeypatch.setattr(table_runs, "POLL_SECONDS", 0.01)
    for task in ("sst2", "rte"):
        recipe = {"model": "bert_tiny", "task": task, "epochs": 1}
        (tmp_path / f"{task}.yaml").write_text(yaml.safe_dump(recipe))
        write_glue_task(tmp_path / "glue", task)

    def command(*options, recipes=("sst2", "rte")):
        paths = [str(tmp_path / f"{recipe}.yaml") for recipe in recipes]
        places = ["--data-dir", str(tmp_path / "glue")]
        places += ["--output-dir", str(tmp_path / "out")]
        return ["table", *paths, *places, *options]

    return command


def results_in(folder):
    return {
        one["run"]: one for one in json.loads((folder / "results.json").read_text())
    }


def test_a_grid_runs_in_all_combinations(sweep, tmp_path, capsys):
    grid = ["--grid", "learning_rate=1e-3,2e-3", "overrides.num_layers=1,2"]
    run = sweep(*grid, recipes=["rte"])
    assert main([*run, "--seeds", "0", "4", "--jobs", "3"]) == 0
    found = results_in(tmp_path / "out")
    assert len(found) == 2 * 2 * 2
    one = found["rte-learning_rate=0.002-overrides.num_layers=1-bert_tiny-seed4"]
    assert one["recipe"] == "rte"
    assert one["point"] == {"learning_rate": 0.002, "overrides.num_layers": 1}
    assert one["config"]["learning_rate"] == 0.002
    assert one["config"]["overrides"] == {"num_layers": 1}
    assert "stage" not in one
    printed = capsys.readouterr().out
    assert "[8/8] rte-learning_rate=0.00" in printed  # three at once end in any order
    row = "| rte-learning_rate=0.002-overrides.num_layers=1 | `bert_tiny` | 7 | 5 | 3 "
    assert row + "| 1 | accuracy 88.0 (86.0–90.0) | 0, 4 |" in printed


def test_options_are_chosen_on_train_and_scored_once(sweep, tmp_path, capsys):
    grid = ["--grid", RATES.replace(",1.0", ",0.0025")]
    run = sweep(*grid, "--tuning-fraction", "0.2", recipes=["rte"])
    run += ["--models", "bert_tiny", "swish_tiny", "--seeds", "0", "1"]
    assert main(run) == 0
    printed = capsys.readouterr().out
    found = results_in(tmp_path / "out")
    final = {name: one for name, one in found.items() if one["stage"] == "tuned"}
    assert list(final) == [
        f"rte-tuned-learning_rate=0.002-{model}-seed{seed}"
        for seed in (0, 1)
        for model in ("bert_tiny", "swish_tiny")
    ]
    for one in found.values():
        config = one["config"]
        is_final = one["stage"] == "tuned"
        assert config["tuning_fraction"] == (None if is_final else 0.2)
        assert config["validation_fraction"] is None
        # One part of train for all seeds, and no epoch chosen by its score.
        assert (config["split_seed"], config["keep_epoch"]) == (0, "last")
    assert len(found) - len(final) == 3 * 2 * 2
    assert "held-out scores in percent" in printed
    assert (
        "- rte, `swish_tiny`: learning_rate 0.002 of 3 combinations, by accuracy "
        "89.5 (89.0–90.0) on 3 examples held out of train, 2 seeds.\n"
    ) in (tmp_path / "out" / "table.md").read_text()

    before = (tmp_path / "out" / "results.json").read_text()
    assert main(run) == 0
    assert "[" not in capsys.readouterr().out.partition("Wrote")[0]
    assert (tmp_path / "out" / "results.json").read_text() == before


def test_a_choice_that_was_made_before_leaves_the_table(sweep, tmp_path):
    def tuned():
        rows = (tmp_path / "out" / "table.md").read_text().splitlines()
        return [row.split(" | ")[0][2:] for row in rows if "-tuned-" in row]

    tuning = ["--tuning-fraction", "0.2", "--seeds", "0", "--grid"]
    rates = [sweep(*tuning, "learning_rate=0.001,0.0015", recipes=["rte"])]
    rates.append([*rates[0][:-1], "learning_rate=0.001,0.0015,0.002"])
    assert main(sweep(*tuning, "learning_rate=0.002,0.003", recipes=["sst2"])) == 0
    for run, rate in ((rates[0], 0.0015), (rates[1], 0.002), (rates[0], 0.0015)):
        assert main(run) == 0
        assert tuned() == [
            "sst2-tuned-learning_rate=0.002",  # of another command
            f"rte-tuned-learning_rate={rate}",
        ]
    kept = results_in(tmp_path / "out")
    assert "rte-tuned-learning_rate=0.002-bert_tiny-seed0" in kept


def test_what_is_finished_needs_no_vocabulary_again(sweep, tmp_path, capsys):
    words = tmp_path / "vocab.txt"
    words.write_text("\n".join(VOCABULARY))
    recipe = {"model": "bert_tiny", "task": "rte", "vocabulary": str(words)}
    recipe["learning_rate"] = 2e-3
    (tmp_path / "rte.yaml").write_text(yaml.safe_dump(recipe))
    assert main(sweep("--seeds", "0", recipes=["rte"])) == 0
    words.unlink()
    assert main(sweep("--seeds", "0", recipes=["rte"])) == 0
    capsys.readouterr()
    assert main(sweep("--seeds", "0", "1", recipes=["rte"])) == 2
    assert "rte-bert_tiny: No vocabulary file at" in capsys.readouterr().err


def test_what_fails_is_named_and_stops_nothing(sweep, tmp_path, capsys):
    run = sweep("--grid", RATES, "--tuning-fraction", "0.2", "--seeds", "3")
    assert main(run) == 2
    told = capsys.readouterr()
    assert "2 runs failed; the others are in the table." in told.err
    assert re.search(
        r"sst2-tuning-learning_rate=1.0-bert_tiny-seed3 ended with status 2: recbert: "
        r"error: the loss is NaN \(its output is in .*seed3.log\)",
        told.err,
    )
    found = results_in(tmp_path / "out")
    assert len(found) == 2 * (2 + 1)
    assert "rte-tuned-learning_rate=0.002-bert_tiny-seed3" in found
    table = (tmp_path / "out" / "table.md").read_text()
    assert "of 2 combinations; 1 more did not run with all seeds, by" in table
    # A try that fails again is told by its own output.
    assert main(run) == 2
    assert "2 runs failed" in capsys.readouterr().err
    run[run.index(RATES)] = "learning_rate=1.0"
    assert main(run) == 2
    assert "sst2, bert_tiny has no options with which all" in capsys.readouterr().err


def test_tasks_stand_in_for_those_of_a_recipe(sweep, tmp_path):
    options = {"models": ["bert_tiny"], "data_dir": str(tmp_path / "glue")}
    write_glue_task(tmp_path / "glue", "stsb")
    rows = plan_fine_tuning_table(
        [tmp_path / "sst2.yaml"], [0], tmp_path / "o", tasks=["stsb", "rte"], **options
    )
    assert [(row.recipe, row.config.task) for row in rows] == [
        ("sst2-stsb", "stsb"),
        ("sst2-rte", "rte"),
    ]
    assert rows[0].name(2) == "sst2-stsb-bert_tiny-seed2"


def test_each_encoder_starts_from_weights_of_its_own(sweep, tmp_path):
    models = ["bert_tiny", "swish_tiny"]
    rows = plan_rows(
        [tmp_path / "sst2.yaml"],
        models,
        None,
        None,
        data_dir="D",
        weights="pretrained/{model}/preset",
    )
    assert [row.config.weights for row in rows] == [
        f"pretrained/{model}/preset" for model in models
    ]


def test_wrong_sweeps_are_told_before_anything_runs(sweep, tmp_path, capsys):
    one = sweep(recipes=["sst2"])
    (tmp_path / "early.yaml").write_text("task: sst2\nearly_stopping: 2\n")
    (tmp_path / "own.yaml").write_text("train: a.csv\nepochs: 2\n")
    (tmp_path / "steps.yaml").write_text("steps: 2\nmodel: bert_tiny\n")
    rates = ["--grid", "learning_rate=1e-3,2e-3"]
    tuning = [*rates, "--tuning-fraction", "0.1"]
    own = ["table", str(tmp_path / "own.yaml"), "--output-dir", f"{tmp_path}/out"]
    for arguments, message in (
        ([*one, "--grid", "learning_rat=1"], "unknown key 'learning_rat'. Did you"),
        ([*one, "--grid", "learning_rate=fast"], "`learning_rate` must be of type"),
        ([*one, "--grid", "learning_rate=-1"], "sst2.yaml with learning_rate=-1: `lea"),
        ([*one, "--grid", "epochs=2,2"], "values of `epochs` must be one or more, and"),
        ([*one, "--grid", "seed=1,2"], "`seed` does not go into a grid. Use seeds"),
        ([*one, "--grid", "model=a"], "Use models .--models NAME"),
        ([*one, "--tuning-fraction", "0.1"], "`tuning_fraction` chooses among"),
        ([*one, *rates, "--tuning-fraction", "1"], "must be above 0 and below 1"),
        ([*one, "--jobs", "0"], "`jobs` must be at least 1"),
        ([*one, "--tasks", "rte", "rte"], "`tasks` must differ"),
        ([*one, "--tasks", "rte", "nope"], "sst2-nope-bert_tiny: No task is called 'n"),
        (
            [*one, "--grid", "overrides.num_layer=1,2"],
            "sst2-overrides.num_layer=1-bert_tiny: .* no argument 'num_layer'",
        ),
        ([*one, "--grid", "weights=a,b"], "weights=a-bert_tiny: There is no folder a"),
        (
            [*one, "--models", "bilstm_student", "--vectors", "nix.txt"],
            "sst2-bilstm_student: There is no file of word vectors at nix.txt",
        ),
        ([*one, "--grid", "vocabulary=a,b"], "No vocabulary file at a"),
        ([*one, "--data-dir", "D"], "sst2-bert_tiny: The data folder D does not"),
        ([*one, "--tasks", "rte", "mrpc"], "sst2-mrpc-bert_tiny: MRPC: .*not found"),
        (
            sweep(*tuning, recipes=["early"]),
            "early: `early_stopping` chooses the epoch",
        ),
        ([*own, *tuning], "own: tuning needs a table to score the chosen options on"),
        (["table", str(tmp_path / "steps.yaml"), *rates], "`grid` is of fine-tuning"),
    ):
        assert main(arguments) == 2, arguments
        assert re.search(message, capsys.readouterr().err), arguments
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        main([*one, "--grid", "learning_rate"])
    told = " ".join(capsys.readouterr().err.split())
    assert "expected OPTION=VALUE,VALUE, got 'learning_rate'" in told


def test_a_sweep_is_a_recipe_too(sweep, tmp_path, capsys):
    recipe = {
        "recipes": [str(tmp_path / "sst2.yaml")],
        "grid": {"learning_rate": [1e-3, 2e-3]},
        "seeds": [5],
        "data_dir": str(tmp_path / "glue"),
        "output_dir": str(tmp_path / "out"),
    }
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(recipe))
    assert main(["table", "--recipe", str(tmp_path / "sweep.yaml")]) == 0
    assert len(results_in(tmp_path / "out")) == 2
    (tmp_path / "sweep.yaml").write_text(
        "recipes: [a]\ngrid: {learning_rate: [3e-5]}\n"
    )
    assert main(["table", "--recipe", str(tmp_path / "sweep.yaml")]) == 2
    assert "YAML reads 3.0e-4 as a number, 3e-4 as" in capsys.readouterr().err


def test_what_is_stopped_stops_its_processes(sweep, tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(
        "import pathlib, time\n"
        f"pathlib.Path({str(tmp_path)!r}, 'began').write_text('')\n"
        "time.sleep(60)\n"
        f"pathlib.Path({str(tmp_path)!r}, 'ended').write_text('')\n"
    )
    processes = []
    popen = table_runs.subprocess.Popen
    monkeypatch.setattr(
        table_runs.subprocess,
        "Popen",
        lambda *args, **kwargs: (
            processes.append(popen(*args, **kwargs)) or processes[-1]
        ),
    )

    sleep = time.sleep

    def interrupt(seconds):
        if (tmp_path / "began").exists():
            monkeypatch.setattr(table_runs.time, "sleep", sleep)
            raise KeyboardInterrupt

    monkeypatch.setattr(table_runs.time, "sleep", interrupt)
    start = time.monotonic()
    assert main(sweep("--jobs", "2")) == 130
    assert time.monotonic() - start < 30
    assert [process.poll() is not None for process in processes] == [True, True]


@pytest.mark.slow
def test_a_part_of_train_chooses_and_the_validation_set_scores(tmp_path, monkeypatch):
    processes.fork_runs_of_tables(monkeypatch)
    write_glue_task(tmp_path / "glue", "sst2")
    recipe = {
        "model": "bert_tiny",
        "task": "sst2",
        "epochs": 2,
        "vocabulary_size": 90,
        "overrides": {"hidden_dim": 16, "num_heads": 2, "num_layers": 1},
    }
    (tmp_path / "toy.yaml").write_text(yaml.safe_dump(recipe))
    run = ["table", str(tmp_path / "toy.yaml"), "--data-dir", str(tmp_path / "glue")]
    run += ["--grid", "learning_rate=1e-3,1e-2", "--tuning-fraction", "0.25"]
    assert main([*run, "--seeds", "0", "--output-dir", str(tmp_path / "out")]) == 0
    *tried, final = results_in(tmp_path / "out").values()
    assert [one["stage"] for one in (*tried, final)] == ["tuning", "tuning", "tuned"]
    for one in (*tried, final):
        assert one["best_epoch"] == 2
        history = one["history"][one["main_score"]]
        assert one["scores"][one["main_score"]] == history[1]
    num_held = tried[0]["validation_examples"]["validation"]
    assert tried[0]["train_examples"] + num_held == final["train_examples"]
    assert "25% of train, held out by" in tried[0]["notes"][-1]
    assert final["notes"] == []
    assert tried[0]["checksums"]["validation"] != final["checksums"]["validation"]
