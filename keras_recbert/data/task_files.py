"""Splits of a registered task, from a folder of its files or TensorFlow Datasets."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.data.examples import Examples
from keras_recbert.data.split import group_fields, split_examples
from keras_recbert.data.task_labels import check_examples
from keras_recbert.data.task_spec import TaskSpec, get_task, list_tasks

SHOWN = 20  # names of files in a message
VALIDATION_FRACTION = 0.1  # of the one labelled file


class MissingSplitError(FileNotFoundError):
    """The file of a split is not in the data folder."""


def read_file(
    task: str | TaskSpec, path: str | os.PathLike, split: str = "train"
) -> Examples:
    """Reads one file of a task, whatever its name.

    Args:
        task: a task or its name.
        path: the file.
        split: the split that the file has, or has the form of.

    Returns:
        `Examples`, checked by `keras_recbert.data.task_labels.check_examples`; test
        splits may lack targets.

    Raises:
        ValueError: naming file and line, where the file is not as it should be.
    """
    task = get_task(task)
    _check_split(task, split)
    return check_examples(task, path, split, task.read(path, split))


def read_split(
    task: str | TaskSpec, data_dir: str | os.PathLike, split: str
) -> Examples:
    """Reads the file of a split, which must have its own name.

    Args:
        task: a task or its name.
        data_dir: the task's own folder, or the one above it.
        split: one of `TaskSpec.files`.

    Returns:
        `Examples`, as `read_file` gives them.

    Raises:
        MissingSplitError: where there is no such file.
        ValueError: naming file and line, where the file is not as it should be.
    """
    task = get_task(task)
    _check_split(task, split)
    folder = _task_folder(task, data_dir)
    path = folder / task.files[split]
    if not path.is_file():
        raise _missing(task, folder, task.files[split])
    return read_file(task, path, split)


def available_splits(task: str | TaskSpec, data_dir: str | os.PathLike) -> list[str]:
    """Lists the splits whose file is in the folder.

    Args:
        task: a task or its name.
        data_dir: the task's own folder, or the one above it.

    Returns:
        Names in the order of `TaskSpec.files`.
    """
    task = get_task(task)
    folder = _task_folder(task, data_dir)
    return [split for split, name in task.files.items() if (folder / name).is_file()]


def load_splits(
    task: str | TaskSpec,
    data_dir: str | os.PathLike,
    seed: int = 0,
    validation_fraction: float | None = None,
) -> tuple[Examples, dict[str, Examples], list[str]]:
    """Reads what a folder holds and makes a train and a validation split of it.

    Where train or every validation file is missing, the one labelled file that is
    there is split by group (see `TaskSpec.group_by`), so that no group is on
    both sides. Where `train.tsv` is missing but a `train_*.tsv` or `train.*.tsv`
    is there, that is read instead; likewise for validation. Each departure from the
    task's own files is told in the notes.

    Args:
        task: a task or its name.
        data_dir: the task's own folder, or the one above it.
        seed: decides which groups are held out.
        validation_fraction: share of the rows of the one labelled file to hold out;
            None for 0.1. Where both splits are there and it is given, the share of
            train to hold out, in place of the validation split.

    Returns:
        `(train, validation, notes)`: the training examples; the validation examples by
        name (`"validation"`, or `"validation_matched"` and `"validation_mismatched"`);
        sentences for the user and the results, without paths of this machine.

    Raises:
        MissingSplitError: where no labelled file is there.
        ValueError: where a file is not as it should be.
    """
    task = get_task(task)
    folder = _task_folder(task, data_dir)
    notes: list[str] = []
    found: dict[str, tuple[Path, Examples]] = {}
    for split, path in _labelled_files(task, folder, notes).items():
        examples = read_file(task, path, split)
        found[split] = (path, examples)
        notes.extend(examples.notes)
    validation = {
        name: found[name][1] for name in task.validation_splits if name in found
    }
    absent = [task.files[split] for split in _wanted(task) if split not in found]
    if "train" in found and validation:
        if validation_fraction is not None:
            train, held, note = hold_out_of_train(
                task, found["train"][1], validation_fraction, seed
            )
            return train, {"validation": held}, [*notes, note]
        if absent:
            notes.append(
                f"{_title(task)}: no {', '.join(absent)}; "
                f"scored on {', '.join(validation)} alone."
            )
        return found["train"][1], validation, notes
    if validation_fraction is None:
        validation_fraction = VALIDATION_FRACTION
    train, validation, note = _hold_out(task, found, seed, validation_fraction)
    what = f"no {', '.join(absent)}; " if absent else ""
    return train, validation, [*notes, f"{_title(task)}: {what}{note}"]


def check_splits(task: str | TaskSpec, data_dir: str | os.PathLike) -> None:
    """Raises what `load_splits` would, of names and places of files alone.

    Args:
        task: a task or its name.
        data_dir: the task's own folder, or the one above it.
    """
    task = get_task(task)
    _labelled_files(task, _task_folder(task, data_dir), [])


def _hold_out(task, found, seed, fraction):
    """Train and validation examples of one file, and what is to be said of it.

    The held-out rows keep the name of the split they came from; those held out of
    train stand for the first validation split.
    """
    split, (path, examples) = next(iter(found.items()))
    name = (
        next(iter(task.validation_splits), "validation") if split == "train" else split
    )
    train, held_out, unit = _split_by_group(task, examples, fraction, seed)
    return (
        train,
        {name: held_out},
        f"{path.name} was split by {unit}, {len(train):,} rows to train and "
        f"{len(held_out):,} for {name} (seed {seed}); scores are not comparable with "
        "published ones.",
    )


def hold_out_of_train(
    task: str | TaskSpec, train: Examples, fraction: float, seed: int
) -> tuple[Examples, Examples, str]:
    """Holds a part of the training examples out, to choose options by.

    Groups (see `TaskSpec.group_by`) stay together, as in `load_splits`.

    Args:
        task: a task or its name.
        train: the training examples.
        fraction: share of them to hold out, between 0 and 1.
        seed: decides which groups are held out.

    Returns:
        `(train, held_out, note)`: the rest, the part, and a sentence for the user.

    Raises:
        ValueError: where one side would be empty.
    """
    task = get_task(task)
    rest, held_out, unit = _split_by_group(task, train, fraction, seed)
    return (
        rest,
        held_out,
        f"{_title(task)}: scored on {fraction:.0%} of train, held out by {unit}: "
        f"{len(rest):,} rows to train and {len(held_out):,} to score (seed {seed}). "
        "The validation set was not scored.",
    )


def _split_by_group(task, examples, fraction, seed):
    """The rest, the held-out part, and the name of what stays together."""
    unit = "groups of rows that share a text"
    if callable(task.group_by):
        groups = group_fields({"text": task.group_by(examples.fields)}, "text")
        unit = "text"
    else:
        groups = group_fields(examples.fields, task.group_by)
    if isinstance(task.group_by, str):
        features = {} if task.tfds is None else task.tfds.features
        unit = features.get(task.group_by, task.group_by)
    return *split_examples(examples, fraction, seed, groups), unit


def load_tests(
    task: str | TaskSpec, data_dir: str | os.PathLike, splits: Iterable[str]
) -> dict[str, Examples]:
    """Reads the test files that a folder holds, each by its own name or with `.gz`.

    Args:
        task: a task or its name.
        data_dir: the task's own folder, or the one above it.
        splits: names of test splits.

    Returns:
        dict of split to `Examples`, one at least.

    Raises:
        MissingSplitError: where there is none of the files.
        ValueError: where a file is not as it should be.
    """
    task = get_task(task)
    folder = _task_folder(task, data_dir)
    found = {}
    for split in splits:
        paths = (folder / task.files[split], folder / f"{task.files[split]}.gz")
        path = next((path for path in paths if path.is_file()), None)
        if path is not None:
            found[split] = read_file(task, path, split)
    if not found:
        wanted = " or ".join(task.files[one] for one in splits)
        raise _missing(task, folder, wanted, " Or leave submission (--submission) out.")
    return found


def load_tfds(
    task: str | TaskSpec,
    data_dir: str | os.PathLike | None = None,
    seed: int = 0,
    validation_fraction: float | None = None,
) -> tuple[Examples, dict[str, Examples], list[str]]:
    """Loads train and validation from TensorFlow Datasets, which may download them.

    Args:
        task: a task or its name.
        data_dir: where TensorFlow Datasets keeps its files; None for its
            default.
        seed, validation_fraction: as for `load_splits`; there are both splits.

    Returns:
        `(train, validation, notes)` as `load_splits` does.

    Raises:
        ImportError: where tensorflow-datasets is not installed.
        ValueError: where TensorFlow Datasets lacks the task, or a label or its name
            is not the expected one.
    """
    task = get_task(task)
    source = task.tfds
    if source is None:
        raise ValueError(
            f"Task {task.name!r} is not read from TensorFlow Datasets (--tfds). Name "
            "the folder of its files: data_dir (--data-dir DIR)."
        )
    check_installed("A task without its files", "data", "tensorflow_datasets")
    import tensorflow_datasets as tfds

    data, info = tfds.load(
        source.name,
        data_dir=None if data_dir is None else os.fspath(data_dir),
        with_info=True,
    )
    if task.label_names is not None and task.targets == ("label",):
        names = tuple(info.features[source.label].names)
        if names != tuple(task.label_names):
            raise ValueError(
                f"{source.name} {info.version} of TensorFlow Datasets has the "
                f"labels {names}; expected {tuple(task.label_names)}."
            )
    loaded = {}
    for split in ("train", *task.validation_splits):
        rows = list(tfds.as_numpy(data[source.splits.get(split, split)]))
        if source.as_file is not None:
            examples = _read_as_file(task, split, rows)
        else:
            examples = Examples(
                {
                    field: [row[feature].decode("utf-8") for row in rows]
                    for field, feature in source.features.items()
                },
                {"label": np.array([row[source.label] for row in rows])},
            )
        where = f"{source.name} {info.version} of TensorFlow Datasets"
        loaded[split] = check_examples(task, where, split, examples)
    train = loaded.pop("train")
    if validation_fraction is None:
        return train, loaded, []
    train, held, note = hold_out_of_train(task, train, validation_fraction, seed)
    return train, {"validation": held}, [note]


def _read_as_file(task, split, rows):
    """Examples of rows of TensorFlow Datasets, read as those of the task's own file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, task.files[split])
        path.write_text(task.tfds.as_file(rows), encoding="utf-8")
        return task.read(path, split)


