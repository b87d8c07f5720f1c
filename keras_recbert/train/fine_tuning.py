"""Registered tasks and tables of a user: from a recipe to scores."""

from keras_recbert.builder import check_weights, encoder_arguments
from keras_recbert.core.extras import check_installed
from keras_recbert.core.names import check_arguments, nearest
from keras_recbert.data.task_files import load_splits, load_tfds
from keras_recbert.data.task_spec import get_task
from keras_recbert.heads import get_head
from keras_recbert.models.registry import get_card
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.train.own_data import check_files, load_own_data
from keras_recbert.train.run import open_run
from keras_recbert.train.training_run import FINE_TUNING, train


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
    if config.train is not None:
        check_files(config)
    with open_run(config, FINE_TUNING) as run:
        return _fine_tune(run)


def _fine_tune(run):
    config = run.config
    task = check_task(config.task) if config.train is None else None
    _check_model(config)
    if task is None:
        data = load_own_data(config)
        _tell(data.notes)
        dev = {"dev": data.dev}
        return train(
            run,
            data.task,
            data.train,
            dev,
            notes=data.notes,
            test_examples=data.test,
            finish=data.finish,
        )
    train_examples, dev_examples, notes = _load(config, task)
    _tell(notes)
    return train(run, task, train_examples, dev_examples, notes=notes)


def check_task(task):
    """Raises what is wrong with a task spec, before its files are read.

    Args:
        task: `TaskSpec`, or the name of a registered one.

    Returns:
        `TaskSpec`.

    Raises:
        UnknownNameError: if task or head is unknown, a `ValueError`.
        ValueError: if the head does not take the arguments, or lacks a metric.
    """
    task = get_task(task)
    head = get_head(task.head)
    where = f"The head {task.head!r} of task {task.name!r}"
    check_arguments(where, task.head_arguments, head.arguments())
    valid = dict.fromkeys((*head.metric_names, *head.more_metrics))
    for name in task.metrics:
        if name not in valid:
            raise ValueError(
                f"{where} has no metric {name!r}. {nearest(name, valid)}Valid: "
                f"{', '.join(valid)}."
            )
    return task


def _check_model(config):
    """Raises what is wrong with model, weights and vocabulary, before texts are read.

    Raises:
        ValueError, FileNotFoundError: as `fine_tune`.
    """
    if config.vocabulary is not None:
        load_vocabulary(config.vocabulary)  # before the examples, which take longer
    if config.weights is None:
        encoder_arguments(config.model, **config.overrides)  # raises for unknown ones
    else:
        sizes = dict(config.overrides)
        if config.max_sequence_length is not None:
            sizes["max_sequence_length"] = config.max_sequence_length
        checkpoint = check_weights(config.model, config.weights, **sizes)
        if config.vocabulary is None and checkpoint.vocabulary is None:
            raise ValueError(
                f"{config.weights} has no vocabulary. Pass the vocab.txt it was "
                "trained with: vocabulary (--vocabulary FILE)."
            )


def _load(config, task):
    """Training examples, dev examples and notes of a registered task."""
    if config.tfds:
        return load_tfds(task)
    if config.data_dir is not None:
        return load_splits(task, config.data_dir, seed=config.seed)
    raise ValueError(
        "Say where the examples are: data_dir (--data-dir DIR), the folder with the "
        f"files of {task.name}; tfds (--tfds) to download them; or train (--train "
        "FILE), a table of your own."
    )


def _tell(notes):
    for note in notes:
        print(f"Note: {note}", flush=True)
