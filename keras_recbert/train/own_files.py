"""A user's own files of tags or of questions: from files to examples and answers."""

import functools
import os
from dataclasses import dataclass

from keras_recbert.config.own_data import file_task, table_name
from keras_recbert.data.conll import read_conll, read_conllu, write_conll
from keras_recbert.data.examples import Examples
from keras_recbert.data.split import group_fields, split_examples
from keras_recbert.data.squad_json import read_squad, write_answers
from keras_recbert.data.task_labels import check_examples
from keras_recbert.data.task_spec import TaskSpec
from keras_recbert.metrics.tagging import ENTITY_METRICS, OUTSIDE, are_entity_tags
from keras_recbert.train.own_data import VALIDATION_FRACTION, check_no_folder
from keras_recbert.train.registered_data import ValidationReport


@dataclass(frozen=True, eq=False)
class OwnFiles:
    """What a run on a user's own files of tags or questions reads.

    Args:
        task: `TaskSpec` of the files.
        train, validation: `Examples`.
        notes: list of sentences for the user.
        seed: int.
    """

    task: TaskSpec
    train: Examples
    validation: Examples
    notes: list[str]
    seed: int
    test: None = None

    def finish(self, folder, train_examples, predict):
        """Writes predictions on the validation examples; as `OwnData.finish`."""
        report = ValidationReport(self.task, self.validation, self.seed)
        return report.finish(folder, train_examples, predict)


def check_own_files(config):
    """Raises `FileNotFoundError` for a file that is not there.

    Args:
        config: `FineTuningConfig` with `train`.
    """
    for name in ("train", "validation"):
        path = getattr(config, name)
        if path is not None:
            check_no_folder(name, path)
            if not os.path.isfile(path):
                raise FileNotFoundError(f"There is no file at {path}.")


def load_own_files(config):
    """Reads the files of a run.

    Args:
        config: `FineTuningConfig` with `train`.

    Returns:
        `OwnFiles`.

    Raises:
        ValueError: where a file is not as it should be; names file, and line or
            question.
    """
    files = {"train": config.train, "validation": config.validation}
    files = {split: path for split, path in files.items() if path is not None}
    make = {"token_classifier": _tags, "question_answering": _questions}
    task, found, notes = make[file_task(config)](table_name(config.train), files)
    for split, examples in found.items():
        check_examples(task, files[split], split, examples)
    train, validation = found["train"], found.get("validation")
    if validation is None:
        train, validation, note = _hold_out(task, train, config)
        notes.append(note)
    unit = "sentences" if task.head == "token_classifier" else "questions"
    notes.append(
        f"{len(train):,} {unit} to train on, {len(validation):,} to validate on."
    )
    return OwnFiles(task, train, validation, notes, config.seed)


def _tags(name, files):
    """The task spec of files of tags, their examples, and notes."""
    readers = {split: _reader_of_tags(path) for split, path in files.items()}
    train = readers["train"](files["train"], "train")
    tags = {tag for sentence in train.targets["tags"] for tag in sentence}
    # By name, but for that of words in no entity.
    tags = tuple(sorted(tags, key=lambda tag: (tag != OUTSIDE, tag)))
    if len(tags) < 2:
        raise ValueError(
            f"{files['train']}: expected two different tags or more, in the last "
            f"column. Received: {tags[0]!r} alone."
        )
    found = {
        split: read(files[split], split, label_names=tags)
        for split, read in readers.items()
    }
    entity_metrics = ENTITY_METRICS if are_entity_tags(tags) else ()
    task = TaskSpec(
        name=name,
        fields=("words",),
        targets=("tags",),
        head="token_classifier",
        head_arguments={"label_names": tags},
        metrics=(*entity_metrics, "accuracy"),
        files=files,
        read=functools.partial(readers["train"], label_names=tags),
        write=write_conll,
        group_by="words",
    )
    what = "tags of entities" if entity_metrics else "tags"
    return task, found, [f"{files['train']}: {len(tags)} {what}, {', '.join(tags)}."]


def _reader_of_tags(path):
    """CoNLL-U by the ending of its name, else columns."""
    plain = path.removesuffix(".gz")
    return read_conllu if plain.endswith(".conllu") else read_conll


def _questions(name, files):
    """The task spec of files of questions, their examples, and notes."""
    found = {split: read_squad(path, split) for split, path in files.items()}
    notes, no_answer = [], False
    for split, examples in found.items():
        without = sum(not one["text"] for one in examples.targets["answers"])
        if without:
            no_answer = True
            notes.append(
                f"{files[split]}: {without:,} of {len(examples):,} questions have no "
                "answer, so the model may give none."
            )
    task = TaskSpec(
        name=name,
        fields=("question", "context"),
        targets=("answers",),
        head="question_answering",
        head_arguments={"no_answer": no_answer},
        metrics=("exact_match", "f1"),
        main_metric="f1",
        files=files,
        read=read_squad,
        write=write_answers,
        group_by="context",
        max_sequence_length=384,
    )
    return task, found, notes


def _hold_out(task, examples, config):
    """Training and validation examples of one file, and a note."""
    fraction = config.validation_fraction or VALIDATION_FRACTION
    seed = config.seed_of_splits()
    groups = group_fields(examples.fields, task.group_by)
    try:
        train, validation = split_examples(examples, fraction, seed, groups)
    except ValueError as error:
        raise ValueError(
            f"{config.train}: {error} Or name a validation file, validation "
            "(--validation FILE)."
        ) from error
    note = (
        f"{config.train}: {fraction:.0%} held out to validate on, no {task.group_by} "
        f"on both sides (seed {seed})."
    )
    return train, validation, note
