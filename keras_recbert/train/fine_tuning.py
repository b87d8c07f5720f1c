"""Registered tasks and tables of a user: from a recipe to scores."""

import dataclasses

from keras_recbert.builder import check_weights, count_parameters, encoder_arguments
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.builder.words import LEARNED, RANDOM
from keras_recbert.config.own_data import file_task
from keras_recbert.convert.token_table import is_folder, read_token_table
from keras_recbert.core.extras import check_installed
from keras_recbert.core.names import check_arguments
from keras_recbert.data.task_files import hold_out_of_train, load_splits, load_tfds
from keras_recbert.data.task_labels import name_labels
from keras_recbert.data.task_spec import get_task
from keras_recbert.heads import NamedHeads, get_head
from keras_recbert.heads.reading import layer_numbers
from keras_recbert.models.registry import get_card
from keras_recbert.tasks.task_models import packer_of, split_arguments
from keras_recbert.tasks.text_arguments import text_arguments
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.text.word_tokenizer import get_tokenizer
from keras_recbert.text.word_vectors import check_word_vectors
from keras_recbert.train.own_data import check_files, load_own_data
from keras_recbert.train.own_files import check_own_files, load_own_files
from keras_recbert.train.registered_data import ValidationReport
from keras_recbert.train.run import open_run
from keras_recbert.train.run_data import RunData
from keras_recbert.train.run_model import reads_words
from keras_recbert.train.several_tasks import SeveralTasks
from keras_recbert.train.submissions import SubmissionFiles
from keras_recbert.train.training_run import FINE_TUNING, train

# Heads that one encoder may have several of, each for a task.
SHARED_HEADS = ("classifier", "multilabel_classifier", "regressor")


def fine_tune(config):
    """Trains a model of the zoo on a registered task or a table, and scores it.

    Args:
        config: `FineTuningConfig`.

    Returns:
        Tuple of the model and its results, see `training_run.train`.

    Raises:
        ValueError: if the model or the task is unknown, no data is named, a file is
            not as it should be, or the weights cannot be read or do not fit.
        FileExistsError: if the output folder is a file, or holds what is not to be
            lost, see `open_run`.
        FileNotFoundError: if a table is not there; `MissingSplitError` if the files of
            the task are not.
        RuntimeError: if another process works in the output folder, or the loss is
            NaN or infinite.
        ImportError: without what reads, scores and draws; before any work.
    """
    config = config.resolved()
    get_card(config.model)
    check_installed("`recbert finetune`", "train", "sklearn", "scipy", "matplotlib")
    check_own_table(config)
    with open_run(config, FINE_TUNING) as run:
        return _fine_tune(run)


def _fine_tune(run):
    return train(run, load_run_data(run.config))


def check_own_table(config):
    """Raises where a file of the user's own, if any, is not there."""
    if config.train is not None:
        check = check_files if file_task(config) is None else check_own_files
        check(config)


def load_run_data(config):
    """Reads the examples of a run, once its model, weights and vocabulary are checked.

    Args:
        config: `FineTuningConfig`, resolved.

    Returns:
        `RunData`; of several tasks `SeveralTasks`.

    Raises:
        ValueError, FileNotFoundError: as `fine_tune`.
    """
    if isinstance(config.task, list):
        return _load_several(config)
    if config.train is not None:
        own_task = file_task(config)
        _check_tokenizer(config)
        check_model(config, own_task or config.task or "classifier")
        data = (load_own_data if own_task is None else load_own_files)(config)
        _tell(data.notes)
        validation = {"validation": data.validation}
        test = None if data.test is None else {"test": data.test}
        return RunData(data.task, data.train, validation, data.notes, test, data.finish)
    task = check_task(config.task)
    _check_tokenizer(config)
    check_model(config, task.head)
    submission = None
    if config.submission:
        submission = SubmissionFiles.read(task, config.data_dir)
    train_examples, validation_examples, notes = _load(config, task)
    _tell(notes)
    if task.labels_of_train:
        task, train_examples, validation_examples = name_labels(
            task, train_examples, validation_examples
        )
    report = ValidationReport.of(task, validation_examples, config.seed)

    def finish(folder, train_examples, predict):
        if submission is not None:
            submission.write(folder, predict)
        if report is None:
            return {}
        return report.finish(folder, train_examples, predict)

    test = None if submission is None else submission.examples
    return RunData(task, train_examples, validation_examples, notes, test, finish)


def _load_several(config):
    tasks = list(map(check_task, config.task))
    for task in tasks:
        if task.head not in SHARED_HEADS or task.scales_labels:
            raise ValueError(
                "Several tasks share an encoder of texts and pairs of texts: their "
                f"heads are {', '.join(SHARED_HEADS)}. Received: {task.name}, whose "
                f"head is {task.head!r}."
            )
    NamedHeads({task.name: task.head for task in tasks})  # checks the names
    return SeveralTasks(
        {
            task.name: load_run_data(dataclasses.replace(config, task=task.name))
            for task in tasks
        }
    )


