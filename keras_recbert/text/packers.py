"""Which packers there are."""

from keras_recbert.core.names import UnknownNameError
from keras_recbert.text import text_preprocessor  # noqa: F401  registers its class
from keras_recbert.text.packer import PACKERS


def list_packers():
    """Names of the classes of packers."""
    return list(PACKERS)


def get_packer(name):
    """The class of packer of a name.

    Raises:
        UnknownNameError: if there is none.
    """
    if name not in PACKERS:
        raise UnknownNameError(
            f"No packer is called {name!r}. Valid: {', '.join(PACKERS)}."
        )
    return PACKERS[name]
