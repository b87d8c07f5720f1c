"""Figures of README, cards and recipes are those of the results file."""

import json
import pathlib
import statistics

import pytest
import yaml

import keras_recbert
from keras_recbert.models import zoo
from keras_recbert.train.fine_tuning_table import make_fine_tuning_table, percentages
from keras_recbert.train.table_runs import spread

ROOT = pathlib.Path(__file__).parents[1]
RECIPES = ROOT / "configs" / "recipes"
RESULTS = json.loads((RECIPES / "minilm_results.json").read_text(encoding="utf-8"))
MODELS = ("bert_minilm", "trans_blstm_minilm")
NAMES = {
    "cola": zoo.COLA,
    "mrpc": zoo.MRPC,
    "rte": zoo.RTE,
    "sst2": zoo.SST2,
    "stsb": zoo.STSB,
}


def mean_score(task, model):
    """Mean of the first score over the seeds, in percent; None if nothing was run."""
    runs = [one for one in RESULTS if (one["task"], one["model"]) == (task, model)]
    if not runs:
        return None
    return round(statistics.mean(next(iter(percentages(runs).values()))), 1)


def test_the_readme_has_the_table():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert make_fine_tuning_table(RESULTS) in readme


@pytest.mark.parametrize("model", MODELS)
def test_the_card_has_the_means(model):
    measured = {name: mean_score(task, model) for task, name in NAMES.items()}
    measured = {name: score for name, score in measured.items() if score is not None}
    assert keras_recbert.get_card(model).measured == measured
    assert len(measured) >= 3


@pytest.mark.parametrize("task", NAMES)
def test_the_recipe_names_the_means(task):
    recipe = yaml.safe_load((RECIPES / f"minilm_{task}.yaml").read_text())
    assert recipe["measured"] == {
        **{model: mean_score(task, model) for model in MODELS},
        "results": "minilm_results.json",
    }


OTHERS = {
    path: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((RECIPES / "tasks").glob("*_results.json"))
}
PLACES = sorted({(path, one["recipe"]) for path in OTHERS for one in OTHERS[path]})


@pytest.mark.parametrize("path, name", PLACES, ids=[name for _, name in PLACES])
def test_recipes_of_other_tasks_name_the_means(path, name):
    recipe = yaml.safe_load((RECIPES / "tasks" / f"{name}.yaml").read_text())
    runs = [one for one in OTHERS[path] if one["recipe"] == name]
    single = [one for one in runs if "averaged_seeds" not in one]
    main_scores = [100 * one["scores"][one["main_score"]] for one in single]
    assert recipe.pop("measured") == {
        "bert_minilm": round(statistics.mean(main_scores), 1),
        "results": path.name,
    }
    for one in runs:
        recipe["seed"] = one["config"]["seed"]
        assert recipe.items() <= one["config"].items()


def test_runs_follow_the_recipes():
    for one in RESULTS:
        recipe = yaml.safe_load((RECIPES / f"minilm_{one['task']}.yaml").read_text())
        recipe |= {"model": one["model"], "seed": one["config"]["seed"]}
        recipe.pop("measured")
        assert recipe.items() <= one["config"].items()
        assert one["run"].startswith(f"minilm_{one['task']}-{one['model']}-seed")


def test_a_pretrained_start_is_as_the_docs_say():
    name = "stsb_trans_blstm_half"
    results = json.loads((RECIPES / f"{name}_results.json").read_text())
    recipe = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())
    page = (ROOT / "docs" / "pretraining.md").read_text(encoding="utf-8")
    page = " ".join(page.split())
    for task in ("stsb", "sst2"):
        of_task = [one for one in results if one["task"] == task]
        assert len({one["steps"] for one in of_task}) == 1
        for start, key in (("preset", "from_preset"), ("random", "from_scratch")):
            runs = [one for one in of_task if f"-{start}-" in one["run"]]
            assert [one["config"]["seed"] for one in runs] == [0, 1, 2]
            scores = next(iter(percentages(runs).values()))
            assert spread(scores, 1) in page
            if task == "stsb":
                assert recipe["measured"][key] == round(statistics.mean(scores), 1)
