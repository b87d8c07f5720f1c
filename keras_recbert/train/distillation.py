"""Distillation: a teacher scores texts, and a student learns its logits."""

import dataclasses
import hashlib
import pathlib

import numpy as np

from keras_recbert.config.augmentation import Augmentation
from keras_recbert.config.own_data import file_task
from keras_recbert.core.extras import check_installed
from keras_recbert.core.json_files import file_sha256
from keras_recbert.data.augmentation import TextAugmenter
from keras_recbert.data.logits_file import read_logits
from keras_recbert.data.pos_tagging import find_tagger
from keras_recbert.data.tables import check_table, read_table
from keras_recbert.data.transfer_set import (
    TransferSet,
    made_from,
    write_transfer_set,
)
from keras_recbert.heads import get_head
from keras_recbert.models.registry import get_card
from keras_recbert.serving.text_columns import choose_text_columns
from keras_recbert.train.fine_tuning import load_run_data
from keras_recbert.train.own_data import check_files
from keras_recbert.train.precision import choose_precision
from keras_recbert.train.predictions import predict, write_csv
from keras_recbert.train.run import open_run
from keras_recbert.train.run_folder import RunKind
from keras_recbert.train.several_tasks import SeveralTasks
from keras_recbert.train.task_batches import TaskBatches
from keras_recbert.train.teacher import HEADS, find_model
from keras_recbert.train.teacher_ensemble import TeacherEnsemble, load_teachers
from keras_recbert.train.teacher_workers import check_workers, sharing
from keras_recbert.train.training_run import FINE_TUNING, train
from keras_recbert.train.transfer_batches import TransferBatches
from keras_recbert.train.validation_split import labels_of

SPLITS = ("validation", "validation_matched", "validation_mismatched")
DISTILLATION = RunKind(
    name="distillation",
    own_files=(
        *FINE_TUNING.own_files,
        *(f"disagreements_{split}.csv" for split in SPLITS),
    ),
    own_folders=FINE_TUNING.own_folders,
    next_step=FINE_TUNING.next_step,
)
TRANSFER_SET = "transfer_set"


def distill(config):
    """Trains a student on a teacher's logits of labelled, unlabelled and made-up texts.

    Liu 2020, chapter 3. The stages are kept: the transfer set (texts and logits) in a
    folder that other runs may share, the training in checkpoints. The same command
    resumes whatever was stopped.

    Args:
        config: `keras_recbert.config.DistillationConfig`.

    Returns:
        Tuple of the student and its results, see `training_run.train`; `scores` has
        those of the teacher, too, and how often both agree.

    Raises:
        FileNotFoundError: if teacher or texts are not there.
        ValueError: if an option, the teacher, its labels or a file is not as it should
            be; if the transfer set was made from something else.
        Others: as `keras_recbert.train.fine_tuning.fine_tune`.
    """
    config = config.resolved()
    get_card(config.model)
    check_installed("`recbert distill`", "train", "sklearn", "scipy", "matplotlib")
    if config.tagger is not None:
        find_tagger(config.tagger)
    elif config.pos_probability > 0 and config.augmentation().n_iter > 0:
        check_installed("`pos_probability`", "distill", "nltk")
    if config.teacher is not None:
        check_workers(config)
    check_sources(config)
    with open_run(config, DISTILLATION) as run:
        return _distill(run)


def check_sources(config):
    """Raises where a teacher or a file is not there.

    Args:
        config: `DistillationConfig`.

    Raises:
        ValueError, FileNotFoundError: as `distill`; files are not read.
    """
    if config.teacher is None and config.teacher_logits is None:
        raise ValueError(
            "Name the model to learn from: teacher (--teacher FOLDER), the output "
            "folder of `recbert finetune`; or teacher_logits (--teacher-logits FILE)."
        )
    if config.train is not None:
        if file_task(config) is not None:
            raise ValueError(
                f"A student learns from tables of texts. Received: train="
                f"{config.train!r}, which is read as files of {file_task(config)} are."
            )
        check_files(config)
    teachers = config.teacher or []
    for path in teachers if isinstance(teachers, list) else [teachers]:
        find_model(path, "teacher")
    for path in filter(None, (config.teacher_logits, config.unlabelled)):
        check_table(path, plain_text=True)


