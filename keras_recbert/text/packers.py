"""Which packers there are."""

from keras_recbert.text import (  # noqa: F401  register their classes
    choice_preprocessor,
    question_preprocessor,
    text_preprocessor,
    window_preprocessor,
    word_preprocessor,
)
from keras_recbert.text.packer import PACKERS


def list_packers():
    """Names of the classes of packers."""
    return PACKERS.names()


def get_packer(name):
    """The class of packer of a name.

    Raises:
        UnknownNameError: if there is none.
    """
    return PACKERS[name]
