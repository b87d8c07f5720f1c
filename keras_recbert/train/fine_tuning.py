"""GLUE tasks: from a recipe to scores."""

from keras_recbert.builder import check_weights, encoder_arguments
from keras_recbert.data.glue import get_task, load_glue_tfds, load_splits
from keras_recbert.extras import check_installed
from keras_recbert.models.registry import get_card
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.train.run_folder import open_run
from keras_recbert.train.training_run import TrainingTask, train


def fine_tune(config):
    """Trains a model of the zoo on a GLUE task and scores it on the dev split.

    Args:
        config: `FineTuningConfig`.

    Returns:
        Tuple of the model and its results, see `training_run.train`.

    Raises:
        ValueError: if the model or the task is unknown, no data is named, or the
            weights cannot be read or do not fit.
        FileExistsError: if the output folder is a file, or holds what is not to be
            lost, see `open_run`.
        MissingSplitError: if the files of the task are not there.
        RuntimeError: if another process works in the output folder, or the loss is
            NaN or infinite.
        ImportError: without what scores and draws; before any work.
    """
    get_card(config.model)
    check_installed("`recbert finetune`", "train", "sklearn", "scipy", "matplotlib")
    with open_run(config) as run:
        return _fine_tune(run)


def _fine_tune(run):
    config = run.config
    glue_task = get_task(config.task)
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
    if config.tfds:
        train_examples, dev_examples, notes = load_glue_tfds(glue_task)
    elif config.data_dir is not None:
        train_examples, dev_examples, notes = load_splits(
            glue_task, config.data_dir, seed=config.seed
        )
    else:
        raise ValueError(
            "Say where the examples are: data_dir (--data-dir DIR), a folder with the "
            "official TSV files, or tfds (--tfds) to download them."
        )
    for note in notes:
        print(f"Note: {note}", flush=True)
    task = TrainingTask(
        name=glue_task.name,
        label_names=None if glue_task.is_regression else glue_task.label_names,
        metrics=glue_task.metrics,
        main_metric=glue_task.main_metric,
    )
    return train(run, task, train_examples, dev_examples, notes=notes)
