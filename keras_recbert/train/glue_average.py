"""The GLUE score of finished runs: the best run of each task, and the averages.

The protocol is that of Devlin et al. 2018 (section 4.1.1): several learning rates and,
on small sets, random restarts; of each task the run counts that is best on validation.
"""

import pathlib
import statistics

from keras_recbert.data.task_spec import get_task
from keras_recbert.train.table_runs import (
    RESULTS,
    markdown_table,
    read_result,
    seeds_of,
    spread,
)

TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli")
WITHOUT_WNLI = TASKS[:-1]
MARK = "*"
MARKED = (
    f"{MARK} Not comparable with published scores: a split was made from another one, "
    "or `limit` was set.\n"
)
HEADER = ("encoder", "task", "runs", "learning rate", "seed", "main score of all runs")


def read_runs(paths):
    """Results of finished runs on tasks of GLUE.

    Runs that were scored on a part of train (`validation_fraction`,
    `tuning_fraction`) are left out.

    Args:
        paths: files `results.json`, or folders; of a folder of `recbert table` the
            file that lists its runs, of another one those of all runs below it.

    Returns:
        list of dict.

    Raises:
        FileNotFoundError: if a path is not there.
        ValueError: if a file is damaged, no run is of GLUE, or one is of another
            version of its task.
    """
    found = []
    for path in map(pathlib.Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"There is no file or folder {path}.")
        for file in [path] if path.is_file() else _files(path):
            results = read_result(file)
            for one in results if isinstance(results, list) else [results]:
                if isinstance(one, dict) and _is_scored(one):
                    _check_version(file, one)
                    found.append(one)
    if not found:
        raise ValueError(
            f"No finished run on a task of GLUE in {', '.join(map(str, paths))}. "
            "Expected results.json of `recbert finetune` or `recbert table` with one "
            f"of {', '.join(TASKS)}."
        )
    return found


def _files(folder):
    own = folder / RESULTS
    if own.is_file():
        return [own]
    return sorted(folder.rglob(RESULTS))


def _is_scored(results):
    if results.get("task") not in TASKS:
        return False
    fractions = ("validation_fraction", "tuning_fraction")
    return all(results["config"].get(name) is None for name in fractions)


def _check_version(file, results):
    task = get_task(results["task"])
    version = results.get("task_version", 1)
    if version != task.version:
        raise ValueError(
            f"{file}: the run is of version {version} of {task.name}, and this is "
            f"version {task.version}: scores are not comparable. Run it anew."
        )


def best_runs(results):
    """The run of each task that is best on validation, by its main metric.

    Args:
        results: list of the dicts in `results.json`, all of one encoder.

    Returns:
        dict of task to dict, in the order of `TASKS`; of runs that are equal the first.
    """
    best = {}
    for task in TASKS:
        of_task = [one for one in results if one["task"] == task]
        if of_task:
            best[task] = max(of_task, key=_main_score)
    return best


def _main_score(results):
    task = get_task(results["task"])
    return _scores(results, (task.main_metric,))[0][0]


def _scores(results, metrics):
    """Lists of the scores by these metrics, a list a validation split that is there."""
    scores = results["scores"]
    return [
        [scores[f"{split}_{metric}"] for metric in metrics]
        for split in get_task(results["task"]).validation_splits
        if f"{split}_{metrics[0]}" in scores
    ]


def task_score(results):
    """What a task counts in the GLUE score: the mean of its metrics and its splits.

    As GLUE counts (Wang et al. 2019): the mean of F1 and accuracy, of both
    correlations, and of the matched and the mismatched part of MNLI.

    Args:
        results: dict in `results.json`.

    Returns:
        float.
    """
    metrics = get_task(results["task"]).metrics
    return statistics.mean(map(statistics.mean, _scores(results, metrics)))


def glue_score(best, tasks=TASKS):
    """The mean over tasks, each by `task_score`.

    Args:
        best: dict of task to results, as of `best_runs`.
        tasks: names; by default all nine, and eight in `WITHOUT_WNLI`.

    Returns:
        float; None if a task is missing.
    """
    if not set(tasks) <= best.keys():
        return None
    return statistics.mean(task_score(best[task]) for task in tasks)


def bert_average(best):
    """The average of table 1 of Devlin et al. 2018.

    It is without WNLI, by the main metric of each task alone, and the parts of MNLI
    count as two tasks.

    Args:
        best: dict of task to results, as of `best_runs`.

    Returns:
        float; None if a task, or a part of MNLI, is missing.
    """
    if not set(WITHOUT_WNLI) <= best.keys():
        return None
    scores = []
    for task in WITHOUT_WNLI:
        found = _scores(best[task], (get_task(task).main_metric,))
        if len(found) < len(get_task(task).validation_splits):
            return None
        scores += (score for (score,) in found)
    return statistics.mean(scores)


def make_glue_table(results):
    """Two Markdown tables, scores in percent: the scores, and the runs they are of.

    Args:
        results: list of the dicts in `results.json`, of any encoders.

    Returns:
        str. A row an encoder; those with other weights or sizes have rows of their
        own. A missing task or average is a dash.
    """
    encoders = {}
    for one in results:
        encoders.setdefault(_encoder_of(one), []).append(one)
    titles = [get_task(task).folder for task in TASKS]
    averages = ["GLUE", "without WNLI", "as in BERT's table 1"]
    scores, chosen = [["encoder", *titles, *averages]], [list(HEADER)]
    for name, runs in encoders.items():
        best = best_runs(runs)
        cells = [_cell(best[task]) if task in best else "–" for task in TASKS]
        means = glue_score(best), glue_score(best, WITHOUT_WNLI), bert_average(best)
        cells += ["–" if mean is None else f"{100 * mean:.1f}" for mean in means]
        scores.append([name, *cells])
        chosen += (_chosen(name, task, one, runs) for task, one in best.items())
    marked = MARKED if any(MARK in cell for row in scores for cell in row) else ""
    parts = (markdown_table(scores), marked, markdown_table(chosen))
    return "\n".join(part for part in parts if part)


def _encoder_of(results):
    """Such as "`bert_tiny` from W (num_layers 2)"."""
    config = results["config"]
    weights = config.get("weights")
    name = f"`{results['model']}`" + (f" from {weights}" if weights else "")
    sizes = _sizes(get_task(results["task"]).head, config.get("overrides"))
    told = ", ".join(f"{size} {value}" for size, value in sorted(sizes.items()))
    return f"{name} ({told})" if told else name


def _sizes(head, overrides):
    """The overrides that are of the encoder, not of the head or the packer."""
    if not overrides:
        return {}
    from keras_recbert.tasks.task_models import split_arguments  # loads TensorFlow

    return split_arguments(head, overrides)[1]


def _cell(results):
    """Such as "88.9/85.4": the main metric first."""
    task = get_task(results["task"])
    metrics = tuple(dict.fromkeys((task.main_metric, *task.metrics)))
    values = (score for split in _scores(results, metrics) for score in split)
    is_marked = results["config"].get("limit") is not None or any(
        "not comparable" in note for note in results["notes"]
    )
    return "/".join(f"{100 * one:.1f}" for one in values) + MARK * is_marked


def _chosen(name, task, best, runs):
    main = [100 * _main_score(one) for one in runs if one["task"] == task]
    rate, seed = f"{best['learning_rate']:g}", seeds_of(best)
    return [name, get_task(task).folder, str(len(main)), rate, seed, spread(main, 1)]
