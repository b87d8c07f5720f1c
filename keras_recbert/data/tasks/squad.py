"""SQuAD 1.1 (Rajpurkar et al. 2016) and 2.0 (Rajpurkar et al. 2018)."""

from keras_recbert.data.squad_json import read_squad, write_answers
from keras_recbert.data.task_spec import TaskSpec, TfdsSource, dev_files, register_task
from keras_recbert.data.tfds_files import squad_file

for _version, _no_answer, _source in (
    ("1.1", False, "SQuAD 1.1 (Rajpurkar et al. 2016)"),
    ("2.0", True, "SQuAD 2.0 (Rajpurkar et al. 2018)"),
):
    register_task(
        TaskSpec(
            name=f"squad{_version[0]}",
            fields=("question", "context"),
            targets=("answers",),
            head="question_answering",
            head_arguments={"no_answer": _no_answer},
            metrics=("exact_match", "f1"),
            main_metric="f1",
            folder="squad",
            files=dev_files(f"{{}}-v{_version}.json", splits=("train", "validation")),
            read=read_squad,
            write=write_answers,
            group_by="context",
            max_sequence_length=384,
            tfds=TfdsSource(f"squad/v{_version}", as_file=squad_file),
            source=_source,
            licence="CC BY-SA 4.0",
        )
    )