def _distill(run):
    config = run.config
    data = load_run_data(config)
    folder = pathlib.Path(config.transfer_set or pathlib.Path(run.folder, TRANSFER_SET))
    if not isinstance(data, SeveralTasks):
        (lesson,) = _lessons(config, [(data, folder)])
        learned = TransferBatches(config, lesson.transfer, lesson.facts())

        def finish(folder, examples, predict_logits):
            scores = data.finish(folder, examples, predict_logits)
            for split in lesson.logits:
                found = lesson.compare(data, split, predict_logits, folder)
                scores |= {f"{split}_{name}": value for name, value in found.items()}
            return scores

        return train(run, dataclasses.replace(data, finish=finish), learned)
    places = [(one, folder / name) for name, one in data.data.items()]
    lessons = dict(zip(data.data, _lessons(config, places), strict=True))
    learned = TaskBatches(
        config,
        {
            name: TransferBatches(config, lesson.transfer, lesson.facts())
            for name, lesson in lessons.items()
        },
    )

    def finish_all(predict_logits):
        scores = {}
        for name, lesson in lessons.items():
            for split in list(lesson.logits)[:1]:
                found = lesson.compare(data.data[name], split, predict_logits[name])
                scores |= {f"validation_{name}_{k}": v for k, v in found.items()}
        return scores

    return train(run, dataclasses.replace(data, finish=finish_all), learned)


def _lessons(config, places):
    """What a teacher leaves of each task, told as it comes.

    Args:
        config: `DistillationConfig`.
        places: list of tuples of `RunData` and the folder of its transfer set.

    Returns:
        list of `_Lesson`.
    """
    for data, _ in places:
        _check_head(data.task, config)
    if config.teacher is None:
        lessons = (_lesson_of_file(config, *place) for place in places)
    else:
        texts = [_Texts.of(config, data) for data, _ in places]
        requested = config.teacher_precision
        if requested == "auto":  # a busy machine may measure other rates than before
            requested = made_from(places[0][1]).get("teacher_precision", requested)
        precision = choose_precision(requested)
        teachers = load_teachers(config.teacher, precision, config.teacher_batch_size)
        of_tasks = [  # checks all
            TeacherEnsemble.of_task(teachers, data.task) for data, _ in places
        ]
        lessons = (
            _lesson_of_teacher(config, *place, *asked, precision)
            for place, *asked in zip(places, texts, of_tasks, strict=True)
        )
    made = []
    for (data, folder), lesson in zip(places, lessons, strict=True):
        print(
            f"Transfer set of {data.name}: {lesson.transfer.num_records:,} texts, "
            f"{lesson.transfer.num_labels:,} with a label, in {folder}.",
            flush=True,
        )
        made.append(lesson)
    return made


def _lesson_of_teacher(config, data, folder, texts, teacher, precision):
    """Lets the teacher score all texts of a task, `_Texts`."""
    transfer = write_transfer_set(
        folder,
        data.task.fields,
        teacher.num_logits,
        texts.examples,
        teacher.logits,
        {
            "teacher": teacher.checksum,
            "teacher_precision": precision.chosen,
            "logits": teacher.places,
            "texts": texts.checksum(),
            "augmentation": texts.made_by(),
        },
        share_out=sharing(config, teacher, precision),
        overwrite=_may_replace(config),
    )
    logits = {
        split: teacher.logits([list(column) for column in examples.fields.values()])
        for split, examples in data.validation.items()
    }
    facts = {"num_parameters": teacher.num_parameters()}
    if len(teacher.members) > 1:
        facts["members"] = len(teacher.members)
    return _Lesson(transfer, logits, facts)


def _lesson_of_file(config, data, folder):
    """The logits of another tool."""
    task = data.task
    label_names = None if task.head == "regressor" else task.label_names
    path, held_out = config.teacher_logits, _held_out(data)

    def examples():
        left_out = 0
        for example in read_logits(path, task.fields, label_names):
            if example[0] in held_out:
                left_out += 1
            else:
                yield example
        if left_out:
            print(
                f"{path}: {left_out:,} texts that the student is scored on are left "
                "out.",
                flush=True,
            )

    transfer = write_transfer_set(
        folder,
        task.fields,
        1 if label_names is None else len(label_names),
        examples,
        None,
        {
            "teacher": file_sha256(path),
            "labels": label_names and list(label_names),
            "held_out": hashlib.sha256(repr(sorted(held_out)).encode()).hexdigest(),
        },
        overwrite=_may_replace(config),
    )
    if config.label_weight and not transfer.num_labels:
        raise ValueError(
            f"{path} has no 'label'. Received: label_weight={config.label_weight}. "
            "Write labels beside the logits, or leave it out."
        )
    return _Lesson(transfer, {}, {})


