"""Several fine-tuning recipes, encoders and seeds in one table."""

import dataclasses
import pathlib

from keras_recbert.config import FineTuningConfig, read_recipe
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place, locked_folder, new_file
from keras_recbert.train.table_runs import (
    check_different,
    finished,
    markdown_table,
    read_result,
    refuse_other_options,
    run_each,
    spread,
)

RESULTS = "results.json"
# Where things are on one machine; what a table is made of leaves them out.
PLACES = ("data_dir", "output_dir", "weights", "vocabulary")


def finetune_table(recipes, seeds, output_dir, models=None, **options):
    """Runs each recipe with each encoder and seed; writes `table.md`, `results.json`.

    Each run is a process of its own, `recbert finetune`, in the folder
    `RECIPE-MODEL-seedSEED`. What is finished is not run again, what was stopped is
    resumed, so the same command may be stopped and run again at any time. What
    `results.json` lists is finished too, so that file alone carries a table to another
    machine. The seeds take turns: everything with the first seed, then everything with
    the second. Both files are written anew after each run.

    Args:
        recipes, seeds, output_dir, models, **options: as `plan_fine_tuning_table`.

    Returns:
        Path of the table.

    Raises:
        ValueError, OSError: as `plan_fine_tuning_table`; before anything runs.
        RuntimeError: if a run fails; says which and where its output is.
    """
    configs = plan_fine_tuning_table(recipes, seeds, output_dir, models, **options)
    folder = pathlib.Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(folder):
        done = _finished(configs, folder)
        run_each("finetune", configs, folder, lambda: _report(folder, configs), done)
        _report(folder, configs)
    return folder / "table.md"


def plan_fine_tuning_table(recipes, seeds, output_dir, models=None, **options):
    """The runs of a table, checked.

    Args:
        recipes: paths of YAML files with the fields of `FineTuningConfig`.
        seeds: list of int.
        output_dir: folder.
        models: names of encoders that all recipes are run with; by default each
            recipe's own.
        **options: fields of `FineTuningConfig` that all runs share, such as `data_dir`,
            `weights` and `precision`. Nothing is exported.

    Returns:
        dict of `RECIPE-MODEL-seedSEED` to `FineTuningConfig`, in the order of the
        runs.

    Raises:
        ValueError: if a recipe is wrong, two have one name, a seed or an encoder comes
            twice, or a run that is there was made with other options.
        OSError: if the folder cannot be written, or something cannot be read.
    """
    check_installed("`recbert table`", "train", "sklearn")
    recipes = [pathlib.Path(recipe) for recipe in recipes]
    check_different(recipes=[recipe.stem for recipe in recipes], seeds=seeds)
    if models is not None:
        check_different(models=models)
    check_place(output_dir)
    folder = pathlib.Path(output_dir)
    configs = {}
    for seed in seeds:
        for recipe in recipes:
            config = read_recipe(recipe, FineTuningConfig)
            for model in models or [config.model]:
                run = f"{recipe.stem}-{model}-seed{seed}"
                configs[run] = dataclasses.replace(
                    config,
                    model=model,
                    seed=seed,
                    output_dir=str(folder / run),
                    export=False,
                    **options,
                )
    for run, config in configs.items():
        if not (config.data_dir or config.tfds or config.train):
            raise ValueError(
                f"{run}: say where the examples are: data_dir (--data-dir DIR), a "
                "folder with GLUE's official TSV files; or train in the recipe, a "
                "table of your own."
            )
    _finished(configs, folder)
    return configs


def _finished(configs, folder):
    """dict of the name of a run to its results, of `results.json` and the folders."""
    found = {}
    if (folder / RESULTS).is_file():
        found = {one["run"]: one for one in read_result(folder / RESULTS)}
        for run in (run for run in configs if run in found):
            own = dataclasses.asdict(configs[run]) | found[run]["config"]
            changed = configs[run].changes(own)
            if changed:
                refuse_other_options(f"{folder / RESULTS}: {run}", changed)
    for run, results in finished(configs, folder).items():
        config = {k: v for k, v in results["config"].items() if k not in PLACES}
        found[run] = {"run": run, **results, "config": config}
    return found


def _report(folder, configs):
    from keras_recbert.core.json_files import write_json

    results = list(_finished(configs, folder).values())
    write_json(folder / RESULTS, results)
    with new_file(folder / "table.md") as written:
        written.write_text(make_fine_tuning_table(results), encoding="utf-8")


def make_fine_tuning_table(results):
    """A Markdown table: a row a recipe and encoder, mean and range over its seeds.

    Args:
        results: list of the dicts in `results.json`.

    Returns:
        str.
    """
    runs = {}
    for one in results:
        recipe = one["run"].removesuffix(f"-{one['model']}-seed{one['config']['seed']}")
        runs.setdefault((recipe, one["model"]), []).append(one)
    header = "recipe, encoder, parameters, training examples, dev examples, epochs"
    rows = [[*header.split(", "), "dev scores in percent", "seeds"]]
    for (recipe, model), found in sorted(runs.items(), key=lambda item: item[0][0]):
        first = found[0]
        rows.append(
            [
                recipe,
                f"`{model}`",
                f"{first['num_parameters']:,}",
                f"{first['train_examples']:,}",
                ", ".join(f"{count:,}" for count in first["dev_examples"].values()),
                str(first["config"]["epochs"]),
                "; ".join(
                    f"{name.replace('_', ' ')} {spread(values, 1)}"
                    for name, values in percentages(found).items()
                ),
                ", ".join(str(one["config"]["seed"]) for one in found),
            ]
        )
    return markdown_table(rows)


def percentages(runs):
    """dict of the name of a dev score, without "dev_", to its values in percent.

    Args:
        runs: list of the dicts in `results.json`, one a seed.
    """
    return {
        name.removeprefix("dev_"): [100 * one["scores"][name] for one in runs]
        for name in runs[0]["scores"]
        if not name.endswith("loss")
    }
