"""The nine GLUE tasks (Wang et al. 2019, https://gluebenchmark.com).

Names, label names and their order are those of TensorFlow Datasets.
"""

from keras_recbert.data.task_spec import TaskSpec, TfdsSource, register_task
from keras_recbert.data.tsv import TsvReader

FIELDS = ("text", "text_pair")
SENTENCES = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")
FILES = {split: f"{split}.tsv" for split in ("train", "dev", "test")}


def _register(
    name,
    folder,
    *,
    columns,
    label,
    metrics,
    label_names=None,
    score_range=None,
    main_metric=None,
    files=FILES,
    features=None,
    test_columns=None,
    group_by=None,
    **reading,
):
    """Registers a task of tab-separated files.

    The main metric is that of table 1 of BERT (Devlin et al. 2018).

    Args:
        columns: tuple of one or two columns of texts, by name or position.
        features: their names in TensorFlow Datasets, where these differ.
        test_columns: `columns` of test files, where these differ.
        others: as `TaskSpec` and `TsvReader` take them.
    """
    is_regression = score_range is not None
    test_fields = test_columns and dict(zip(FIELDS, test_columns, strict=False))
    read = TsvReader(
        dict(zip(FIELDS, columns, strict=False)),
        label,
        label_names=label_names,
        score_range=score_range,
        test_fields=test_fields,
        **{"id_column": "index", **reading},
    )
    features = zip(FIELDS, features or columns, strict=False)
    register_task(
        TaskSpec(
            name=name,
            fields=FIELDS[: len(columns)],
            head="regressor" if is_regression else "classifier",
            head_arguments={} if is_regression else {"label_names": label_names},
            metrics=metrics,
            main_metric=main_metric,
            folder=folder,
            files=files,
            read=read,
            tfds=TfdsSource(f"glue/{name}", dict(features)),
            group_by=group_by,
            score_range=score_range,
            source=f"GLUE (Wang et al. 2019), {folder}",
        )
    )


_register(
    "cola",
    "CoLA",
    columns=(3,),
    label=1,
    metrics=("matthews",),
    label_names=("unacceptable", "acceptable"),
    integer_labels=True,
    header=False,
    test_columns=("sentence",),
    features=("sentence",),
    group_by="text",
)
_register(
    "sst2",
    "SST-2",
    columns=("sentence",),
    label="label",
    metrics=("accuracy",),
    label_names=("negative", "positive"),
    integer_labels=True,
    group_by="text",
)
_register(
    "mrpc",
    "MRPC",
    columns=("#1 String", "#2 String"),
    label="Quality",
    metrics=("accuracy", "f1"),
    main_metric="f1",
    label_names=("not_equivalent", "equivalent"),
    integer_labels=True,
    features=SENTENCES,
)
_register(
    "qqp",
    "QQP",
    columns=("question1", "question2"),
    label="is_duplicate",
    metrics=("accuracy", "f1"),
    main_metric="f1",
    label_names=("not_duplicate", "duplicate"),
    integer_labels=True,
    id_column="id",
    # The official train.tsv has newlines inside some questions
    # (nyu-mll/GLUE-baselines issue 5).
    skip_broken_rows=True,
)
_register(
    "stsb",
    "STS-B",
    columns=SENTENCES,
    label="score",
    metrics=("pearson", "spearman"),
    main_metric="spearman",
    score_range=(0.0, 5.0),
)
_register(
    "mnli",
    "MNLI",
    columns=SENTENCES,
    label="gold_label",
    metrics=("accuracy",),
    label_names=("entailment", "neutral", "contradiction"),
    features=("premise", "hypothesis"),
    files={
        split: f"{split}.tsv"
        for split in (
            "train",
            "dev_matched",
            "dev_mismatched",
            "test_matched",
            "test_mismatched",
        )
    },
    # "-": the annotators found no majority (Williams et al. 2018, section 2.2, leave
    # these rows out; GLUE's own dev files did so).
    skip_labels=("-",),
    group_by="text",
)
_register(
    "qnli",
    "QNLI",
    columns=("question", "sentence"),
    label="label",
    metrics=("accuracy",),
    label_names=ENTAILMENT,
    group_by="text",
)
_register(
    "rte",
    "RTE",
    columns=SENTENCES,
    label="label",
    metrics=("accuracy",),
    label_names=ENTAILMENT,
)
_register(
    "wnli",
    "WNLI",
    columns=SENTENCES,
    label="label",
    metrics=("accuracy",),
    label_names=("not_entailment", "entailment"),
    integer_labels=True,
)
