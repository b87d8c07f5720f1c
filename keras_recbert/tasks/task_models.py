"""The model of a task, by the name that `build` knows it by."""

from keras_recbert.core.names import check_arguments, nearest
from keras_recbert.heads import get_head, list_heads
from keras_recbert.models.encoder import get_encoder, list_encoders
from keras_recbert.tasks.pretrainer import Pretrainer
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_model import TextModel, text_arguments
from keras_recbert.tasks.text_regressor import TextRegressor
from keras_recbert.text.packers import get_packer

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
    cls = CLASSES.get(task, TextModel)
    head = () if task in CLASSES else get_head(task).arguments()
    own = (*text_arguments(packer_of(task)), *cls.TASK_ARGUMENTS, *head)
    # Of any encoder; the encoder refuses those that it does not take.
    sizes = ["dtype"]
    for name in list_encoders():
        sizes += get_encoder(name).arguments()
    check_arguments(cls.__name__, arguments, dict.fromkeys((*own, *sizes)))
    mine = {key: value for key, value in arguments.items() if key in own}
    return mine, {key: value for key, value in arguments.items() if key not in own}


def packer_of(task):
    """The class of the preprocessor of a task."""
    return get_packer(
        "TextPreprocessor" if task not in list_heads() else get_head(task).packer
    )


def make_model(task, backbone, preprocessor, arguments):
    """The model of a task on an encoder.

    Args:
        task: str.
        backbone: `RecBertBackbone`.
        preprocessor: `Packer` or None.
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
