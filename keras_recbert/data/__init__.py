"""Data sets: files to examples, and a task spec each. No TensorFlow."""

from keras_recbert.data import tasks  # noqa: F401 -- for their registration
from keras_recbert.data.augmentation import Augmentation, augment
from keras_recbert.data.examples import Examples
from keras_recbert.data.python_docs import load_python_docs
from keras_recbert.data.rows import TableRows
from keras_recbert.data.senteval import read_senteval
from keras_recbert.data.table_reader import TableReader
from keras_recbert.data.task_spec import (
    TaskSpec,
    TfdsSource,
    get_task,
    list_tasks,
    register_task,
)
from keras_recbert.data.tsv import TsvReader

__all__ = [
    "Augmentation",
    "Examples",
    "TableReader",
    "TableRows",
    "TaskSpec",
    "TfdsSource",
    "TsvReader",
    "augment",
    "get_task",
    "list_tasks",
    "load_python_docs",
    "read_senteval",
    "register_task",
]