def _may_replace(config):
    """Whether a transfer set of something else is one of this run's own, to replace."""
    return config.overwrite and config.transfer_set is None


@dataclasses.dataclass(frozen=True, eq=False)
class _Lesson:
    """What a teacher leaves to a student.

    Args:
        transfer: `TransferSet`.
        logits: dict of validation split to the logits of the teacher; empty where
            nobody can ask it.
        teacher: dict of JSON, what is known of the teacher.
    """

    transfer: TransferSet
    logits: dict
    teacher: dict

    def facts(self):
        """What results say of it: a dict of JSON."""
        origin = self.transfer.made_from
        return {
            "teacher": {"checksum": origin["teacher"], **self.teacher},
            "transfer_set": {
                "records": self.transfer.num_records,
                "labels": self.transfer.num_labels,
                "made_from": origin,
                "measured": self.transfer.measured,
            },
        }

    def compare(self, data, split, predict_logits, folder=None):
        """Scores of the teacher on a split, and how near the student is to it: a dict.

        Writes the examples that they answer otherwise into `folder`, the surest first,
        where both choose one class.
        """
        examples, task = data.validation[split], data.task
        head = get_head(task.head)(**task.head_arguments)
        student, logits = predict_logits(examples), self.logits[split]
        if task.head == "regressor":
            logits = logits[:, 0]
            found = {"teacher_correlation": _correlation(logits, student)}
        elif task.head == "classifier":
            equal = logits.argmax(1) == student.argmax(1)
            found = {"teacher_agreement": float(equal.mean())}
            if folder is not None:
                path = folder / f"disagreements_{split}.csv"
                _write_disagreements(path, examples, head.label_names, logits, student)
        else:
            equal = (logits > 0) == (student > 0)
            found = {"teacher_agreement": float(equal.mean())}
        shared = [name for name in task.metrics if name not in task.own_metrics]
        labels = head.as_targets(labels_of(examples))
        scores = head.scores(shared, labels, logits) if shared else {}
        if task.own_metrics:
            predictions = head.predictions(logits)
            for name, metric in task.own_metrics.items():
                scores[name] = metric(examples, predictions)
        return found | {f"teacher_{name}": value for name, value in scores.items()}


def _write_disagreements(path, examples, label_names, teacher, student):
    """Writes a row an example: its texts, its label, and what both answer."""
    answers = [predict(logits, label_names) for logits in (teacher, student)]
    (of_teacher, sure), (of_student, surer) = answers
    rows = np.flatnonzero(teacher.argmax(1) != student.argmax(1))
    sureness = np.minimum(np.asarray(sure, float), np.asarray(surer, float))
    labels = labels_of(examples)
    header = ["id", *examples.fields, "label"]
    header += ["teacher", "teacher_score", "student", "student_score"]
    write_csv(
        path,
        header,
        (
            (
                examples.ids[row],
                *(column[row] for column in examples.fields.values()),
                label_names[labels[row]],
                of_teacher[row],
                sure[row],
                of_student[row],
                surer[row],
            )
            for row in rows[np.argsort(-sureness[rows], kind="stable")]
        ),
    )


