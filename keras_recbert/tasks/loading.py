"""Saved task models."""

import pathlib

import keras

# Imported for their registration: Keras finds saved classes by name.
from keras_recbert.tasks.pretrainer import Pretrainer  # noqa: F401
from keras_recbert.tasks.text_classifier import TextClassifier  # noqa: F401
from keras_recbert.tasks.text_regressor import TextRegressor  # noqa: F401


def load_model(path):
    """Loads a `.keras` file of a task model.

    Args:
        path: str or path of a file written by `model.save` or a training run.

    Returns:
        `TextClassifier`, `TextRegressor` or `Pretrainer`.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    if not pathlib.Path(path).is_file():
        raise FileNotFoundError(
            f"There is no file {path}. `recbert finetune` writes model.keras into its "
            "output folder; so does `model.save('model.keras')`."
        )
    return keras.saving.load_model(path)
