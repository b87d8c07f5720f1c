"""The page of results: ours beside the published ones, from results files alone."""

import os
import pathlib

from keras_recbert.data.task_spec import get_task, list_tasks
from keras_recbert.models.registry import get_card
from keras_recbert.train.fine_tuning_plan import FINAL, TUNING
from keras_recbert.train.fine_tuning_table import percentages
from keras_recbert.train.probing_section import make_probing_section
from keras_recbert.train.published import TITLES, published_score, source_of
from keras_recbert.train.results_files import find_results, label_of, read_results
from keras_recbert.train.table_runs import markdown_table, seeds_of, spread

NONE, NOTES = "–", "results_notes.md"
HEADER = (
    "recipe",
    "encoder",
    "options chosen on",
    "epoch",
    "validation score",
    "ours, %",
    "published, %",
    "trained on",
    "seeds",
    "minutes a run",
    "setup",
)


def make_results_page(sources, folder="."):
    """Markdown of all results: a section a task, and what is stale or partial.

    Args:
        sources: list of paths of results files, or of folders with `*results.json`.
        folder: where the page will lie, which its links start from.

    Returns:
        str.

    Raises:
        FileNotFoundError: if a source is not there, or a folder has none.
        ValueError: if no file holds runs of fine-tuning or probes.
    """
    files, left_out = [], []
    for path in find_results(sources):
        try:
            files.append(read_results(path))
        except ValueError as error:
            left_out.append((path, str(error).replace(str(path), "").strip(" :,")))
    if not files:
        reasons = "; ".join(f"{path}: {reason}" for path, reason in left_out)
        raise ValueError(f"No file holds runs of fine-tuning or probes: {reasons}")
    runs = [(file, run) for file in files for run in file.runs]
    probed = [file for file in files if file.probes is not None]
    setups = [_setup(run) for _, run in runs]
    setups += [_probing_setup(file.probes) for file in probed]
    setups = list(dict.fromkeys(setups))
    tasks = {run["task"]: None for _, run in runs}
    known = list_tasks()
    ordered = sorted(
        tasks, key=lambda t: (known.index(t) if t in known else len(known), t)
    )
    parts = [_head(files, folder)]
    for task in ordered:
        parts.append(_section(task, [r for _, r in runs if r["task"] == task], setups))
    parts.append(
        make_probing_section(probed, lambda p: 1 + setups.index(_probing_setup(p)))
    )
    parts.append(_list("Setups", [f"{n}. {s}" for n, s in enumerate(setups, 1)]))
    models = dict.fromkeys(run["model"] for _, run in runs)
    if models:
        parts.append(_sources(models, runs))
    problems = [
        f"- {_link(file.path, folder)}: {problem}"
        for file in files
        for problem in file.problems
    ]
    problems += [
        f"- {_link(path, folder)} is left out: {reason}" for path, reason in left_out
    ]
    parts.append(_list("Stale and partial files", problems or [_no_problem(files)]))
    return "\n".join(part for part in parts if part)


def _no_problem(files):
    """That nothing is stale or partial, as far as there were recipes to compare."""
    unchecked = dict.fromkeys(name for file in files for name in file.unchecked)
    if not unchecked:
        return "None."
    return (
        "None is known. Whether runs have the options of their recipes was not "
        f"checked for {', '.join(unchecked)}: no recipe of that name was found beside "
        "the results file or in ../recipes."
    )


def _head(files, folder):
    links = ", ".join(_link(file.path, folder) for file in files)
    # A page of a user's own has none beside it.
    has_notes = (pathlib.Path(folder) / NOTES).is_file()
    notes = f"\nWhat the runs are of: [{NOTES}]({NOTES})." if has_notes else ""
    return (
        f"# Results\n\nWritten by `recbert results` from\n{links}.{notes}\n\n"
        "Ours is the mean and, of several seeds, the range. The epoch is the best on "
        "the\nvalidation set, which flatters the score, or the last, which does not. "
        "Minutes are\nof a machine that may have done other work.\n"
    )


def _section(task, runs, setups):
    groups = {}
    for run in runs:
        if run.get("stage") != TUNING:
            groups.setdefault((label_of(run), run["model"]), []).append(run)
    rows, notes = [list(HEADER)], []
    for (_, model), found in groups.items():
        notes += [note for run in found for note in run["notes"]]
        for metric, values in percentages(found).items():
            rows.append(_row(task, model, found, metric, values, runs, setups))
    if len(rows) == 1:
        return ""
    title = TITLES.get(task, task)
    source = f"{get_task(task).source}.\n\n" if task in list_tasks() else ""
    notes = "".join(f"\n- {note}" for note in dict.fromkeys(notes))
    return f"## {title}\n\n{source}{markdown_table(rows)}" + (notes and f"{notes}\n")


def _row(task, model, found, metric, values, runs, setups):
    first = found[0]
    minutes = [run["seconds"] / 60 for run in found]
    return [
        label_of(first),
        f"`{model}`",
        _chosen_on(first, runs),
        first["config"].get("keep_epoch", "best"),
        metric.replace("_", " "),
        spread(values, 1),
        _published(first, task, metric),
        f"{first['train_examples']:,}",
        ", ".join(map(seeds_of, found)),
        spread(minutes, 0),
        ", ".join(str(1 + setups.index(s)) for s in dict.fromkeys(map(_setup, found))),
    ]


def _chosen_on(run, runs):
    """What the options of a run were chosen by."""
    if run.get("stage") != FINAL:
        return "not searched" if not run.get("point") else "a grid, all shown"
    tried = {
        label_of(one)
        for one in runs
        if one.get("stage") == TUNING
        and (one["recipe"], one["model"]) == (run["recipe"], run["model"])
    }
    return f"a part of train, of {len(tried)}"


def _published(run, task, metric):
    if metric in run["published"]:
        return f"{run['published'][metric]:g}"
    return _of_card(run, task, metric)


def _of_card(run, task, metric):
    found = published_score(run["model"], task, metric)
    if found is None or not _has_published_size(run):
        return NONE
    score, split = found
    return f"{score:g}" if split == "validation" else f"{score:g} (test)"


def _has_published_size(run):
    """Whether the encoder is not a smaller one that started from weights of its own."""
    return run["num_parameters"] > 0.95 * get_card(run["model"]).num_parameters


def _setup(run):
    return _device_and_versions(run, run["precision"]["policy"], run["versions"])


def _probing_setup(probes):
    return _device_and_versions(probes, probes["policy"], probes)


def _device_and_versions(run, policy, versions):
    return (
        f"{run['device']}; {policy}; keras_recbert "
        f"{versions['keras_recbert']}, Keras {versions['keras']}, TensorFlow "
        f"{versions['tensorflow']}, Python {versions['python']}"
    )


def _sources(models, runs):
    lines = []
    for model in models:
        found = (
            _of_card(run, run["task"], metric)
            for _, run in runs
            if run["model"] == model
            for metric in percentages([run])
        )
        if any(score != NONE for score in found):
            lines.append(f"- `{model}`: {source_of(model)}")
    for _, run in runs:
        if run["published"]:
            lines.append(f"- {label_of(run)}: {run['published']['source']}")
    lines = list(dict.fromkeys(lines))
    return _list("Published scores", lines or ["None of these encoders."])


def _list(title, lines):
    return f"## {title}\n\n" + "\n".join(lines) + "\n"


def _link(path, folder):
    target = pathlib.PurePath(os.path.relpath(path, folder)).as_posix()
    return f"[{path.name}]({target})"