def _correlation(one, other):
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _check_head(task, config):
    if task.head not in HEADS:
        raise ValueError(
            f"A student learns the logits of texts: of {', '.join(HEADS)}. Received: "
            f"{task.name}, whose head is {task.head!r}."
        )
    if task.head != "classifier" and config.objective != "logits":
        raise ValueError(
            f"`objective` of a {task.head} must be logits. Received: objective="
            f"{config.objective!r}."
        )
    if task.head == "multilabel_classifier" and config.label_weight:
        raise ValueError(
            "`label_weight` is of one label or score an example. Received: "
            f"label_weight={config.label_weight} for a multilabel_classifier."
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _Texts:
    """The texts of a transfer set.

    Args:
        fields: dict of name to list of str; unlabelled texts behind the labelled.
        labels: list of numbers, those of the first texts.
        augmentation: `Augmentation`.
        tagger: optional str, as `find_tagger` takes it.
    """

    fields: dict
    labels: list
    augmentation: Augmentation
    tagger: str | None = None

    @classmethod
    def of(cls, config, data):
        """Those of a run; the options limit those that it trains on."""
        examples = data.train
        if config.limit is not None:
            examples = examples.take(range(min(config.limit, len(examples))))
        fields = {name: list(column) for name, column in examples.fields.items()}
        labels = labels_of(examples)
        labels = [] if np.ndim(labels) > 1 else np.asarray(labels, float).tolist()
        if config.unlabelled is not None:
            for texts in _new_texts(config, fields, data):
                for column, text in zip(fields.values(), texts, strict=True):
                    column.append(text)
        return cls(fields, labels, config.augmentation(), config.tagger)

    def made_by(self):
        """What results say of the augmentation: a dict of JSON."""
        made_by = dataclasses.asdict(self.augmentation)
        return made_by if self.tagger is None else {**made_by, "tagger": self.tagger}

    def checksum(self):
        """Checksum of texts and labels, and of what is made of them."""
        digest = hashlib.sha256(repr(self.labels).encode())
        for name, column in self.fields.items():
            for text in (name, *column):
                digest.update(text.encode() + b"\0")
        return digest.hexdigest()

    def examples(self):
        """Yields tuples of texts and label, or None."""
        tagger = None if self.tagger is None else find_tagger(self.tagger)
        augmenter = TextAugmenter(self.fields, self.augmentation, tagger)
        for row, iteration, texts in augmenter:
            has_label = iteration == 0 and row < len(self.labels)
            yield texts, self.labels[row] if has_label else None


def _held_out(data):
    """The texts that a student is scored on: a set of tuples, a text a field."""
    splits = (*data.validation.values(), *(data.test or {}).values())
    columns = (examples.fields.values() for examples in splits)
    return {texts for split in columns for texts in zip(*split, strict=True)}


def _new_texts(config, fields, data):
    """Texts of the file without labels, each once: a list of tuples, a text a field.

    Those of the labelled examples are learned already; those that the student is scored
    on are not to be.
    """
    found = _read_unlabelled(config, data.task)
    held_out = _held_out(data)
    known = held_out.union(zip(*fields.values(), strict=True))
    new = [texts for texts in dict.fromkeys(found) if texts not in known]
    scored = sum(texts in held_out for texts in found)
    note = f"{config.unlabelled}: {len(new):,} texts to learn on too."
    if scored:
        note += f" {scored:,} that the student is scored on are left out."
    if rest := len(found) - scored - len(new):
        note += f" {rest:,} were there already."
    print(note, flush=True)
    return new


def _read_unlabelled(config, task):
    """Texts of the file without labels: a list of tuples, a text a field."""
    path, fields = config.unlabelled, task.fields
    is_plain = str(path).endswith(".txt")
    if is_plain and len(fields) > 1:
        raise ValueError(
            f"{path} has a text a line, and the examples of {task.name} are of "
            f"{' and '.join(fields)}. Pass a table (.csv, .tsv, .jsonl or .parquet) "
            "with a column for each."
        )
    table = read_table(path, config.encoding, plain_text=True)
    for note in table.notes:
        print(f"Note: {note}", flush=True)
    given = config.text_column or ()
    given = (given,) if isinstance(given, str) else tuple(given)
    if is_plain:
        given = ()
    elif not given:  # columns like those of the labelled examples
        known = getattr(task.read, "texts", fields)
        given = known if set(known) <= set(table.columns) else ()
    columns = choose_text_columns(path, table.columns, given)
    if len(columns) != len(fields):
        raise ValueError(
            f"{path}: an example has {len(fields)} text(s), and the texts are in the "
            f"columns {', '.join(columns)}."
        )
    rows = zip(*(table.values(name) for name in columns), strict=True)
    texts = [row for row in rows if any(map(str.strip, row))]
    if not texts:
        raise ValueError(f"{path} holds no text.")
    return texts
