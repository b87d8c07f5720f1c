"""The nine GLUE tasks (Wang et al. 2019, https://gluebenchmark.com).

Reads a local folder of the official TSV files, or TensorFlow Datasets. What a
task is (columns, labels, metrics) is data: `keras_recbert.data.glue_tasks`.
"""

import os
from pathlib import Path

import numpy as np

from keras_recbert.data.glue_tasks import GLUE_TASKS, GlueTask, get_task
from keras_recbert.data.holding_out import group_examples, split_examples
from keras_recbert.data.tsv import Examples, read_tsv
from keras_recbert.extras import check_installed

__all__ = [
    "GLUE_TASKS",
    "Examples",
    "GlueTask",
    "MissingSplitError",
    "available_splits",
    "get_task",
    "group_examples",
    "load_glue_tfds",
    "load_splits",
    "read_glue",
    "read_glue_file",
    "split_examples",
]


class MissingSplitError(FileNotFoundError):
    """The file of a split is not in the data folder."""


def read_glue_file(
    task: str | GlueTask, path: str | os.PathLike, *, split: str = "train"
) -> Examples:
    """Reads one file of a task, whatever its name.

    MNLI rows without consensus (gold label `-`) and QQP rows that a newline
    tore apart are left out and counted in the result's `notes`.

    Args:
        task: a task or its name.
        path: the file; `.gz` is read as gzip.
        split: which split's columns the file has. Test splits have no labels.

    Returns:
        `Examples`; `labels` is None for a test split.

    Raises:
        ValueError: naming file and line, where the file is not as it should be.
    """
    task = get_task(task)
    _check_split(task, split)
    if split in task.test_splits:
        return read_tsv(
            path,
            task.test_text_columns or task.text_columns,
            skip_broken_rows=task.skip_broken_rows,
        )
    return read_tsv(
        path,
        task.text_columns,
        task.label_column,
        task.label_names,
        integer_labels=task.integer_labels,
        score_range=task.score_range,
        header=task.header,
        skip_labels=task.skip_labels,
        skip_broken_rows=task.skip_broken_rows,
    )


def read_glue(
    task: str | GlueTask, data_dir: str | os.PathLike, split: str
) -> Examples:
    """Reads the official file of a split.

    Args:
        task: a task or its name.
        data_dir: the folder with all tasks, or the task's own folder.
        split: `"train"`, `"dev"`, `"test"`; for MNLI `"dev_matched"`,
            `"dev_mismatched"`, `"test_matched"`, `"test_mismatched"`.

    Returns:
        `Examples`; `labels` is None for a test split.

    Raises:
        MissingSplitError: where there is no such file.
        ValueError: naming file and line, where the file is not as it should be.
    """
    task = get_task(task)
    _check_split(task, split)
    folder = _task_folder(task, data_dir)
    path = folder / f"{split}.tsv"
    if not path.is_file():
        raise _missing(task, folder, f"{split}.tsv")
    return read_glue_file(task, path, split=split)


def available_splits(task: str | GlueTask, data_dir: str | os.PathLike) -> list[str]:
    """Lists the splits whose official file is in the folder.

    Args:
        task: a task or its name.
        data_dir: the folder with all tasks, or the task's own folder.

    Returns:
        Names in the order of `GlueTask.splits`.
    """
    task = get_task(task)
    folder = _task_folder(task, data_dir)
    return [name for name in task.splits if (folder / f"{name}.tsv").is_file()]


def load_splits(
    task: str | GlueTask,
    data_dir: str | os.PathLike,
    seed: int = 0,
    dev_fraction: float = 0.1,
) -> tuple[Examples, dict[str, Examples], list[str]]:
    """Reads what a folder holds and makes a train and a dev split of it.

    Where train or every dev file is missing, the one labelled file that is
    there is split by group (see `GlueTask.group_by`), so that no group is on
    both sides. Where `train.tsv` is missing but a `train_*.tsv` or `train.*.tsv`
    is there, that is read instead; likewise for dev. Each departure from the
    official files is told in the notes.

    Args:
        task: a task or its name.
        data_dir: the folder with all tasks, or the task's own folder.
        seed: decides which groups are held out.
        dev_fraction: share of the rows to hold out where a split is missing.

    Returns:
        `(train, dev, notes)`: the training examples; the dev examples by name
        (`"dev"`, or `"dev_matched"` and `"dev_mismatched"`); sentences for the
        user.

    Raises:
        MissingSplitError: where no labelled file is there.
        ValueError: where a file is not as it should be.
    """
    task = get_task(task)
    folder = _task_folder(task, data_dir)
    notes: list[str] = []
    found: dict[str, tuple[Path, Examples]] = {}
    for split in ("train", *task.dev_splits):
        path = _labelled_file(task, folder, split, notes)
        if path is not None:
            examples = read_glue_file(task, path, split=split)
            found[split] = (path, examples)
            notes.extend(examples.notes)
    if not found:
        wanted = " or ".join(f"{name}.tsv" for name in ("train", *task.dev_splits))
        raise _missing(task, folder, wanted)

    dev = {name: found[name][1] for name in task.dev_splits if name in found}
    if "train" in found and dev:
        absent = [f"{name}.tsv" for name in task.dev_splits if name not in found]
        if absent:
            notes.append(
                f"{task.folder}: no {', '.join(absent)} in {folder}; "
                f"scored on {', '.join(dev)} alone."
            )
        return found["train"][1], dev, notes

    # One side is missing: hold part of a file out. It keeps the name of the
    # split it came from; rows held out of train stand for the first dev split.
    source = "train" if "train" in found else next(iter(dev))
    name = task.dev_splits[0] if source == "train" else source
    path, examples = found[source]
    train, dev[name] = split_examples(
        examples, dev_fraction, seed, group_examples(task, examples)
    )
    absent = [split for split in ("train", *task.dev_splits) if split not in found]
    unit = task.tfds_features[0]
    if task.group_by == "any":
        unit = "groups of rows that share a text"
    notes.append(
        f"{task.folder}: no {', '.join(f'{split}.tsv' for split in absent)} in "
        f"{folder}; {path.name} was split by {unit}, {len(train):,} rows to train "
        f"and {len(dev[name]):,} for {name} (seed {seed}); scores are not comparable "
        "with published ones."
    )
    return train, dev, notes


