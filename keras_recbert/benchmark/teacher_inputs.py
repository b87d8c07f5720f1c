"""What the comparison of teachers reads: a model, and texts of a task."""

import os
import pathlib
import sys

from keras_recbert.benchmark.environments import PEERS
from keras_recbert.benchmark.saved_models import read_model_facts
from keras_recbert.benchmark.worker_process import Worker
from keras_recbert.convert.huggingface import other_than_bert
from keras_recbert.core.machine import num_cores
from keras_recbert.data.task_files import read_split
from keras_recbert.data.task_spec import get_task
from keras_recbert.train.teacher_tasks import check_task

CARD = "card.json"  # of a preset


def find_teacher(folder):
    """The preset in the output folder of a run, or the folder itself.

    Raises:
        FileNotFoundError: if there is none.
    """
    folder = pathlib.Path(folder)
    for path in (folder, folder / "preset"):
        if (path / CARD).is_file():
            return path
    raise FileNotFoundError(
        f"--teacher must be a preset or the output folder of `recbert finetune`. "
        f"There is no {CARD} in {folder} or {folder / 'preset'}."
    )


def check_teacher(teacher, task):
    """Raises `ValueError` for a teacher that is of another task, or no BERT of torch.

    Args:
        teacher: path of a preset.
        task: str. Its name.
    """
    task, model = get_task(task), read_model_facts(teacher)
    if model.head is None:
        raise ValueError(
            "--teacher must have one head, as torch's BERT has. Received: "
            f"{model.describe_heads()}, at {teacher}. Train one: recbert finetune "
            f"--task {task.name} --pooling first."
        )
    check_task(teacher, model.head["task"], model.fields, task)
    other = _other_than_torch(model)
    if other:
        raise ValueError(
            "--teacher must compute what torch's BertForSequenceClassification does: "
            "a plain BERT, such as bert_base, with a vocabulary, whose first token a "
            f"classifier or regressor reads. Received: {other}, at {teacher}. Train "
            f"one: recbert finetune --task {task.name} --pooling first."
        )


def _other_than_torch(model):
    """Words on what a model has that a BERT of torch lacks; None if there is none."""
    head, sizes = model.head, model.encoder_arguments
    if head["task"] not in ("classifier", "regressor"):
        return model.describe_heads()
    if not model.has_vocabulary:
        return "a model without a vocabulary"
    other = other_than_bert(model.encoder_class, sizes)
    if other is not None:
        return other
    valid = {
        "pooling": ("first",),
        "layer": (None, sizes["num_layers"]),
        "relu_units": (None,),
        "long_texts": ("truncate",),
    }
    return ", ".join(
        f"{name}={head[name]!r}"
        for name, values in valid.items()
        if head.get(name, values[0]) not in values
    )


def read_examples(task, data_dir, most):
    """Columns of texts, from all over the training split of a task.

    Raises:
        ValueError: for a task that nobody has registered, or a damaged file.
        FileNotFoundError: if its files are not there.
    """
    examples = read_split(get_task(task), data_dir, "train")
    every = max(1, len(examples) // most)
    return {
        name: list(column)[::every][:most] for name, column in examples.fields.items()
    }


def teacher_jobs(teacher, columns, folder, timeout):
    """Arguments of the workers, by their kind; writes the files that torch reads.

    Args:
        teacher: path of a preset.
        columns: as `read_examples` returns them.
        folder: path of a folder for temporary files.
        timeout: float. Seconds for writing them.

    Returns:
        dict of key of `PEERS` to dict.
    """
    weights = pathlib.Path(folder) / "teacher"
    if not weights.exists():
        job = {
            "kind": "export_huggingface",
            "teacher": str(teacher),
            "to": str(weights),
        }
        script = PEERS["recbert"].script
        label = f"files of {teacher} for Hugging Face"
        with Worker(label, script, sys.executable, True, timeout) as worker:
            worker.imported()
            worker.prepare(job)
    threads = int(os.environ.get("OMP_NUM_THREADS", num_cores()))
    shared = {"columns": columns, "threads": threads}
    return {
        "recbert": {**shared, "teacher": str(teacher)},
        "torch_teacher": {**shared, "weights": str(weights)},
    }
