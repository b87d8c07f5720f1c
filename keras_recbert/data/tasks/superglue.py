"""SuperGLUE (Wang et al. 2019, https://super.gluebenchmark.com); COPA is elsewhere.

Names of labels and their order are those of TensorFlow Datasets.
"""

from keras_recbert.data.submissions import JsonLinesWriter, Submission, write_multirc
from keras_recbert.data.superglue import (
    CB_LABELS,
    question_ids,
    read_boolq,
    read_cb,
    read_multirc,
    read_wsc,
    texts_without_marks,
)
from keras_recbert.data.task_spec import TaskSpec, TfdsSource, register_task
from keras_recbert.data.tfds_files import multirc_file, wsc_file
from keras_recbert.metrics.multirc import f1_over_answers, question_exact_match

FILES = {"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"}
TRUTH = ("False", "True")
# The question is whole, and the passage has the rest of the row.
KEEP_QUESTION = {"truncation": "waterfall"}


def _register(name, folder, read, fields, label_names, source, write, **options):
    register_task(
        TaskSpec(
            name=name,
            folder=folder,
            read=read,
            fields=fields,
            head_arguments={"label_names": label_names},
            files=FILES,
            submission=Submission({"test": f"{folder}.jsonl"}, write),
            source=f"SuperGLUE (Wang et al. 2019), {source}",
            **options,
        )
    )


def _f1a(examples, predictions):
    return f1_over_answers(examples.targets["label"], predictions)


def _exact_match(examples, predictions):
    questions = question_ids(examples.ids)
    return question_exact_match(questions, examples.targets["label"], predictions)


_register(
    "boolq",
    "BoolQ",
    read_boolq,
    ("question", "passage"),
    TRUTH,
    "BoolQ (Clark et al. 2019)",
    JsonLinesWriter(("false", "true")),
    metrics=("accuracy",),
    packer_arguments=KEEP_QUESTION,
    group_by="passage",
    max_sequence_length=256,
    tfds=TfdsSource("super_glue/boolq", {"question": "question", "passage": "passage"}),
    licence="CC BY-SA 3.0",
)
_register(
    "cb",
    "CB",
    read_cb,
    ("premise", "hypothesis"),
    CB_LABELS,
    "CB (de Marneffe et al. 2019)",
    JsonLinesWriter(CB_LABELS),
    metrics=("accuracy", "macro_f1"),
    # A premise ends with what the hypothesis is about.
    max_sequence_length=256,
    tfds=TfdsSource(
        "super_glue/cb", {"premise": "premise", "hypothesis": "hypothesis"}
    ),
)
_register(
    "multirc",
    "MultiRC",
    read_multirc,
    ("question_and_answer", "passage"),
    TRUTH,
    "MultiRC (Khashabi et al. 2018)",
    write_multirc,
    # Accuracy as in table 1 of Lei et al. 2022.
    metrics=("f1a", "exact_match", "accuracy"),
    own_metrics={"f1a": _f1a, "exact_match": _exact_match},
    packer_arguments=KEEP_QUESTION,
    group_by="passage",
    max_sequence_length=512,
    tfds=TfdsSource("super_glue/multirc", as_file=multirc_file),
    licence="research and academic use",
)
_register(
    "wsc",
    "WSC",
    read_wsc,
    ("text",),
    TRUTH,
    "WSC (Levesque et al. 2011)",
    JsonLinesWriter(TRUTH),
    metrics=("accuracy",),
    group_by=texts_without_marks,
    tfds=TfdsSource("super_glue/wsc", as_file=wsc_file),
    licence="CC BY 4.0",
)
