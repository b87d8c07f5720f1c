"""The model of a task, by the name that `build` knows it by."""

from keras_recbert.core.names import check_arguments, nearest
from keras_recbert.heads import NamedHeads, get_head, list_heads
from keras_recbert.heads.head import make_head
from keras_recbert.models.encoder import get_encoder, list_encoders
from keras_recbert.tasks.long_texts import window_packer
from keras_recbert.tasks.pretrainer import Pretrainer
from keras_recbert.tasks.text_arguments import text_arguments
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.tasks.text_model import TextModel
from keras_recbert.tasks.text_regressor import TextRegressor
from keras_recbert.text.packers import get_packer

# Tasks with a class of their own; any other is a `TextModel` with the head of the task.
CLASSES = {
    "classifier": TextClassifier,
    "regressor": TextRegressor,
    "pretrainer": Pretrainer,
}


def read_task(task):
    """The task of a model: its name, or the heads of a dict.

    Args:
        task: str; for several heads a dict of name to head, see `NamedHeads`.

    Returns:
        str, or `NamedHeads`.

    Raises:
        ValueError: for a task that there is not; names the nearest one.
    """
    if isinstance(task, dict):
        return NamedHeads(task)
    valid = [*list_heads(), "pretrainer"]
    if task not in valid:
        raise ValueError(
            f"No task is called {task!r}. {nearest(task, valid)}"
            f"Valid: {', '.join(valid)}, a dict of several by name, or None for the "
            "encoder alone."
        )
    return task


def split_arguments(task, arguments):
    """Splits keywords of `build` into those of a task and sizes of the encoder.

    Args:
        task: as `read_task` gives it.
        arguments: dict.

    Raises:
        ValueError: for a keyword that is neither; names the nearest one.
    """
    cls = CLASSES.get(task, TextModel)
    named = isinstance(task, NamedHeads)
    head = () if named or task in CLASSES else get_head(task).arguments()
    packer = packer_of(task, arguments.get("long_texts"))
    own = (*text_arguments(packer), *cls.TASK_ARGUMENTS, *head)
    # Of any encoder; the encoder refuses those that it does not take.
    sizes = ["dtype"]
    for name in list_encoders():
        sizes += get_encoder(name).arguments()
    what = f"{cls.__name__} (beside `task`, its heads)" if named else cls.__name__
    check_arguments(what, arguments, dict.fromkeys((*own, *sizes)))
    mine = {key: value for key, value in arguments.items() if key in own}
    return mine, {key: value for key, value in arguments.items() if key not in own}


def packer_of(task, long_texts=None):
    """The class of the preprocessor of a task.

    Args:
        task: as `read_task` gives it.
        long_texts: as for `TextModel`.

    Raises:
        ValueError: for `long_texts` that the task does not have.
    """
    if isinstance(task, NamedHeads):
        name, what = task.packer, f"the heads {', '.join(task.heads)}"
    else:
        is_head, what = task in list_heads(), f"task={task!r}"
        name = get_head(task).packer if is_head else "TextPreprocessor"
    return get_packer(window_packer(name, long_texts, what))


def make_model(task, encoder, preprocessor, arguments):
    """The model of a task on an encoder.

    Args:
        task: as `read_task` gives it.
        encoder: `RecBertEncoder`.
        preprocessor: `Packer` or None.
        arguments: dict of the arguments of the task.

    Returns:
        `TextModel` or `Pretrainer`.
    """
    if isinstance(task, NamedHeads):
        return TextModel(encoder, preprocessor, task, **arguments)
    if task in CLASSES:
        return CLASSES[task](encoder, preprocessor=preprocessor, **arguments)
    names = get_head(task).arguments()
    own = {key: arguments[key] for key in names if key in arguments}
    others = {key: value for key, value in arguments.items() if key not in own}
    head = make_head(task, own)
    return TextModel(encoder, preprocessor, head, name=task, **others)
