"""Saved task models."""

import contextlib
import re

import keras
import numpy as np

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.keras_file import check_shapes, read_keras_file
from keras_recbert.convert.preset_weights import list_weights

# Imported for their registration: Keras finds saved classes by name.
from keras_recbert.tasks.pretrainer import Pretrainer  # noqa: F401
from keras_recbert.tasks.text_classifier import TextClassifier  # noqa: F401
from keras_recbert.tasks.text_regressor import TextRegressor  # noqa: F401

LONGEST_REASON = 400  # characters; Keras shows whole configs, vocabulary and all


def load_model(path):
    """Loads a `.keras` file of a task model.

    Args:
        path: str or path of a file written by `model.save` or a training run.

    Returns:
        `TextClassifier`, `TextRegressor`, `TextModel` or `Pretrainer`.

    Raises:
        FileNotFoundError: if there is no such file.
        CheckpointError: a `ValueError`, if the file is damaged, holds an unknown
            class, was saved by another version, has other weights than its config
            describes, or weights that are not finite.
    """
    config, shapes = read_keras_file(path)
    # The optimizer, too, is of no interest until the weights are known to be there.
    described = {key: config[key] for key in config if key != "compile_config"}
    with _short_errors(path):
        weights = list_weights(lambda: keras.saving.deserialize_keras_object(described))
    check_shapes(path, weights, shapes)
    with _short_errors(path):
        model = keras.saving.load_model(path)
    for weight in model.weights:
        value = weight.numpy()
        if not np.all(np.isfinite(value)):
            raise CheckpointError(
                f"{path}: the weight {weight.path!r} holds NaN or infinite numbers. "
                "Such a model gives NaN for every text. Did its training diverge? "
                "Train again with a lower learning rate."
            )
    return model


@contextlib.contextmanager
def _short_errors(path):
    """Raises what goes wrong in the block as one short `CheckpointError`."""
    try:
        yield
    except Exception as error:
        # Without its cause if that would show what is too long for a message.
        cause = error if len(str(error)) <= 4 * LONGEST_REASON else None
        raise CheckpointError(_explain(path, str(error))) from cause


def _explain(path, message):
    """What Keras said, without the configs it shows."""
    unknown = re.search(r"Could not locate (class|function) '([^']{1,200})'", message)
    if unknown:
        what, name = unknown.groups()
        return (
            f"{path} holds an object of the {what} {name!r}, which is not registered "
            "with Keras. If it is your own, import the module that defines it, "
            "decorated with keras.saving.register_keras_serializable, before you "
            "load; if it is of keras_recbert, install the version that saved the file."
        )
    reason = " ".join(message.rpartition("Exception encountered: ")[2].split())
    if len(reason) > LONGEST_REASON:
        reason = reason[:LONGEST_REASON] + " ..."
    return (
        f"{path} cannot be loaded: {reason} If it is of another version of "
        "keras_recbert or Keras, load it there and save a preset."
    )
