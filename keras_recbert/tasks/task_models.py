"""The model of a task, by the name that `build` knows it by."""

from keras_recbert.core.names import nearest
from keras_recbert.heads import get_head, list_heads
from keras_recbert.tasks.pretrainer import Pretrainer
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_model import TextModel
from keras_recbert.tasks.text_regressor import TextRegressor

# Tasks with a class of their own; any other is a `TextModel` with the head of the task.
CLASSES = {
    "classifier": TextClassifier,
    "regressor": TextRegressor,
    "pretrainer": Pretrainer,
}


def check_task(task):
    """Raises `ValueError` for a task that there is not; names the nearest one."""
    valid = [*list_heads(), "pretrainer"]
    if task not in valid:
        raise ValueError(
            f"No task is called {task!r}. {nearest(task, valid)}"
            f"Valid: {', '.join(valid)}, or None for the encoder alone."
        )


def split_arguments(task, arguments):
    """Splits keywords of `build` into those of a task and sizes of the encoder.

    Args:
        task: str, as `check_task` lets it pass.
        arguments: dict.

    Raises:
        ValueError: for a keyword that is neither; names the nearest one.
    """
    if task in CLASSES:
        return CLASSES[task].split_arguments(arguments)
    return TextModel.split_arguments(arguments, get_head(task).arguments())


def make_model(task, backbone, preprocessor, arguments):
    """The model of a task on an encoder.

    Args:
        task: str.
        backbone: `RecBertBackbone`.
        preprocessor: `TextPreprocessor` or None.
        arguments: dict of the arguments of the task.

    Returns:
        `TextModel` or `Pretrainer`.
    """
    if task in CLASSES:
        return CLASSES[task](backbone, preprocessor=preprocessor, **arguments)
    cls = get_head(task)
    own = {key: arguments[key] for key in cls.arguments() if key in arguments}
    others = {key: value for key, value in arguments.items() if key not in own}
    try:
        head = cls(**own)
    except TypeError as error:
        raise ValueError(
            f"task={task!r} needs other arguments ({error}). It takes: "
            f"{', '.join(cls.arguments())}."
        ) from error
    return TextModel(backbone, preprocessor, head, name=task, **others)