def load_glue_tfds(
    task: str | GlueTask, data_dir: str | os.PathLike | None = None
) -> tuple[Examples, dict[str, Examples], list[str]]:
    """Loads train and dev from TensorFlow Datasets, which may download them.

    Args:
        task: a task or its name.
        data_dir: where TensorFlow Datasets keeps its files; None for its
            default.

    Returns:
        `(train, dev, notes)` as `load_splits` does.

    Raises:
        ImportError: where tensorflow-datasets is not installed.
        ValueError: where a label or its name is not the expected one.
    """
    task = get_task(task)
    check_installed("GLUE without TSV files", "data", "tensorflow_datasets")
    import tensorflow_datasets as tfds

    data, info = tfds.load(
        f"glue/{task.name}",
        data_dir=None if data_dir is None else os.fspath(data_dir),
        with_info=True,
    )
    if not task.is_regression:
        names = tuple(info.features["label"].names)
        if names != task.label_names:
            raise ValueError(
                f"glue/{task.name} {info.version} of TensorFlow Datasets has the "
                f"labels {names}; expected {task.label_names}."
            )
    loaded = {}
    for split in ("train", *task.dev_splits):
        rows = list(tfds.as_numpy(data[split.replace("dev", "validation")]))
        labels = np.array([row["label"] for row in rows])
        low, high = task.score_range or (0, task.num_classes - 1)
        if not ((labels >= low) & (labels <= high)).all():
            raise ValueError(
                f"glue/{task.name} {info.version}, {split}: labels from "
                f"{labels.min()} to {labels.max()}; expected {low} to {high}."
            )
        loaded[split] = Examples(
            tuple(
                [row[feature].decode("utf-8") for row in rows]
                for feature in task.tfds_features
            ),
            labels.astype(np.float32 if task.is_regression else np.int32),
            task.label_names,
        )
    return loaded.pop("train"), loaded, []


def _check_split(task, split):
    if split not in task.splits:
        raise ValueError(
            f"Unknown split of {task.folder}: {split!r}. "
            f"Valid: {', '.join(task.splits)}."
        )


def _task_folder(task, data_dir) -> Path:
    """The task's own folder, given it or the one above it."""
    data_dir = Path(data_dir)
    if not data_dir.is_dir():
        raise MissingSplitError(
            f"The data folder {data_dir} does not exist or is not a folder. It "
            f"should hold {task.folder}/train.tsv and the like."
        )
    name = data_dir.resolve().name
    for other in GLUE_TASKS.values():
        # Some tasks share their column names: reading the wrong one would work.
        if other.folder == name and other.folder != task.folder:
            raise ValueError(
                f"{data_dir} is the folder of {other.folder}, not of {task.folder}. "
                f"Give the folder above it, or use the task {other.name!r}."
            )
    folder = data_dir / task.folder
    return folder if folder.is_dir() else data_dir


def _labelled_file(task, folder, split, notes) -> Path | None:
    """The file to use for a split; a file with another name is noted."""
    path = folder / f"{split}.tsv"
    if path.is_file():
        return path
    others = sorted(
        other
        for other in folder.glob("*.tsv")
        if other.name.startswith((f"{split}.", f"{split}_"))
    )
    if not others:
        return None
    if len(others) > 1:
        raise ValueError(
            f"{folder} has no {split}.tsv but several files that could stand for it: "
            f"{', '.join(other.name for other in others)}. Rename the one you "
            "want, or read it with `read_glue_file`."
        )
    notes.append(
        f"{task.folder}: no {split}.tsv in {folder}; {others[0].name} was read for it."
    )
    return others[0]


def _missing(task, folder, wanted) -> MissingSplitError:
    there = (
        sorted(path.name for path in folder.glob("*.tsv*")) if folder.is_dir() else []
    )
    return MissingSplitError(
        f"{task.folder}: {wanted} not found in {folder}. TSV files there: "
        f"{', '.join(there) or 'none'}. Give the folder with the official GLUE "
        f"files (or the one above {task.folder}/), read a file of another name "
        "with `read_glue_file`, or let `load_splits` make a dev split of what is "
        "there."
    )
