"""A trained model that a student learns from."""

import dataclasses
import hashlib
import os
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf

import keras_recbert
from keras_recbert.convert.hub_folder import local_folder
from keras_recbert.convert.open_checkpoint import is_preset
from keras_recbert.convert.preset_files import CARD
from keras_recbert.core.json_files import file_sha256, read_json
from keras_recbert.heads import NamedHeads
from keras_recbert.models.precision import in_precision
from keras_recbert.tasks.compiling import compiling_where_it_pays
from keras_recbert.tasks.text_batches import pack
from keras_recbert.train.run_folder import PRESET
from keras_recbert.train.teacher_tasks import check_task, class_places

# Texts that are tokenized, and sorted by their tokens, at a time.
TOKENIZED_TOGETHER = 1 << 13
HEADS = ("classifier", "multilabel_classifier", "regressor")


class Teacher:
    """The logits of a trained model, for texts in which words may be masked.

    Attributes:
        path: path of the preset or file.
        model: the model, in the precision asked for.
        checksum: str. Of weights, tokenizer and arguments.

    Args:
        path: str or path. Output folder of `recbert finetune`, a preset or a
            model.keras.
        precision: `keras_recbert.train.precision.Precision`.
        batch_size: int. Texts that the model reads at a time.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        ValueError: if it holds no model with a vocabulary and a head, or several, for
            logits of texts.
    """

    def __init__(self, path, precision, batch_size=128):
        self.path = find_model(path, "teacher")
        self.checksum = _checksum(self.path)
        model = keras_recbert.load(self.path)
        tasks = [head.task for head in getattr(model, "heads", {}).values()]
        if not set(HEADS) & set(tasks):
            held = f"task {', '.join(tasks)}" if tasks else "an encoder without a head"
            raise ValueError(
                f"The teacher at {self.path} must be one of {', '.join(HEADS)}. "
                f"Received: {held}. Train one: recbert finetune."
            )
        if model.preprocessor is None:
            raise ValueError(
                f"The teacher at {self.path} has no vocabulary, so it takes no texts."
            )
        self.model = in_precision(model, precision.policy)
        self.batch_size = batch_size
        self._packer = self.model.preprocessor.reading_masks()

    def of_task(self, task):
        """The logits that a student of a task learns, in the order of its classes.

        Args:
            task: `keras_recbert.data.TaskSpec`. Of a teacher with several heads the one
                of its name answers.

        Returns:
            `TaskTeacher`.

        Raises:
            ValueError: if there is no such head, or head, fields or classes differ.
        """
        model, name = self.model, None
        if isinstance(model.head, NamedHeads):
            name = task.name
            if task.name not in model.heads:
                raise ValueError(
                    f"The teacher at {self.path} has no head for {task.name}. It has: "
                    f"{', '.join(model.heads)}."
                )
            model = model.head_view(task.name)
        check_task(self.path, model.head.task, model.fields, task)
        places = _places(model.head, self.path, task)
        return TaskTeacher(self, model, places, name)

    def logits(self, columns, model=None):
        """Logits of texts.

        Args:
            columns: list of lists of str, one for each field.
            model: the view of one of several heads; by default the model.

        Returns:
            float32 `(num_examples, num_logits)`, in the order of the texts.
        """
        model = self.model if model is None else model
        sizes = sum(np.array([len(text.encode()) for text in col]) for col in columns)
        order = np.argsort(sizes, kind="stable")
        found = []
        for start in range(0, len(order), TOKENIZED_TOGETHER):
            rows = order[start : start + TOKENIZED_TOGETHER]
            batches = list(self._batches(columns, rows))
            lengths = [batch["token_ids"].shape[-1] for _, batch in batches]
            encoder = self.model.encoder
            with compiling_where_it_pays(encoder, self.batch_size, lengths, False):
                for places, batch in batches:
                    found.append((places, model.predict_on_batch(batch)))
        logits = np.concatenate([logits for _, logits in found])
        logits = logits.reshape(len(order), -1)
        back = np.empty_like(logits)
        back[np.concatenate([places for places, _ in found])] = logits
        return back

    def _batches(self, columns, rows):
        """Yields places of texts and their packed ids, batches of equal lengths.

        A batch is as long as its longest row: what is padding is computed in vain.
        """
        starts = range(0, len(rows), self.batch_size)
        if (
            len(self.model.input["token_ids"].shape) > 2
            or self._packer.sequence_length is not None
        ):
            for start in starts:  # windows of long texts, or one length for all
                places = rows[start : start + self.batch_size]
                yield places, pack(self._packer, _columns_of(columns, places))
            return
        packed = self._packer(_columns_of(columns, rows))
        packed = {name: feature.numpy() for name, feature in packed.items()}
        lengths = packed["padding_mask"].sum(1)
        order = np.argsort(lengths, kind="stable")
        for start in starts:
            part = order[start : start + self.batch_size]
            length = lengths[part].max()
            batch = {name: feature[part, :length] for name, feature in packed.items()}
            yield rows[part], batch


@dataclasses.dataclass(frozen=True, eq=False)
class TaskTeacher:
    """A teacher of one task.

    Args:
        teacher: `Teacher`.
        model: the model, or the view of the head of the task.
        places: list of int, the teacher's logit of each of the student's.
        head_name: str. Which of several heads answers; None of one.
    """

    teacher: Teacher
    model: Any
    places: list
    head_name: str | None = None

    def logits(self, columns):
        """As `Teacher.logits`, in the order of the student's classes."""
        return self.teacher.logits(columns, self.model)[:, self.places]


def _places(head, path, task):
    """The teacher's logit of each class of a task; raises if classes differ."""
    if head.task == "regressor":
        return [0]
    places = class_places(head.label_names, task)
    if places is None:
        raise ValueError(
            f"Teacher and student must have the same labels. The teacher at {path} has "
            f"{', '.join(head.label_names)}; {task.name} has "
            f"{', '.join(task.label_names)}. Rename the labels of the examples, or "
            "choose another teacher."
        )
    return places


def _columns_of(columns, places):
    return tuple(tf.constant([column[place] for place in places]) for column in columns)


def find_model(path, what="model"):
    """The preset or model.keras at a path.

    Args:
        path: str or path. Output folder of a run, a preset or a model.keras; or a
            preset on a hub, as `"hf://user/name"`.
        what: str. What messages call it.

    Raises:
        FileNotFoundError: if there is none.
    """
    path = pathlib.Path(local_folder(path))
    if is_preset(path) or (path.is_file() and path.suffix == ".keras"):
        return path
    if is_preset(path / PRESET):
        return path / PRESET
    there = "There is" if path.exists() else "There is nothing there:"
    raise FileNotFoundError(
        f"{path} holds no {what}. {there} no preset and no model.keras. Expected the "
        "output folder of `recbert finetune`, a preset or a model.keras."
    )


def is_model(path):
    """Whether `find_model` finds one in a folder or a file; a hub is not asked."""
    try:
        return os.path.exists(path) and bool(find_model(path))
    except FileNotFoundError:
        return False


def _checksum(path):
    if path.is_file():
        return file_sha256(path)
    files = read_json(path / CARD)["files"]
    sums = " ".join(f"{name} {files[name]['sha256']}" for name in sorted(files))
    return hashlib.sha256(sums.encode()).hexdigest()
