"""Results files that are kept: read, and what is wrong with them named."""

import dataclasses
import pathlib

import keras_recbert
from keras_recbert.builder.words import LEARNED, RANDOM
from keras_recbert.config import recipe_class
from keras_recbert.config.recipes import published_scores, recipe_values
from keras_recbert.core.json_files import read_json
from keras_recbert.core.names import UnknownNameError
from keras_recbert.data.task_spec import get_task
from keras_recbert.train.fine_tuning_plan import TUNING
from keras_recbert.train.probe_report import KIND
from keras_recbert.train.table_runs import RESULTS

# Where things are on one machine; what is kept of a run leaves them out.
PLACES = ("data_dir", "output_dir", "weights", "vocabulary", "vectors")
PLACES += ("teacher", "teacher_logits", "transfer_set", "unlabelled")
NEEDED = (
    "run",
    "task",
    "model",
    "scores",
    "config",
    "seconds",
    "device",
    "versions",
    "precision",
    "notes",
    "train_examples",
    "num_parameters",
)
# What a table says in place of a recipe.
OF_A_TABLE = {"model", "task", "seed", "weights", "precision", "data_dir", "output_dir"}


@dataclasses.dataclass(frozen=True, eq=False)
class ResultsFile:
    """The fine-tuning runs that a file lists, or the probes of an encoder.

    Args:
        path: path of the file.
        runs: list of dict, as `recbert table` writes them, and `published`, scores in
            percent that their recipes name.
        problems: list of str. What is stale or partial.
        probes: dict, as `recbert probe` writes it; None for runs.
        unchecked: list of str. Recipes that were not found, so that nobody knows
            whether they have other options now.
    """

    path: pathlib.Path
    runs: list
    problems: list
    probes: dict | None = None
    unchecked: list = dataclasses.field(default_factory=list)


def find_results(sources):
    """Paths of results files.

    Args:
        sources: list of paths of files, or of folders to search for `*results.json`.
            The runs in the folder of a table are left out: the table has them.

    Raises:
        FileNotFoundError: if one is not there, or a folder has none.
    """
    paths = []
    for source in map(pathlib.Path, sources):
        if source.is_file():
            paths.append(source)
            continue
        found = sorted(source.rglob("*results.json")) if source.is_dir() else []
        if not found:
            raise FileNotFoundError(
                f"{source}: expected a results file, such as the results.json of "
                "`recbert table`, or a folder with files *results.json."
            )
        tables = {path.parent for path in found if path.name == RESULTS}
        paths += [path for path in found if path.parent.parent not in tables]
    return paths


def without_places(config):
    """The config of a run without what is true of one machine alone."""
    return {
        option: value
        for option, value in config.items()
        if option not in PLACES or (option == "vectors" and value in (LEARNED, RANDOM))
    }


def join_results(sources):
    """The runs of several results files as the list that `recbert table` writes.

    Args:
        sources: as of `find_results`. Of runs of one name the last one counts.

    Returns:
        list of dict.

    Raises:
        FileNotFoundError: as `find_results`.
        ValueError: if a file has no runs of fine-tuning; names it.
    """
    runs = {}
    for path in find_results(sources):
        if _is_probes(_read(path)):
            raise ValueError(
                f"{path}: probes of an encoder. Only runs are joined; `recbert "
                "results` takes this file beside theirs, for a page such as results.md."
            )
        for run in _runs_of(path):
            run["config"] = without_places(run["config"])
            runs[run["run"]] = run
    return list(runs.values())


def read_results(path):
    """Reads a results file.

    Args:
        path: path.

    Returns:
        `ResultsFile`.

    Raises:
        ValueError: if it holds neither a list of fine-tuning runs nor probes; names
            file and record.
    """
    found = _read(path)
    if _is_probes(found):
        return ResultsFile(path, [], list(_stale_probes(found)), found)
    runs = _runs_of(path)
    problems, unchecked = [*_stale(path, runs), *_partial(runs)], {}
    for run in runs:
        recipe = _recipe_of(path, label_of(run), run)
        if recipe is None:
            unchecked[_recipe_name(label_of(run), run)] = None
            recipe = _recipe_of_table(path, run)
        run["published"] = {} if recipe is None else published_scores(recipe)
    runs = [one for run in runs for one in _of_each_task(run)]
    return ResultsFile(path, runs, problems, unchecked=list(unchecked))


