"""From what a user names, a folder or a model on a hub, to a folder here."""

import dataclasses
import functools
import os
import pathlib

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset_files import CARD, read_card
from keras_recbert.hub import huggingface, kaggle
from keras_recbert.hub.names import (
    HUGGING_FACE,
    KAGGLE,
    is_hub_name,
    parse_hub_name,
)

HUBS = {HUGGING_FACE: huggingface, KAGGLE: kaggle}


def local_folder(path):
    """The path of what a user names as weights: itself, or a copy of a model on a hub.

    A model on a hub is looked up once in a process, so that a run reads one revision.
    The files of a preset are compared with the sha256 checksums in its card.

    Args:
        path: str or path of anything; or `"hf://user/name"`,
            `"hf://user/name@revision"`, `"kaggle://owner/model/keras/variation"`.

    Returns:
        `path`, or for a model on a hub the pathlib.Path of its folder in the cache.

    Raises:
        ValueError: if a name is not of the form of its hub, or a file was changed.
        FileNotFoundError, PermissionError, ConnectionError, ImportError: if the model
            cannot be had; says why and what to do.
    """
    return downloaded(os.fspath(path)) if is_hub_name(path) else path


def with_revision(path):
    """The name of a model on a hub with the revision that `local_folder` gives.

    Args:
        path: as for `local_folder`; or None.

    Returns:
        str, such as `"hf://user/name@COMMIT"`; of anything else `path`.
    """
    if not is_hub_name(path):
        return path
    # Both caches name the folder of a model by its revision.
    revision = local_folder(path).name
    return str(dataclasses.replace(parse_hub_name(path), revision=revision))


@functools.cache
def downloaded(text):
    """As `local_folder`, for the name of a model on a hub."""
    name = parse_hub_name(text)
    hub = HUBS[name.hub]
    folder = pathlib.Path(hub.download(name))
    if (folder / CARD).is_file():
        try:
            read_card(folder)
        except CheckpointError as error:
            raise CheckpointError(
                f"The copy of {name} in the cache is not whole: {error} Delete the "
                f"cache, {hub.cache_of(folder)}, and ask again; if it is the same "
                "then, the preset was damaged before it was pushed."
            ) from error
    return folder