def check_task(task):
    """Raises what is wrong with a task spec, before its files are read.

    Args:
        task: `TaskSpec`, or the name of a registered one.

    Returns:
        `TaskSpec`.

    Raises:
        UnknownNameError: if task or head is unknown, a `ValueError`.
        ValueError: if the head does not take the arguments, lacks a metric, or has
            other numbers of classes than a metric takes.
    """
    task = get_task(task)
    head = get_head(task.head)
    where = f"The head {task.head!r} of task {task.name!r}"
    check_arguments(where, task.head_arguments, head.arguments())
    packer = packer_of(task.head)
    where = f"The packer {packer.__name__} of task {task.name!r}"
    check_arguments(where, task.packer_arguments, text_arguments(packer))
    shared = [name for name in task.metrics if name not in task.own_metrics]
    try:
        head.check_metrics(shared, task.head_arguments)
    except ValueError as error:
        raise ValueError(f"Task {task.name!r}: {error}") from error
    return task


def _check_tokenizer(config):
    """Raises what is wrong with the vocabulary of a run, and tells what limits none.

    A recipe may be run with encoders of words and of word pieces.
    """
    of_words = ("max_words", "min_frequency")
    for name in ("vocabulary_size",) if reads_words(config) else of_words:
        value = getattr(config, name)
        if value != type(config).__dataclass_fields__[name].default:
            what = "words" if reads_words(config) else "word pieces"
            _tell([f"{name}={value} does nothing: {config.model} reads {what}."])
    if config.vocabulary is not None:
        encoder = encoder_class(get_card(config.model).encoder)
        get_tokenizer(encoder.tokenizer)(load_vocabulary(config.vocabulary))


def check_model(config, head):
    """Raises what is wrong with sizes, weights and vectors, before texts are read.

    Makes no tokenizer, for whose tables TensorFlow would take the memory of a GPU.

    Args:
        config: `FineTuningConfig`, resolved.
        head: str. The task of the head.

    Raises:
        ValueError, FileNotFoundError: as `fine_tune`.
    """
    windows = {"long_texts": "windows"} if config.reads_windows() else {}
    _, sizes = split_arguments(head, {**config.overrides, **windows})
    _check_words(config)
    if config.weights is None:
        arguments = encoder_arguments(config.model, **sizes)  # raises for unknown ones
        count_parameters(config.model, **sizes)  # raises for impossible ones
        if "num_layers" in arguments:
            layer_numbers(config.layer, arguments["num_layers"])
    else:
        if config.max_sequence_length is not None:
            sizes["max_sequence_length"] = config.max_sequence_length
        checkpoint = check_weights(config.model, config.weights, **sizes)
        if config.vocabulary is None and checkpoint.vocabulary is None:
            raise ValueError(
                f"{config.weights} has no vocabulary. Pass the vocab.txt it was "
                "trained with: vocabulary (--vocabulary FILE)."
            )


def _check_words(config):
    """Raises what is wrong with vectors and vocabulary of words."""
    model, vectors, buckets = config.model, config.vectors, config.num_oov_buckets
    is_bert = vectors is not None and is_folder(vectors)
    if vectors is not None and config.weights is not None:
        raise ValueError(
            "The weights have vectors of their words. Received: both vectors="
            f"{vectors!r} and weights={config.weights!r}. Leave one out."
        )
    if buckets and (is_bert or not reads_words(config)):
        raise ValueError(
            "`num_oov_buckets` are for an encoder of words, such as bilstm_student, "
            f"not of word pieces. Received: num_oov_buckets={buckets}, "
            f"model={model!r}, vectors={vectors!r}."
        )
    if is_bert:
        cls = encoder_class(get_card(model).encoder)
        if not (cls.takes_vectors or cls.reads_words):
            raise ValueError(
                f"{model!r} takes no `vectors`. Received: vectors={vectors!r}. A BERT "
                "starts it as weights (--weights)."
            )
        table = read_token_table(vectors)
        table.check_width(config.overrides.get("vector_dim", table.vector_dim))
    elif vectors is not None:
        if not reads_words(config):
            raise ValueError(
                "`vectors` are for an encoder of words, such as bilstm_student. "
                f"Received: vectors={vectors!r}, model={model!r}."
            )
        if vectors not in (LEARNED, RANDOM):
            width = check_word_vectors(vectors)
            given = config.overrides.get("vector_dim", width)
            if given != width:
                raise ValueError(
                    f"{vectors} has vectors of {width} numbers. Received: overrides="
                    f"{{'vector_dim': {given}}}. Leave it out."
                )


def _load(config, task):
    """Training examples, validation examples and notes of a registered task."""
    seed, fraction = config.seed_of_splits(), config.validation_fraction
    if config.tfds:
        loaded = load_tfds(task, seed=seed, validation_fraction=fraction)
    elif config.data_dir is not None:
        loaded = load_splits(task, config.data_dir, seed, fraction)
    else:
        raise ValueError(
            "Say where the examples are: data_dir (--data-dir DIR), the folder with "
            f"the files of {task.name}; tfds (--tfds) to download them; or train "
            "(--train FILE), a table of your own."
        )
    if config.tuning_fraction is None:
        return loaded
    train_examples, _, notes = loaded
    train_examples, held_out, note = hold_out_of_train(
        task, train_examples, config.tuning_fraction, seed
    )
    return train_examples, {"validation": held_out}, [*notes, note]


def _tell(notes):
    for note in notes:
        print(f"Note: {note}", flush=True)
