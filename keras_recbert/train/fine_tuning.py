"""GLUE tasks: from a recipe to scores."""

import pathlib

from keras_recbert.builder import check_weights
from keras_recbert.data.glue import get_task, load_glue_tfds, load_splits
from keras_recbert.models.registry import get_card
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
        FileExistsError: if the output folder is a file.
        MissingSplitError: if the files of the task are not there.
    """
    get_card(config.model)
    if pathlib.Path(config.run_dir()).is_file():
        raise FileExistsError(
            f"output_dir must be a folder. {config.run_dir()} is a file."
        )
    glue_task = get_task(config.task)
    if config.weights is not None:
        sizes = {"max_sequence_length": config.max_sequence_length}
        sizes |= config.overrides
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
    return train(config, task, train_examples, dev_examples, notes=notes)