def _check_split(task, split):
    if split not in task.files:
        raise ValueError(
            f"Unknown split of {_title(task)}: {split!r}. "
            f"Valid: {', '.join(task.files)}."
        )


def _title(task):
    return task.folder or task.name


def _task_folder(task, data_dir) -> Path:
    """The task's own folder, given it or the one above it."""
    data_dir = Path(data_dir)
    example = Path(task.folder, next(iter(task.files.values())))
    if not data_dir.is_dir():
        raise MissingSplitError(
            f"The data folder {data_dir} does not exist or is not a folder. It "
            f"should hold {example} and the like."
        )
    name = data_dir.resolve().name
    for other in map(get_task, list_tasks()):
        # Some tasks share their column names: reading the wrong one would work.
        if other.folder == name and other.folder != task.folder:
            raise ValueError(
                f"{data_dir} is the folder of {other.folder}, not of {_title(task)}. "
                f"Give the folder above it, or use the task {other.name!r}."
            )
    folder = data_dir / task.folder
    return folder if folder.is_dir() else data_dir


def _wanted(task):
    """Splits that have labels, a list of str."""
    splits = ("train", *task.validation_splits)
    return [split for split in splits if split in task.files]


def _labelled_files(task, folder, notes):
    """dict of each split of `_wanted` that is there to its file; notes other names."""
    wanted = _wanted(task)
    paths = {split: _labelled_file(task, folder, split, notes) for split in wanted}
    found = {split: path for split, path in paths.items() if path is not None}
    if not found:
        raise _missing(task, folder, " or ".join(task.files[split] for split in paths))
    return found


