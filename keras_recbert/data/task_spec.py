"""Task specs: what a data set is, by name.

A spec is data: where the files are, how one is read, which head learns it, what it is
scored by. `register_task` makes it known to `recbert finetune --task`.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_recbert.config.own_data import OWN_TASKS
from keras_recbert.core.registry import Registry
from keras_recbert.data.examples import Examples
from keras_recbert.data.submissions import Submission

SPLITS = ("train", "validation", "test")


def dev_files(pattern: str, splits=SPLITS) -> dict[str, str]:
    """The files of a data set whose publisher says "dev" where Keras says validation.

    Args:
        pattern: str, such as `"{}.tsv"`; `{}` stands for the split.
        splits: sequence of str. Names of splits.
    """
    return {
        split: pattern.format(split.replace("validation", "dev")) for split in splits
    }


@dataclasses.dataclass(frozen=True)
class TfdsSource:
    """Where TensorFlow Datasets has a data set.

    Args:
        name: such as `"glue/mrpc"`.
        features: dict of field to the name of its feature; of a data set of one label
            an example.
        label: name of the label's feature.
        as_file: function of the rows, dicts of features, that gives the text of a
            file of the task's own form, which `read` then reads; of a data set of
            another shape, see `tfds_files`.
        splits: dict of split to its name there, where that is another one.
    """

    name: str
    features: Mapping[str, str] = dataclasses.field(default_factory=dict)
    label: str = "label"
    as_file: Callable | None = None
    splits: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What is needed to read a data set, to train on it and to score it.

    Args:
        name: str, such as `"sst2"`. What `--task` takes, and results say.
        fields: tuple of str. Fields of its examples, in the order in which the model
            reads them: `("text",)`, `("question", "context")`, `("words",)`.
        metrics: tuple of names of metrics that the head knows.
        head: str. A task of `keras_recbert.build`, such as `"classifier"`.
        head_arguments: dict, such as `{"label_names": ("negative", "positive")}`; the
            position of a name is the id of its class.
        targets: tuple of str. Targets of its examples.
        own_metrics: dict of those metrics that the head does not know, as they take
            several examples together, to their functions: of `Examples` and what
            `Head.predictions` gives for them, to a float.
        packer_arguments: dict of arguments of the head's packer, such as
            `{"truncation": "only_second"}`. A run may say otherwise.
        main_metric: str. The metric that decides which epoch is kept; by default the
            first.
        version: int. Raised whenever scores stop being comparable.
        folder: str. Name of the folder of its files.
        files: dict of split to the name of its file in the folder. Splits are
            `"train"`, and names that begin with `"validation"` or `"test"`; all may
            be in one file.
        read: function of a path and the name of a split that gives `Examples`; those
            of a test split may lack targets. Labels are names of `label_names`, class
            ids, or numbers.
        tfds: optional `TfdsSource`.
        group_by: str. Field whose equal texts stay together where one file is split in
            two; or a function of the fields that gives these texts, an example each.
            None keeps examples together that share any text.
        score_range: optional tuple of the lowest and highest label of a regressor.
        max_sequence_length: int. Word pieces of a row, unless a run says otherwise.
        write: optional function that writes what a run predicted for the first
            validation split into files of the data set's own form: of a folder, the
            `Examples`, and the predictions.
        submission: optional `Submission`, what its leaderboard takes of test splits.
        scales_labels: bool. Train on labels of mean 0 and standard deviation 1, which
            losses are of then. Predictions are on the scale of the labels.
        labels_of_train: bool. The labels are words, and the classes are those of the
            training examples, sorted; see `task_labels.name_labels`.
        source: str. Who published it, and where.
        licence: str, such as `"CC BY-SA 4.0"`. Its publisher's terms, where they are
            known.

    Raises:
        ValueError: for what contradicts itself, naming the argument.
    """

    name: str
    fields: tuple[str, ...]
    metrics: tuple[str, ...]
    head: str = "classifier"
    head_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    packer_arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    targets: tuple[str, ...] = ("label",)
    own_metrics: Mapping[str, Callable[[Examples, Any], float]] = dataclasses.field(
        default_factory=dict
    )
    main_metric: str | None = None
    version: int = 1
    folder: str = ""
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    read: Callable[[str, str], Examples] | None = None
    tfds: TfdsSource | None = None
    group_by: str | Callable[[Mapping], list[str]] | None = None
    score_range: tuple[float, float] | None = None
    max_sequence_length: int = 128
    write: Callable[[Any, Examples, Any], None] | None = None
    submission: Submission | None = None
    scales_labels: bool = False
    labels_of_train: bool = False
    source: str = ""
    licence: str = ""

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"A task needs a `name`. Received: name={self.name!r}.")
        for argument in ("fields", "targets", "metrics"):
            self._check_names(argument)
        if self.main_metric is None:
            object.__setattr__(self, "main_metric", self.metrics[0])
        self._check_one("main_metric", self.metrics)
        if not set(self.own_metrics) <= set(self.metrics):
            raise ValueError(
                f"Task {self.name!r}: `own_metrics` must be among `metrics`. Received: "
                f"own_metrics={list(self.own_metrics)}, metrics={self.metrics}."
            )
        if self.group_by is not None and not callable(self.group_by):
            self._check_one("group_by", self.fields)
        if isinstance(self.version, bool) or not isinstance(self.version, int):
            raise ValueError(
                f"Task {self.name!r}: `version` must be an int. Received: "
                f"version={self.version!r}."
            )
        for split in self.files:
            if split.partition("_")[0] not in SPLITS or split.startswith("train_"):
                raise ValueError(
                    f"Task {self.name!r}: splits are train, validation, test, or such "
                    f"as validation_matched. Received: files={dict(self.files)}."
                )
        submitted = () if self.submission is None else tuple(self.submission.files)
        if not set(submitted) <= set(self.test_splits):
            raise ValueError(
                f"Task {self.name!r}: `submission` must name files of test splits, "
                f"{self.test_splits}. Received: {submitted}."
            )
        if bool(self.files) != (self.read is not None):
            raise ValueError(
                f"Task {self.name!r}: `files` and `read` go together. Received: "
                f"files={dict(self.files)}, read={self.read!r}."
            )

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """Names of the class ids; None for a head without."""
        return self.head_arguments.get("label_names")

    @property
    def validation_splits(self) -> tuple[str, ...]:
        """Names of the splits that epochs are scored on."""
        return tuple(split for split in self.files if split.startswith("validation"))

    @property
    def test_splits(self) -> tuple[str, ...]:
        """Names of the splits that may lack targets."""
        return tuple(split for split in self.files if split.startswith("test"))

    def _check_names(self, argument):
        names = getattr(self, argument)
        # A str is a sequence, too: ("text") instead of ("text",).
        if isinstance(names, str) or not names or len(set(names)) < len(names):
            raise ValueError(
                f"Task {self.name!r}: `{argument}` must be a tuple of names, each "
                f"once, such as ('text',). Received: {argument}={names!r}."
            )

    def _check_one(self, argument, valid):
        value = getattr(self, argument)
        if value not in valid:
            raise ValueError(
                f"Task {self.name!r}: `{argument}` must be one of {', '.join(valid)}. "
                f"Received: {argument}={value!r}."
            )


