"""Texts with choices: SWAG, ARC (Challenge) and COPA."""

from keras_recbert.data.choices import read_arc, read_copa, read_swag, write_choices
from keras_recbert.data.submissions import JsonLinesWriter, Submission
from keras_recbert.data.task_spec import TaskSpec, TfdsSource, register_task
from keras_recbert.data.tfds_files import arc_file, copa_file


def _register(name, read, source, **options):
    register_task(
        TaskSpec(
            name=name,
            fields=("text", "choices"),
            head="multiple_choice",
            metrics=("accuracy",),
            read=read,
            write=write_choices,
            group_by="text",
            source=source,
            **options,
        )
    )


_register(
    "swag",
    read_swag,
    "SWAG (Zellers et al. 2018)",
    folder="swag",
    licence="MIT",
    files={"train": "train.csv", "validation": "val.csv", "test": "test.csv"},
)
_register(
    "arc_challenge",
    read_arc,
    "ARC, Challenge (Clark et al. 2018)",
    folder="ARC-Challenge",
    licence="CC BY-SA 4.0",
    tfds=TfdsSource("ai2_arc/ARC-Challenge", as_file=arc_file),
    files={
        "train": "ARC-Challenge-Train.jsonl",
        "validation": "ARC-Challenge-Dev.jsonl",
        "test": "ARC-Challenge-Test.jsonl",
    },
)
_register(
    "copa",
    read_copa,
    "COPA (Roemmele et al. 2011), as in SuperGLUE (Wang et al. 2019)",
    folder="COPA",
    licence="BSD 2-Clause",
    tfds=TfdsSource("super_glue/copa", as_file=copa_file),
    submission=Submission({"test": "COPA.jsonl"}, JsonLinesWriter((0, 1))),
    files={"train": "train.jsonl", "validation": "val.jsonl", "test": "test.jsonl"},
)
