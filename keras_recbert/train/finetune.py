"""`finetune`, `distill` and `pretrain` from Python. Imports no TensorFlow."""

import inspect
import os

from keras_recbert.config import (
    DistillationConfig,
    FineTuningConfig,
    PretrainingConfig,
)
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
    >>> accuracy = results["scores"]["validation_accuracy"]
    """
    config = config_of(FineTuningConfig, options, "finetune")
    from keras_recbert.train.fine_tuning import fine_tune

    return fine_tune(config)


def distill(**options):
    """Trains a student on the logits of a teacher.

    Does what `recbert distill` does, and writes the same folder: a run that was
    stopped is resumed by the same call.

    Args:
        **options: the fields of `keras_recbert.config.DistillationConfig`, which says
            what each is: `teacher`, `train`, `unlabelled`, `model`, ... Paths may be
            `pathlib.Path`, and `tagger` the function itself.

    Returns:
        Tuple of the student of the best epoch, a `keras_recbert.tasks` model, and the
        dict in `results.json`.

    Raises:
        ValueError, FileNotFoundError, FileExistsError, RuntimeError, ImportError: as
            `finetune`, and `keras_recbert.train.distillation.distill`.

    Example:

    >>> student, results = keras_recbert.distill(
    ...     teacher="runs/reviews-swish_small-seed0",
    ...     train="reviews.csv",
    ...     unlabelled="more.txt",
    ... )
    >>> agreement = results["scores"]["validation_teacher_agreement"]
    """
    tagger = options.get("tagger")
    if callable(tagger):
        options["tagger"] = f"{tagger.__module__}:{tagger.__qualname__}"
    config = config_of(DistillationConfig, options, "distill")
    from keras_recbert.train.distillation import distill

    return distill(config)


def pretrain(**options):
    """Pre-trains an encoder on a corpus that `keras_recbert.prepare` wrote.

    Does what `recbert pretrain` does, and writes the same folder: a run that was
    stopped is resumed by the same call. Its `preset` is what `weights=` takes.

    Args:
        **options: the fields of `keras_recbert.config.PretrainingConfig`, which says
            what each is: `corpus`, `model`, `objectives`, `steps`, ... Paths may be
            `pathlib.Path`.

    Returns:
        Tuple of the `Pretrainer` and the dict in `results.json`, whose `history` has
        the losses and scores of each checkpoint; None for workers that are not the
        chief.

    Raises:
        ValueError, FileExistsError, OSError, RuntimeError, ImportError: as `finetune`,
            and `keras_recbert.train.pretraining_run.pretrain`.
    """
    config = config_of(PretrainingConfig, options, "pretrain")
    from keras_recbert.train.pretraining_run import pretrain

    return pretrain(config)


def config_of(cls, options, name):
    """A config from the options of a call.

    Args:
        cls: dataclass.
        options: dict; paths may be `pathlib.Path`.
        name: str. The call, for errors.
    """
    values = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in options.items()
    }
    return from_mapping(cls, values, name)


def _signature(cls):
    """The fields of a config as arguments by name, for completion."""
    signature = inspect.signature(cls)
    return signature.replace(
        parameters=[
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )


# The calls themselves are checked by `from_mapping`.
finetune.__signature__ = _signature(FineTuningConfig)
distill.__signature__ = _signature(DistillationConfig)
pretrain.__signature__ = _signature(PretrainingConfig)
