"""Recipes of a student, with a teacher and without, in one table."""

import dataclasses
import json

import processes
import pytest
import yaml
from own_tables import write_rows
from toy_texts import reviews, tiny_model

from keras_recbert.cli import main
from keras_recbert.config import DistillationConfig, FineTuningConfig, recipe_class
from keras_recbert.train.fine_tuning_plan import plan_rows
from keras_recbert.train.fine_tuning_table import plan_fine_tuning_table

STUDENT = {
    "model": "bert_tiny",
    "overrides": {"num_layers": 1, "hidden_dim": 8, "num_heads": 2},
    "vocabulary_size": 60,
    "epochs": 1,
    "max_sequence_length": 16,
}


def recipes(folder, with_teacher):
    texts, labels = reviews(24)
    rows = list(zip(texts, labels.tolist(), strict=True))
    train = write_rows(folder / "train.csv", ("text", "label"), rows)
    common = {**STUDENT, "train": train, "validation": train}
    distilled = {**common, "n_iter": 2, "pos_probability": 0.0}
    if with_teacher:
        distilled["teacher"] = str(folder / "teacher")
        tiny_model().save_preset(folder / "teacher")
    paths = []
    for name, values in (("labels", common), ("distilled", distilled)):
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(yaml.safe_dump(values))
    return list(map(str, paths))


@pytest.mark.slow
def test_the_table(tmp_path, monkeypatch, capsys):
    processes.fork_runs_of_tables(monkeypatch)
    teachers = [str(tmp_path / name) for name in ("teacher", "second")]
    for teacher, names in zip(teachers, (["0", "1"], ["1", "0"]), strict=True):
        tiny_model(label_names=names).save_preset(teacher)
    labels, distilled = recipes(tmp_path, with_teacher=False)
    assert recipe_class(labels) is FineTuningConfig
    assert recipe_class(distilled) is DistillationConfig
    folder = tmp_path / "table"
    command = ["table", labels, distilled, "--seeds", "0", "1"]
    command += ["--teacher", *teachers, "--output-dir", str(folder)]
    assert main(command) == 0
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("| labels | `bert_tiny` |") for row in rows)
    (row,) = [row for row in rows if row.startswith("| distilled | ")]
    assert "teacher agreement" in row and row.endswith("| 0, 1 |")
    # Both seeds learned from one set.
    (shared,) = (folder / "transfer_sets").iterdir()
    found = json.loads((folder / "results.json").read_text())
    students = [one for one in found if one["run"].startswith("distilled")]
    assert [one["teacher"]["members"] for one in students] == [2, 2]
    made = [one["transfer_set"] for one in students]
    assert made[0] == made[1]
    assert all("teacher" not in one["config"] for one in found)


def test_other_texts_have_a_set_of_their_own(tmp_path):
    _, distilled = recipes(tmp_path, with_teacher=True)
    grid = {"n_iter": [0, 3], "learning_rate": [1e-3, 2e-3]}
    rows = plan_fine_tuning_table([distilled], [0], tmp_path / "table", grid=grid)
    keys = [row.config.texts_key() for row in rows]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    # Each seed holds other texts out, unless their split has a seed of its own.
    for split_seed, number in ((None, 2), (3, 1)):
        options = {"validation_fraction": 0.5, "split_seed": split_seed}
        options |= {"train": None, "validation": None, "task": "boolq"}
        config = dataclasses.replace(rows[0].config, **options)
        seeds = [dataclasses.replace(config, seed=seed) for seed in (0, 1)]
        assert len({one.texts_key() for one in seeds}) == number


def test_vectors_and_unlabelled_texts_go_to_the_recipes_that_take_them(tmp_path):
    both = recipes(tmp_path, with_teacher=True)
    more = write_rows(tmp_path / "more.csv", ("text",), [("a film",)])
    shared = {"vectors": "random", "unlabelled": more}
    folder = tmp_path / "table"
    labels, distilled = plan_rows(both, None, None, None, **shared)
    assert labels.config.vectors == distilled.config.vectors == "random"
    assert distilled.config.unlabelled == shared["unlabelled"]
    own = plan_fine_tuning_table(both, [0], folder)
    assert own[1].config.unlabelled is None is own[1].config.vectors
    assert own[1].config.texts_key() != distilled.config.texts_key()


def test_teachers_and_texts_are_there_before_anything_runs(tmp_path):
    both, table = recipes(tmp_path, with_teacher=True), tmp_path / "table"
    for changes, message in (
        (
            {"teacher": [str(tmp_path / "teacher"), "gone"]},
            "distilled-.*gone holds no teacher",
        ),
        ({"unlabelled": "more.txt"}, "distilled-.*more.txt"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            plan_fine_tuning_table(both, [0], table, **changes)
    (tmp_path / "train.csv").unlink()
    with pytest.raises(FileNotFoundError, match="labels-bert_tiny: .*train.csv"):
        plan_fine_tuning_table(both, [0], table)
    assert not table.exists()


@pytest.mark.parametrize("option", ["vectors", "teacher", "unlabelled"])
def test_options_of_fine_tuning_are_refused_for_pretraining(option, tmp_path, capsys):
    recipe = tmp_path / "bert.yaml"
    recipe.write_text("model: bert_tiny\nsteps: 3\n")
    command = ["table", str(recipe), f"--{option}", "x", "--output-dir", str(tmp_path)]
    assert main(command) == 2
    assert f"`{option}` is of fine-tuning" in capsys.readouterr().err