def _labelled_file(task, folder, split, notes) -> Path | None:
    """The file to use for a split; a file with another name is noted."""
    path = folder / task.files[split]
    if path.is_file():
        return path
    others = sorted(
        other
        for ending in (path.suffix, f"{path.suffix}.gz")
        for other in folder.glob(f"*{ending}")
        if other.name.startswith((f"{path.stem}.", f"{path.stem}_"))
    )
    if not others:
        return None
    if len(others) > 1:
        raise ValueError(
            f"{folder} has no {path.name} but several files that could stand for it: "
            f"{', '.join(other.name for other in others)}. Rename the one you "
            "want, or read it with `keras_recbert.data.task_files.read_file`."
        )
    notes.append(f"{_title(task)}: no {path.name}; {others[0].name} was read for it.")
    return others[0]


def _missing(task, folder, wanted, advice="") -> MissingSplitError:
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    shown = ", ".join(files[:SHOWN]) + (", ..." if len(files) > SHOWN else "")
    above = f" (or the one above {task.folder}/)" if task.folder else ""
    return MissingSplitError(
        f"{_title(task)}: {wanted} not found in {folder}. Files there: "
        f"{shown or 'none'}. Rename the file if it has another name, or give the "
        f"folder that has it{above}: data_dir (--data-dir DIR).{advice}"
    )
