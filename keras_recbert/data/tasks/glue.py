"""The nine GLUE tasks (Wang et al. 2019, https://gluebenchmark.com).

Names, label names and their order are those of TensorFlow Datasets.
"""

from keras_recbert.data.submissions import Submission, TsvWriter
from keras_recbert.data.task_spec import TaskSpec, TfdsSource, dev_files, register_task
from keras_recbert.data.tsv import TsvReader

FIELDS = ("text", "text_pair")
SENTENCES = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")
FILES = dev_files("{}.tsv")


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
    submission=None,
    licence="",
    **reading,
):
    """Registers a task of tab-separated files.

    The main metric is that of table 1 of BERT (Devlin et al. 2018).

    Args:
        columns: tuple of one or two columns of texts, by name or position.
        submission: dict of test split to the leaderboard's file; by default FOLDER.tsv.
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
    # Names where the files have names, as for entailment; else the ids of classes.
    names = ("0", "1") if reading.get("integer_labels") else label_names
    submission = Submission(
        submission or {"test": f"{folder}.tsv"}, TsvWriter(names, score_range)
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
            submission=submission,
            score_range=score_range,
            source=f"GLUE (Wang et al. 2019), {folder}",
            licence=licence,
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
    licence="copyright remains with the authors of its sentences; research use",
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
    licence="Microsoft Research Shared Source, non-commercial",
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
    licence="Quora's terms, non-commercial",
)
_register(
    "stsb",
    "STS-B",
    columns=SENTENCES,
    label="score",
    metrics=("pearson", "spearman"),
    main_metric="spearman",
    score_range=(0.0, 5.0),
    licence="scores CC BY-SA 4.0, texts under terms of their own",
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
        **dev_files(
            "{}.tsv",
            splits=(
                "train",
                "validation_matched",
                "validation_mismatched",
                "test_matched",
                "test_mismatched",
            ),
        ),
        # GLUE's download has it in a folder of its own.
        "test_diagnostic": "../diagnostic/diagnostic.tsv",
    },
    submission={
        "test_matched": "MNLI-m.tsv",
        "test_mismatched": "MNLI-mm.tsv",
        "test_diagnostic": "AX.tsv",
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
    licence="CC BY-SA 4.0",
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
    licence="CC BY 4.0",
)
