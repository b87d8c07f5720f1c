"""The nine GLUE tasks (Wang et al. 2019, https://gluebenchmark.com).

Reads a local folder of the official TSV files, or TensorFlow Datasets. What a
task is (columns, labels, metrics) is data: `GLUE_TASKS`.
"""

import difflib
import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from keras_recbert.data.tsv import Examples, read_tsv

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


@dataclass(frozen=True)
class GlueTask:
    """What is needed to read one task and to score it.

    Args:
        name: the name in TensorFlow Datasets, such as `"sst2"`.
        folder: the name of its official folder, such as `"SST-2"`.
        text_columns: one or two columns, by header name or position from 0.
        label_column: the label's column, by header name or position.
        metrics: names understood by `keras_recbert.metrics.glue`.
        main_metric: the metric that decides which model is best, as in table
            1 of BERT (Devlin et al. 2018).
        label_names: names in the order of their class ids; None for scores.
        score_range: lowest and highest score of a regression task.
        integer_labels: whether the official files hold class ids.
        header: whether the train and dev files have a header.
        test_text_columns: where the test file differs from `text_columns`.
        tfds_features: names of the texts in TensorFlow Datasets.
        dev_splits: names of the dev splits.
        test_splits: names of the test splits.
        skip_labels: rows with one of these labels are left out.
        skip_broken_rows: whether the official file is known to hold rows with
            a wrong number of fields, which everybody leaves out.
        group_by: which rows may not be parted when one file is split in two.
            `"first"`: those with the same first text. `"any"`: those that
            share a text, directly or through other rows.
        version: raised whenever scores stop being comparable.
    """

    name: str
    folder: str
    text_columns: tuple[str | int, ...]
    label_column: str | int
    metrics: tuple[str, ...]
    main_metric: str
    label_names: tuple[str, ...] | None = None
    score_range: tuple[float, float] | None = None
    integer_labels: bool = False
    header: bool = True
    test_text_columns: tuple[str, ...] | None = None
    tfds_features: tuple[str, ...] = ("sentence1", "sentence2")
    dev_splits: tuple[str, ...] = ("dev",)
    test_splits: tuple[str, ...] = ("test",)
    skip_labels: tuple[str, ...] = ()
    skip_broken_rows: bool = False
    group_by: str = "any"
    version: int = 1

    @property
    def is_regression(self) -> bool:
        """Whether labels are scores."""
        return self.score_range is not None

    @property
    def num_classes(self) -> int:
        """Number of classes; 1 for a regression task."""
        return 1 if self.is_regression else len(self.label_names)

    @property
    def splits(self) -> tuple[str, ...]:
        """All official split names; the file of a split is `<name>.tsv`."""
        return ("train", *self.dev_splits, *self.test_splits)


_ENTAILMENT = ("entailment", "not_entailment")
_SENTENCES = ("sentence1", "sentence2")

# Names, label names and their order are those of TensorFlow Datasets.
GLUE_TASKS: dict[str, GlueTask] = {
    task.name: task
    for task in (
        GlueTask(
            name="cola",
            folder="CoLA",
            text_columns=(3,),
            label_column=1,
            metrics=("matthews",),
            main_metric="matthews",
            label_names=("unacceptable", "acceptable"),
            integer_labels=True,
            header=False,
            test_text_columns=("sentence",),
            tfds_features=("sentence",),
            group_by="first",
        ),
        GlueTask(
            name="sst2",
            folder="SST-2",
            text_columns=("sentence",),
            label_column="label",
            metrics=("accuracy",),
            main_metric="accuracy",
            label_names=("negative", "positive"),
            integer_labels=True,
            tfds_features=("sentence",),
            group_by="first",
        ),
        GlueTask(
            name="mrpc",
            folder="MRPC",
            text_columns=("#1 String", "#2 String"),
            label_column="Quality",
            metrics=("accuracy", "f1"),
            main_metric="f1",
            label_names=("not_equivalent", "equivalent"),
            integer_labels=True,
        ),
        GlueTask(
            name="qqp",
            folder="QQP",
            text_columns=("question1", "question2"),
            label_column="is_duplicate",
            metrics=("accuracy", "f1"),
            main_metric="f1",
            label_names=("not_duplicate", "duplicate"),
            integer_labels=True,
            tfds_features=("question1", "question2"),
            # The official train.tsv has newlines inside some questions
            # (nyu-mll/GLUE-baselines issue 5).
            skip_broken_rows=True,
        ),
        GlueTask(
            name="stsb",
            folder="STS-B",
            text_columns=_SENTENCES,
            label_column="score",
            metrics=("pearson", "spearman"),
            main_metric="spearman",
            score_range=(0.0, 5.0),
        ),
        GlueTask(
            name="mnli",
            folder="MNLI",
            text_columns=_SENTENCES,
            label_column="gold_label",
            metrics=("accuracy",),
            main_metric="accuracy",
            label_names=("entailment", "neutral", "contradiction"),
            tfds_features=("premise", "hypothesis"),
            dev_splits=("dev_matched", "dev_mismatched"),
            test_splits=("test_matched", "test_mismatched"),
            # "-": the annotators found no majority (Williams et al. 2018,
            # section 2.2, leave these rows out; GLUE's own dev files did so).
            skip_labels=("-",),
            group_by="first",
        ),
        GlueTask(
            name="qnli",
            folder="QNLI",
            text_columns=("question", "sentence"),
            label_column="label",
            metrics=("accuracy",),
            main_metric="accuracy",
            label_names=_ENTAILMENT,
            tfds_features=("question", "sentence"),
            group_by="first",
        ),
        GlueTask(
            name="rte",
            folder="RTE",
            text_columns=_SENTENCES,
            label_column="label",
            metrics=("accuracy",),
            main_metric="accuracy",
            label_names=_ENTAILMENT,
        ),
        GlueTask(
            name="wnli",
            folder="WNLI",
            text_columns=_SENTENCES,
            label_column="label",
            metrics=("accuracy",),
            main_metric="accuracy",
            label_names=("not_entailment", "entailment"),
            integer_labels=True,
        ),
    )
}


