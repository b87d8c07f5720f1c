"""Several fine-tuning recipes, encoders and seeds, each a process, in one table."""

import json
import re
import shutil

import pytest
import yaml
from toy_texts import VOCABULARY, write_glue_task

from keras_recbert.cli import main
from keras_recbert.train.fine_tuning_table import make_fine_tuning_table, percentages

SIZES = {"hidden_dim": 16, "num_heads": 2}


def results(model, seed, accuracy, f1=None, recipe="mrpc"):
    scores = {"validation_loss": 0.5, "validation_accuracy": accuracy}
    return {
        "run": f"{recipe}-{model}-seed{seed}",
        "task": "mrpc",
        "model": model,
        "num_parameters": 1234567,
        "train_examples": 3668,
        "validation_examples": {"validation": 408},
        "scores": scores if f1 is None else {**scores, "validation_f1": f1},
        "config": {"seed": seed, "epochs": 4},
    }


def test_errors_are_no_percents():
    one = results("bert_minilm", 0, 0.8)
    one["scores"] |= {"validation_mean_squared_error": 1.6, "validation_loss": 1.6}
    assert percentages([one]) == {"accuracy": [80.0]}


def test_a_row_is_the_mean_of_the_seeds_and_their_range():
    header, _, bert, swish, fast = make_fine_tuning_table(
        [
            results("bert_minilm", 0, 0.8, 0.86),
            results("swish_minilm", 0, 0.75),
            results("bert_minilm", 0, 0.5, recipe="fast_mrpc"),
            results("bert_minilm", 1, 0.82, 0.88),
        ]
    ).splitlines()
    assert header == (
        "| recipe | encoder | parameters | training examples | validation examples "
        "| epochs | validation scores in percent | seeds |"
    )
    assert bert == (
        "| mrpc | `bert_minilm` | 1,234,567 | 3,668 | 408 | 4 "
        "| accuracy 81.0 (80.0–82.0); f1 87.0 (86.0–88.0) | 0, 1 |"
    )
    assert swish == (
        "| mrpc | `swish_minilm` | 1,234,567 | 3,668 | 408 | 4 | accuracy 75.0 | 0 |"
    )
    assert fast.startswith("| fast_mrpc | `bert_minilm` |")
    assert fast.endswith("| accuracy 50.0 | 0 |")


@pytest.fixture
def command(tmp_path):
    """Function from recipes to the command; its folder is `tmp_path`."""
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    for task in ("sst2", "stsb"):
        write_glue_task(tmp_path / "glue", task)
        recipe = {
            "model": "bert_tiny",
            "task": task,
            "epochs": 1,
            "vocabulary": str(tmp_path / "vocab.txt"),
            "overrides": {**SIZES, "num_layers": 1},
        }
        (tmp_path / f"{task}.yaml").write_text(yaml.safe_dump(recipe))

    def make(*recipes):
        paths = [str(tmp_path / f"{recipe}.yaml") for recipe in recipes]
        options = f"--data-dir {tmp_path}/glue --output-dir {tmp_path}/table"
        return ["table", *paths, *options.split()]

    return make


def test_wrong_input_is_told_before_anything_runs(command, tmp_path, capsys):
    one, steps = command("sst2"), str(tmp_path / "steps.yaml")
    (tmp_path / "steps.yaml").write_text("steps: 2\nmodel: bert_tiny\n")
    (tmp_path / "shared.yaml").write_text("model: bert_tiny\nseed: 2\n")
    for arguments, message in (
        (command("sst2", "none"), "There is no recipe .*none.yaml"),
        (command("sst2", "sst2"), "`recipes` must differ"),
        ([*one, "--seeds", "0", "0"], "`seeds` must differ"),
        ([*one, "--models", "bert_tiny", "bert_tiny"], "`models` must differ"),
        ([*one, "--models", "bert_tny"], "bert_tny.*bert_tiny"),
        ([*one, "--seeds", "-1"], "`seed` must be from 0"),
        ([*one, "--corpus", "c"], "`corpus` is of pre-training, and these recipes are"),
        (
            command("sst2", "steps"),
            "A table is of one kind of recipe. .*steps.yaml",
        ),
        (command("shared"), "shared.yaml: expected a recipe of `recbert finetune`"),
        (one[:2], "sst2-bert_tiny-seed0: say where the examples are: data_dir"),
        (["table", steps], "Name the corpus: corpus .--corpus DIR"),
        (["table", steps, "--models", "a"], "`models` is of fine-tuning"),
        ([*one, "--precision", "half"], "`precision` must be auto or float32 or"),
    ):
        assert main(arguments) == 2
        assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "table").exists()


@pytest.mark.slow  # processes of their own
def test_finished_runs_are_kept_and_collected(command, tmp_path, capsys):
    run = [*command("stsb", "sst2"), "--models", "bert_tiny", "bert_rab_tiny"]
    assert main([*run, "--seeds", "3"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "[1/4] stsb-bert_tiny-seed3"
    assert printed[4].endswith("results.json beside it.")
    folder = tmp_path / "table"
    table = (folder / "table.md").read_text()
    assert table in "\n".join(printed) + "\n"
    tasks = [line.split(" | ")[:2] for line in table.splitlines()[2:]]
    assert tasks == [
        ["| stsb", "`bert_tiny`"],
        ["| stsb", "`bert_rab_tiny`"],
        ["| sst2", "`bert_tiny`"],
        ["| sst2", "`bert_rab_tiny`"],
    ]
    text = (folder / "results.json").read_text()
    assert str(tmp_path) not in text  # no place on this machine
    assert [one["run"] for one in json.loads(text)] == [
        line.partition("] ")[2] for line in printed[:4]
    ]

    before = (folder / "stsb-bert_tiny-seed3" / "results.json").stat()
    assert main([*run, "--seeds", "3"]) == 0
    assert "[" not in capsys.readouterr().out.partition("Wrote")[0]
    assert (folder / "stsb-bert_tiny-seed3" / "results.json").stat() == before

    # The file alone is enough, on another machine too.
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(folder / "results.json", tmp_path / "elsewhere")
    run[run.index("--output-dir") + 1] = str(tmp_path / "elsewhere")
    assert main([*run, "--seeds", "3"]) == 0
    assert "[" not in capsys.readouterr().out.partition("Wrote")[0]
    assert (tmp_path / "elsewhere" / "table.md").read_text() == table
    assert len(list((tmp_path / "elsewhere").iterdir())) == 2

    recipe = yaml.safe_load((tmp_path / "stsb.yaml").read_text())
    (tmp_path / "stsb.yaml").write_text(yaml.safe_dump({**recipe, "epochs": 2}))
    assert main([*run, "--seeds", "3"]) == 2
    assert "stsb-bert_tiny-seed3 holds a run with other" in capsys.readouterr().err
    run[run.index("--output-dir") + 1] = str(folder)
    assert main([*run, "--seeds", "3"]) == 2
    assert "epochs=1 (now 2)" in capsys.readouterr().err
