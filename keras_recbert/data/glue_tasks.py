"""What the nine GLUE tasks are: columns, labels, metrics.

Wang et al. 2019, https://gluebenchmark.com. Reading them is `keras_recbert.data.glue`.
"""

import difflib
from dataclasses import dataclass


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