def _spelling(name):
    return str(name).lower().replace("-", "").replace("_", "")


_TASKS = Registry(
    "task",
    reserved=OWN_TASKS,
    spelling=_spelling,
    hint="`recbert list --tasks` shows all; --import FILE.py adds yours.",
)


def register_task(spec: TaskSpec) -> TaskSpec:
    """Adds a data set under its name.

    Args:
        spec: `TaskSpec` with `files` and `read`.

    Returns:
        `spec`.

    Raises:
        ValueError: if the name is taken, or says what the labels of a table are; or
            if there is nothing to read or to train on.
    """
    if spec.read is None or not {"train", *spec.validation_splits} & spec.files.keys():
        raise ValueError(
            f"Task {spec.name!r} needs `read` and `files` with a train or a validation "
            f"split. Received: files={dict(spec.files)}, read={spec.read!r}."
        )
    _TASKS.add(spec.name, spec)
    return spec


def get_task(task: str | TaskSpec) -> TaskSpec:
    """Finds a registered task; case, `-` and `_` do not matter (`"SST-2"`).

    Args:
        task: a name, or a `TaskSpec`, which is returned as it is.

    Raises:
        UnknownNameError: for an unknown name, a `ValueError`; names the nearest.
    """
    if isinstance(task, TaskSpec):
        return task
    return _TASKS[task]


def list_tasks(pattern: str = "*") -> list[str]:
    """Names of the registered tasks that match a shell pattern, in their order."""
    return _TASKS.names(pattern)
