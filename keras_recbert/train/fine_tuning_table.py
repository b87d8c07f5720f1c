"""Several fine-tuning recipes, encoders, options and seeds in one table."""

import dataclasses
import pathlib

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_place, locked_folder, new_file
from keras_recbert.core.json_files import write_json
from keras_recbert.train.fine_tuning_plan import (
    FINAL,
    TUNING,
    check_rows,
    plan_rows,
    runs_of,
)
from keras_recbert.train.results_files import label_of, without_places
from keras_recbert.train.sweep_figure import save_sweep_figure, swept_option
from keras_recbert.train.table_runs import (
    RESULTS,
    check_different,
    finished,
    markdown_table,
    raise_failed,
    read_result,
    refuse_other_options,
    run_each,
    spread,
)
from keras_recbert.train.tuning import chosen_rows, tuning_rows

FIGURE = "sweep.png"


def finetune_table(recipes, seeds, output_dir, jobs=1, **options):
    """Runs each recipe with each encoder, options and seed.

    Writes `table.md`, `results.json` and, where learning rates differ, the picture
    `sweep.png`, anew after each run. Each run is a process of
    its own, `recbert finetune`, in the folder
    `RECIPE[-TASK][-OPTION=VALUE...]-MODEL-seedSEED`. What is finished is not run again,
    what was stopped is resumed, so the same command may be stopped and run again at any
    time. What `results.json` lists is finished too, so that file alone carries a table
    to another machine. The seeds take turns: everything with the first seed, then
    everything with the second. A run that fails does not stop the others.

    With `tuning_fraction` the runs of the grid are scored on a part of train; of each
    recipe and encoder the options of the highest mean main score are then trained on
    all of train and scored on the validation set. No score on the validation set
    chooses anything: of all these runs the last epoch counts.

    Args:
        recipes, seeds, output_dir, **options: as `plan_fine_tuning_table`.
        jobs: int. Processes at a time.

    Returns:
        Path of the table.

    Raises:
        ValueError, OSError: as `plan_fine_tuning_table`; before anything runs.
        RuntimeError: at the end, if runs failed; says which, how, and where their
            output is.
    """
    rows = plan_fine_tuning_table(recipes, seeds, output_dir, **options)
    fraction = options.get("tuning_fraction")
    table = _Table(pathlib.Path(output_dir), seeds)
    table.folder.mkdir(parents=True, exist_ok=True)
    with locked_folder(table.folder):
        if fraction is None:
            failed = table.run(rows, jobs)
        else:
            failed = table.run(tuning_rows(rows, fraction), jobs)
            found = table.results()
            chosen, table.sentences, none = chosen_rows(rows, fraction, seeds, found)
            table.chosen = {(row.recipe, row.model): row.point for row in chosen}
            failed |= none | table.run(chosen, jobs)
        table.report()
    raise_failed(failed)
    return table.folder / "table.md"


def plan_fine_tuning_table(
    recipes,
    seeds,
    output_dir,
    models=None,
    tasks=None,
    grid=None,
    tuning_fraction=None,
    **options,
):
    """The rows of a table, checked.

    Args:
        recipes: paths of YAML files with the fields of `FineTuningConfig`.
        seeds: list of int.
        output_dir: folder.
        models: names of encoders that all recipes are run with; by default each
            recipe's own.
        tasks: names of tasks that all recipes are run with; by default each recipe's
            own.
        grid: dict of an option of `FineTuningConfig`, or of `overrides.NAME`, to a list
            of values, of which all combinations are run; or a list of such dicts.
        tuning_fraction: share of the training examples to choose among the grid by;
            None to score all of it on the validation set.
        **options: fields of `FineTuningConfig` that all runs share, such as `data_dir`,
            `weights` and `precision`; `{model}` in `weights` stands for the name of the
            encoder. Nothing is exported.

    Returns:
        list of `Row`, before any stage of tuning; their runs are checked.

    Raises:
        ValueError: if a recipe is wrong, two have one name, a seed or an encoder comes
            twice, a run that is there was made with other options, or one that is to
            come has no such task, sizes or weights.
        OSError: if the folder cannot be written, or something cannot be read.
    """
    check_installed("`recbert table`", "train", "sklearn", "matplotlib")
    check_different(seeds=seeds)
    check_place(output_dir)
    rows = plan_rows(recipes, models, tasks, grid, **options)
    table = _Table(pathlib.Path(output_dir), seeds)
    if tuning_fraction is None:
        table.add(rows)
    else:
        table.add(tuning_rows(rows, tuning_fraction))
        for row in rows:
            row.at_stage(FINAL)  # raises for options that do not go together
    found = table.results()
    check_rows([row for run, row in table.rows.items() if run not in found])
    return rows


