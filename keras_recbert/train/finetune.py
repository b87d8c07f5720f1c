"""`keras_recbert.finetune`: `recbert finetune` from Python. Imports no TensorFlow."""

import inspect
import os

from keras_recbert.config import FineTuningConfig
from keras_recbert.core.mappings import from_mapping


def finetune(**options):
    """Fine-tunes a model on a table of your own, or on a registered task.

    Does what `recbert finetune` does, and writes the same folder: a run that was
    stopped is resumed by the same call.

    Args:
        **options: the fields of `keras_recbert.config.FineTuningConfig`, which says
            what each is: `train`, `validation`, `test`, `text_column`,
            `label_column`, `model`, `weights`, `output_dir`, `epochs`, ... Paths may
            be `pathlib.Path`.

    Returns:
        Tuple of the model of the best epoch, a `keras_recbert.tasks` model, and the
        dict in `results.json`, whose `scores` are those of that epoch.

    Raises:
        ValueError: for an unknown option, naming the nearest; for options that do not
            go together; for a table that is not as it should be, naming file, line
            and column. Before anything is written.
        FileNotFoundError, FileExistsError, RuntimeError, ImportError: as
            `keras_recbert.train.fine_tuning.fine_tune`.

    Example:

    >>> model, results = keras_recbert.finetune(
    ...     train="reviews.csv", text_column="review", label_column="stars"
    ... )
    >>> results["scores"]["validation_accuracy"]
    """
    values = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in options.items()
    }
    config = from_mapping(FineTuningConfig, values, "finetune")
    from keras_recbert.train.fine_tuning import fine_tune

    return fine_tune(config)


# For completion; the call itself is checked by `from_mapping`.
finetune.__signature__ = inspect.signature(FineTuningConfig).replace(
    parameters=[
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(FineTuningConfig).parameters.values()
    ],
    return_annotation=inspect.Signature.empty,
)
