"""The command that runs recipes side by side: table."""

import pathlib
from typing import Annotated

import yaml
from tyro.conf import arg

from keras_recbert.cli.arguments import given
from keras_recbert.config import PretrainingConfig, TableConfig, recipe_class
from keras_recbert.core.folders import new_file


def table(config: Annotated[TableConfig, arg(name="")]):
    """Runs several recipes, encoders, options and seeds, and writes a table of them.

    The recipes are of `recbert finetune` and `recbert distill`, or all of `recbert
    pretrain`. What is
    finished is not run again, and what was stopped is resumed: run the same command
    again. The table is written anew after each run. What fails is named at the end.

    `--recipe FILE` takes these options, too, from a YAML file.
    """
    from keras_recbert.train.table_runs import run_in_background

    own = {
        "pre-training": {
            name: getattr(config, name) for name in ("corpus", "validation", "test")
        },
        "fine-tuning": {
            name: getattr(config, name) or None
            for name in (
                "data_dir",
                "models",
                "tasks",
                "grid",
                "tuning_fraction",
                "vectors",
                "teacher",
                "unlabelled",
            )
        },
    }
    shared = given(weights=config.weights, precision=config.precision)
    kind = _kind(config.recipes, own)
    options = {**given(**own[kind]), **shared}
    output_dir = config.output_dir or f"runs/{kind.replace('-', '')}"
    if kind == "pre-training":
        from keras_recbert.train.pretraining_table import plan_table as plan
        from keras_recbert.train.pretraining_table import pretrain_table as run

        beside = "curves.png"
    else:
        from keras_recbert.train.fine_tuning_table import finetune_table as run
        from keras_recbert.train.fine_tuning_table import (
            plan_fine_tuning_table as plan,
        )

        beside = "results.json"
    if config.background:
        plan(config.recipes, config.seeds, output_dir, **options)
        recipe = _write_recipe(config, output_dir)
        pid, log = run_in_background(["table", "--recipe", str(recipe)], output_dir)
        print(f"Process {pid} is at work; its output goes to {log}. Stop: kill {pid}")
        return
    written = run(config.recipes, config.seeds, output_dir, jobs=config.jobs, **options)
    picture = written.with_name("sweep.png")
    beside += f" and {picture.name}" if picture.exists() else ""
    print(f"Wrote {written} and {beside} beside it.")
    print(written.read_text(encoding="utf-8"))


def _write_recipe(config, output_dir):
    """Writes the options of a table as a recipe of it; returns its path."""
    values = {**vars(config), "output_dir": output_dir, "background": False}
    recipe = pathlib.Path(output_dir) / "sweep.yaml"
    recipe.parent.mkdir(parents=True, exist_ok=True)
    with new_file(recipe) as written:
        written.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return recipe


def _kind(recipes, own):
    """What the recipes are of; refuses options of the other kind.

    Args:
        recipes: list of paths.
        own: dict of a kind to its options, of which some are not None.
    """
    kinds = {
        recipe: "pre-training"
        if recipe_class(recipe) is PretrainingConfig
        else "fine-tuning"
        for recipe in recipes
    }
    if len(set(kinds.values())) > 1:
        named = ", ".join(f"{recipe} ({kind})" for recipe, kind in kinds.items())
        raise ValueError(
            f"A table is of one kind of recipe. Received: {named}. Make one of each."
        )
    (kind,) = set(kinds.values())
    for other in own.keys() - {kind}:
        for name, value in given(**own[other]).items():
            raise ValueError(
                f"`{name}` is of {other}, and these recipes are of {kind}. Received: "
                f"{name}={value!r}. Leave --{name.replace('_', '-')} out."
            )
    return kind