class _Table:
    """The runs of a table, and what is written of them.

    Args:
        folder: path.
        seeds: list of int.
    """

    def __init__(self, folder, seeds):
        self.folder, self.seeds = folder, seeds
        self.configs, self.rows, self.sentences = {}, {}, []
        self.chosen = {}  # recipe and encoder to a point

    def add(self, rows):
        """Adds the runs of rows; returns their configs by name."""
        configs, row_of = runs_of(rows, self.seeds, self.folder)
        self.configs |= configs
        self.rows |= row_of
        return configs

    def run(self, rows, jobs):
        """Runs what is not finished; returns what failed, see `run_each`."""
        configs, done = self.add(rows), self.results()
        failed = run_each(configs, self.folder, self.report, done, jobs)
        self.report()
        return failed

    def results(self):
        """dict of the name of a run to its results, of `results.json` and the folders.

        Raises:
            ValueError: if a file is damaged, or a run was made with other options.
        """
        found, path = {}, self.folder / RESULTS
        if path.is_file():
            found = {one["run"]: one for one in read_result(path)}
            for run in (run for run in self.configs if run in found):
                own = dataclasses.asdict(self.configs[run]) | found[run]["config"]
                changed = self.configs[run].changes(own)
                if changed:
                    refuse_other_options(f"{path}: {run}", changed)
        for run, results in finished(self.configs, self.folder).items():
            config = without_places(results["config"])
            facts = self.rows[run].facts()
            found[run] = {"run": run, **facts, **results, "config": config}
        return found

    def report(self):
        """Writes `results.json`, `table.md` and, of several, `sweep.png`."""
        results = list(self.results().values())
        write_json(self.folder / RESULTS, results)
        text = make_fine_tuning_table(list(filter(self._is_shown, results)))
        if self.sentences:
            text += "\n" + "".join(f"- {one}\n" for one in self.sentences)
        if swept_option(results) is not None:
            save_sweep_figure(self.folder / FIGURE, results)
        with new_file(self.folder / "table.md") as written:
            written.write_text(text, encoding="utf-8")

    def _is_shown(self, run):
        """Whether options were not chosen, or still are."""
        key = run.get("recipe"), run["model"]
        if run.get("stage") != FINAL or key not in self.chosen:
            return True
        return run["point"] == self.chosen[key]


def make_fine_tuning_table(results):
    """Markdown: a row a recipe, options and encoder, mean and range over its seeds.

    Scores on a part of train that options were chosen by stand in a table of their own.

    Args:
        results: list of the dicts in `results.json`.

    Returns:
        str.
    """
    tuning = [one for one in results if one.get("stage") == TUNING]
    others = [one for one in results if one.get("stage") != TUNING]
    texts = [_table(others, "validation")] if others or not tuning else []
    if tuning:
        texts.append(
            "To choose options by, on a part of train that these runs did not learn "
            "from:\n\n" + _table(tuning, "held-out")
        )
    return "\n".join(texts)


def _table(results, split):
    # The encoders of a recipe side by side, recipes and points of a grid as they came.
    recipes = {}
    for one in results:
        models = recipes.setdefault(label_of(one), {})
        models.setdefault(one["model"], []).append(one)
    header = f"recipe, encoder, parameters, training examples, {split} examples, epochs"
    rows = [[*header.split(", "), f"{split} scores in percent", "seeds"]]
    for recipe, models in recipes.items():
        rows += [_row(recipe, model, found) for model, found in models.items()]
    return markdown_table(rows)


def _row(recipe, model, found):
    first = found[0]
    return [
        recipe,
        f"`{model}`",
        f"{first['num_parameters']:,}",
        f"{first['train_examples']:,}",
        ", ".join(f"{count:,}" for count in first["validation_examples"].values()),
        str(first["config"]["epochs"]),
        "; ".join(
            f"{name.replace('_', ' ')} {spread(values, 1)}"
            for name, values in percentages(found).items()
        ),
        ", ".join(str(one["config"]["seed"]) for one in found),
    ]


def percentages(runs):
    """Values in percent of each validation score, by name without "validation_".

    Losses and errors of a regressor are no shares, and left out.

    Args:
        runs: list of the dicts in `results.json`, one a seed.
    """
    return {
        name.removeprefix("validation_"): [100 * one["scores"][name] for one in runs]
        for name in runs[0]["scores"]
        if not name.endswith(("loss", "error"))
    }
