"""The runs of a table of fine-tuning: recipes, tasks, encoders, options and seeds."""

import dataclasses
import pathlib

from keras_recbert.config import (
    DistillationConfig,
    FineTuningConfig,
    read_recipe,
    recipe_class,
)
from keras_recbert.config.grid import at_point, grid_points, point_name
from keras_recbert.config.own_data import file_task
from keras_recbert.data.task_files import check_splits
from keras_recbert.models.registry import get_card
from keras_recbert.train.table_runs import check_different

MODEL = "{model}"  # in weights
TUNING, FINAL = "tuning", "tuned"
SPLIT_SEED = 0
TRANSFER_SETS = "transfer_sets"  # which runs share, below the folder of a table


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """The runs of one recipe, task, encoder and point of the grid, one a seed.

    Args:
        recipe: str. Name of the file, and of the task where the table names tasks.
        config: `FineTuningConfig`, with the options of the point.
        point: dict of option to value.
        stage: `TUNING` for runs that are scored on a held-out part of train, `FINAL`
            for those of chosen options; None in a table without tuning.
    """

    recipe: str
    config: FineTuningConfig
    point: dict
    stage: str | None = None

    @property
    def model(self):
        return self.config.model

    @property
    def label(self):
        """`RECIPE[-STAGE][-OPTION=VALUE...]-MODEL`."""
        parts = (self.recipe, self.stage, point_name(self.point), self.model)
        return "-".join(filter(None, parts))

    def name(self, seed):
        """The label and `-seedSEED`, a folder of a run."""
        return f"{self.label}-seed{seed}"

    def facts(self):
        """What the results of a table say of its runs, beside what the runs say."""
        stage = {} if self.stage is None else {"stage": self.stage}
        return {"recipe": self.recipe, "point": self.point, **stage}

    def at_stage(self, stage, fraction=None):
        """This row, scored on a part of train, or trained on all of it and scored.

        The last epoch counts, so that no score on the validation set chooses one. All
        seeds hold the same examples out: where a data set has one file alone, what a
        run is scored on in the end has chosen nothing for another seed.

        Args:
            stage: `TUNING` or `FINAL`.
            fraction: share of the training examples to hold out for `TUNING`.
        """
        changes = {"keep_epoch": "last"}
        if self.config.split_seed is None:
            changes["split_seed"] = SPLIT_SEED
        if self.config.train is None:
            changes["tuning_fraction"] = fraction
        elif stage == TUNING:
            changes |= {"validation": None, "test": None}
            changes["validation_fraction"] = fraction
        config = dataclasses.replace(self.config, **changes)
        return dataclasses.replace(self, config=config, stage=stage)


def plan_rows(recipes, models, tasks, grid, **options):
    """The rows of a table, checked.

    Args:
        recipes: paths of YAML files.
        models, tasks: lists of names, or None for each recipe's own.
        grid: as `keras_recbert.config.grid.check_grid` takes it, or None.
        **options: fields of `FineTuningConfig` that all runs share. `{model}` in
            `weights` stands for the name of the encoder.

    Returns:
        list of `Row`.

    Raises:
        ValueError, OSError: if a recipe or an option is wrong.
    """
    recipes = [pathlib.Path(recipe) for recipe in recipes]
    check_different(recipes=[recipe.stem for recipe in recipes])
    for name, values in (("models", models), ("tasks", tasks)):
        if values is not None:
            check_different(**{name: values})
    rows = []
    for recipe in recipes:
        cls = recipe_class(recipe)
        own = read_recipe(recipe, cls)
        for task in tasks or [own.task]:
            name = f"{recipe.stem}-{task}" if tasks else recipe.stem
            for model in models or [own.model]:
                get_card(model)  # raises for an unknown one
                given = {**options, "task": task, "model": model, "export": False}
                if not issubclass(cls, DistillationConfig):
                    for option in ("teacher", "unlabelled"):
                        given.pop(option, None)
                config = dataclasses.replace(own, **given)
                if config.weights is not None:
                    config.weights = config.weights.replace(MODEL, model)
                for point in grid_points(grid):
                    rows.append(Row(name, _config_at(config, point, recipe), point))
    return rows


def _config_at(config, point, recipe):
    try:
        return at_point(config, point)
    except ValueError as error:
        raise ValueError(f"{recipe} with {point_name(point)}: {error}") from error


# What decides whether a run can start, but for what its files hold.
CHECKED = ("task", "train", "model", "weights", "vocabulary", "vocabulary_size")
CHECKED += ("vectors", "max_words", "min_frequency", "num_oov_buckets", "overrides")
CHECKED += ("layer", "long_texts", "max_sequence_length")
CHECKED += ("data_dir", "tfds", "validation", "test")
CHECKED += ("teacher", "teacher_logits", "unlabelled")  # of distillation


def check_rows(rows):
    """Raises what is wrong with tasks, sizes, weights and vectors, before any run.

    Files of examples, teachers and texts must be there; a run reads them.

    Args:
        rows: list of `Row` that are still to run.

    Raises:
        ValueError, FileNotFoundError: as `keras_recbert.train.fine_tuning.fine_tune`;
            names the row.
    """
    different = {}
    for row in rows:
        values = [getattr(row.config, name, None) for name in CHECKED]
        different.setdefault(repr(values), row)
    for row in different.values():
        try:
            _check_config(row.config.resolved())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{row.label}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{row.label}: {error}") from error


def _check_config(config):
    from keras_recbert.text.vocabulary import load_vocabulary
    from keras_recbert.train.fine_tuning import (  # TensorFlow
        check_model,
        check_own_table,
        check_task,
    )

    if config.vocabulary is not None:
        load_vocabulary(config.vocabulary)
    if isinstance(config, DistillationConfig):
        from keras_recbert.train.distillation import check_sources

        check_sources(config)
    else:
        check_own_table(config)
    if config.train is not None:
        check_model(config, file_task(config) or config.task or "classifier")
        return
    for task in config.task if isinstance(config.task, list) else [config.task]:
        task = check_task(task)
        check_model(config, task.head)
        if not config.tfds:
            check_splits(task, config.data_dir)


def runs_of(rows, seeds, folder):
    """The runs of rows; the seeds take turns.

    Args:
        rows: list of `Row`.
        seeds: list of int.
        folder: path.

    Returns:
        Tuple of a dict of the name of a run to its `FineTuningConfig`, and one to its
        `Row`.

    Raises:
        ValueError: if two runs would have one folder, or one lacks its examples.
    """
    configs, row_of = {}, {}
    for seed in seeds:
        for row in rows:
            run = row.name(seed)
            if run in configs:
                raise ValueError(
                    f"Two runs would share the folder {folder / run}. Rename a recipe, "
                    "or change values of the grid that differ in signs alone."
                )
            changes = {"seed": seed, "output_dir": str(folder / run)}
            config = dataclasses.replace(row.config, **changes)
            if isinstance(config, DistillationConfig) and config.transfer_set is None:
                shared = folder / TRANSFER_SETS / config.texts_key()
                if isinstance(config.task, str):  # else there is a set for each
                    shared /= config.task
                config = dataclasses.replace(config, transfer_set=str(shared))
            configs[run] = config
            row_of[run] = row
    for run, config in configs.items():
        if not (config.data_dir or config.tfds or config.train):
            raise ValueError(
                f"{run}: say where the examples are: data_dir (--data-dir DIR), a "
                "folder with the files of the task; or train in the recipe, a "
                "table of your own."
            )
    return configs, row_of