class MissingSplitError(FileNotFoundError):
    """The file of a split is not in the data folder."""


def get_task(task: str | GlueTask) -> GlueTask:
    """Finds a task by name; case, `-` and `_` do not matter (`"SST-2"`).

    Args:
        task: a name, or a `GlueTask`, which is returned as it is.

    Returns:
        The `GlueTask`.

    Raises:
        ValueError: for an unknown name.
    """
    if isinstance(task, GlueTask):
        return task
    key = str(task).lower().replace("-", "").replace("_", "")
    if key not in GLUE_TASKS:
        near = difflib.get_close_matches(key, GLUE_TASKS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"Unknown GLUE task: {task!r}. Valid: {', '.join(GLUE_TASKS)}.{hint}"
        )
    return GLUE_TASKS[key]


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


def group_examples(task: str | GlueTask, examples: Examples) -> list[int]:
    """Numbers the groups of rows that may not be parted by a split.

    Texts count as the same whatever their case and spacing.

    Args:
        task: a task or its name; its `group_by` says what makes a group.
        examples: the rows.

    Returns:
        One group number a row.
    """
    task = get_task(task)
    keys: dict[str, int] = {}
    columns = [
        [
            keys.setdefault(" ".join(text.split()).casefold(), len(keys))
            for text in texts
        ]
        for texts in examples.texts
    ]
    if task.group_by == "first" or len(columns) == 1:
        return columns[0]

    # Union-find: two texts are of one group if some row holds both.
    parent = list(range(len(keys)))

    def root(key):
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, second in zip(*columns, strict=True):
        parent[root(first)] = root(second)
    return [root(key) for key in columns[0]]


def split_examples(
    examples: Examples,
    fraction: float,
    seed: int,
    groups: Sequence[Hashable] | None = None,
) -> tuple[Examples, Examples]:
    """Holds a share of the rows out, whole groups at a time.

    The same rows, seed and groups give the same split. Both sides keep the
    order of the rows.

    Args:
        examples: the rows.
        fraction: share of the rows to hold out, between 0 and 1. The held-out
            side never gets more than that and falls short by less than the
            smallest group that stayed behind.
        seed: decides which groups are held out.
        groups: one value a row; rows of equal value stay together. None puts
            each row in a group of its own.

    Returns:
        `(rest, held_out)`.

    Raises:
        ValueError: where one side would be empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"`fraction` must lie between 0 and 1. Received: fraction={fraction}."
        )
    if groups is None:
        groups = range(len(examples))
    if len(groups) != len(examples):
        raise ValueError(
            "`groups` must have one value a row. "
            f"Received: {len(groups)} values for {len(examples)} rows."
        )
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    in_order = list(members.values())
    wanted = round(fraction * len(examples))
    held: set[int] = set()
    for index in np.random.default_rng(seed).permutation(len(in_order)):
        # A group too large for what is left is passed over, not cut.
        if len(held) + len(in_order[index]) <= wanted:
            held.update(in_order[index])
    if not held or len(held) == len(examples):
        raise ValueError(
            f"Cannot hold {wanted} of {len(examples)} rows out (fraction={fraction:g}) "
            f"in whole groups, of which there are {len(members)}: one side would be "
            "empty. Give more rows or another fraction."
        )
    rest = [row for row in range(len(examples)) if row not in held]
    return examples.take(rest), examples.take(sorted(held))


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
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise ImportError(
            "Loading GLUE through TensorFlow Datasets needs tensorflow-datasets: "
            'pip install "keras_recbert[data]". Or give a folder of TSV files.'
        ) from error

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