def _read(path):
    try:
        return read_json(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from error


def _is_probes(found):
    return isinstance(found, dict) and found.get("kind") == KIND


def _runs_of(path):
    """The runs that a file lists, or the one whose folder it lies in."""
    runs = _read(path)
    if isinstance(runs, dict) and "config" in runs:
        # As a table calls it: RECIPE-MODEL-seedSEED, if the folder has such a name.
        run = {"run": pathlib.Path(path).resolve().parent.name, "point": {}, **runs}
        if "seed" in run["config"] and "model" in run:
            run["recipe"] = label_of(run)
        runs = [run]
    if not isinstance(runs, list) or not runs:
        raise ValueError(
            f"{path}: expected a list of runs, as `recbert table` writes, what a run "
            "of `recbert finetune` or `recbert distill` writes, or what `recbert "
            "probe` writes."
        )
    for number, run in enumerate(runs, start=1):
        missing = [k for k in NEEDED if not isinstance(run, dict) or k not in run]
        if missing:
            raise ValueError(
                f"{path}, record {number}: no {', '.join(missing)}. Expected a run "
                "of fine-tuning."
            )
    return runs


def _of_each_task(run):
    """A run of several tasks as one of each, with its own scores."""
    tasks = run["config"].get("task")
    if not isinstance(tasks, list):
        return [run]
    found = []
    for task in tasks:
        start = f"validation_{task}_"
        scores = {
            f"validation_{name.removeprefix(start)}": score
            for name, score in run["scores"].items()
            if name.startswith(start)
        }
        published = {
            name.removeprefix(f"{task}_"): score
            for name, score in run["published"].items()
        }
        title = f"{get_task(task).folder or task}:"
        own = {"task": task, "scores": scores, "published": published}
        own["notes"] = [note for note in run["notes"] if note.startswith(title)]
        found.append({**run, **own})
    return found


def label_of(run):
    """Name of a run without encoder and seed: recipe, stage and options."""
    name = run["run"].removesuffix(f"-seed{run['config']['seed']}")
    return name.removesuffix(f"-{run['model']}")


def _groups(runs):
    groups = {}
    for run in runs:
        groups.setdefault((label_of(run), run["model"]), []).append(run)
    return groups


def _stale(path, runs):
    """Sentences on runs that the package would not repeat as they are."""
    for (label, model), found in _groups(runs).items():
        reasons = []
        for run in found:
            reasons += [*_other_version(run), *_other_recipe(path, label, run)]
        for reason in dict.fromkeys(reasons):
            yield f"stale: {label}, {model}: {reason}"


def _stale_probes(probes):
    """Sentences on probes that the package would not repeat as they are."""
    reasons = [*_other_package(probes["keras_recbert"])]
    for task, found in probes["tasks"].items():
        reasons += [f"{task}: {one}" for one in _other_task(task, found["version"])]
    return [f"stale: {reason}" for reason in reasons]


def _other_version(run):
    yield from _other_package(run["versions"].get("keras_recbert"))
    # 1 is older than its mention in results.
    versions = run.get("task_version", 1)
    if not isinstance(versions, dict):
        versions = {run["task"]: versions}
    for task, version in versions.items():
        yield from _other_task(task, version)


def _other_package(version):
    if version != keras_recbert.__version__:
        yield f"made by keras_recbert {version}, this is {keras_recbert.__version__}"


def _other_task(name, made):
    try:
        task = get_task(name)
    except UnknownNameError:
        return  # a table of a user's, or a task of an extension
    if made != task.version:
        yield f"version {made} of the task, which now has version {task.version}"


def _other_recipe(path, label, run):
    """What the recipe, if it is here, now says otherwise."""
    recipe = _recipe_of(path, label, run)
    if recipe is None:
        return
    values = recipe_values(recipe, recipe_class(recipe))
    free = OF_A_TABLE | run.get("point", {}).keys()
    for option, value in values.items():
        if option in free or (
            option == "overrides" and any("." in key for key in free)
        ):
            continue
        if option in run["config"] and run["config"][option] != value:
            made = run["config"][option]
            yield f"made with {option}={made!r}, {recipe.name} now has {value!r}"


def _recipe_of(path, label, run):
    """Path of the recipe of a run, beside its results or among the recipes, or None."""
    name = f"{_recipe_name(label, run)}.yaml"
    for recipe in (path.parent / name, path.parent.parent / "recipes" / name):
        if recipe.is_file():
            return recipe
    return None


def _recipe_name(label, run):
    return run.get("recipe", label)


def _recipe_of_table(path, run):
    """Path of the recipe that `recbert table` wrote for a run alone, or None."""
    name = f"{run['run']}.yaml"
    for recipe in (path.parent / name, path.parent.parent / name):
        if recipe.is_file():
            return recipe
    return None


def _partial(runs):
    """Sentences on seeds and stages that are missing."""
    runs = [run for run in runs if "averaged_seeds" not in run]
    all_seeds = sorted({run["config"]["seed"] for run in runs})
    for (label, model), found in _groups(runs).items():
        seeds = sorted(run["config"]["seed"] for run in found)
        if seeds != all_seeds:
            of = f"seeds {_list(seeds)} of {_list(all_seeds)}"
            yield f"partial: {label}, {model}: {of}"
    stages = {}
    for run in runs:
        if "stage" in run:
            key = (run["recipe"], run["model"])
            stages.setdefault(key, set()).add(run["stage"])
    for (recipe, model), found in stages.items():
        if found == {TUNING}:
            yield f"partial: {recipe}, {model}: options were tried, none was chosen"


def _list(values):
    return ", ".join(map(str, values))
