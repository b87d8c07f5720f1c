"""Models on Kaggle, through `kagglehub`."""

import contextlib
import datetime
import os
import pathlib

from keras_recbert.core.extras import check_installed

# What Kaggle calls licences whose names on Hugging Face differ.
LICENCES = {"apache-2.0": "Apache 2.0", "mit": "MIT"}


def check_ready():
    """Raises `ImportError` if `kagglehub` is not installed."""
    check_installed("A model on kaggle://", "hub", "kagglehub")


def download(name):
    """The folder of a model in the cache, which gets what it lacks.

    Where Kaggle cannot be reached the newest cached version is taken, and a line says
    so. `kagglehub` compares what it downloads with the checksums that Kaggle has.

    Args:
        name: `keras_recbert.hub.names.HubName`.

    Returns:
        pathlib.Path.

    Raises:
        FileNotFoundError: if there is no such model that this user may read.
        ConnectionError: if Kaggle cannot be reached and the cache has no copy.
        ValueError: if a file arrived damaged.
    """
    check_ready()
    import kagglehub
    import requests

    try:
        with _errors_of(name):
            return pathlib.Path(kagglehub.model_download(_handle(name)))
    except (requests.ConnectionError, requests.Timeout) as error:
        reason, unreachable = type(error).__name__, error
    versions = [name.revision] if name.revision else _cached_versions(name)
    for version in versions:  # a version in the cache is taken without a question
        with contextlib.suppress(requests.ConnectionError, requests.Timeout):
            handle = f"{name.model}/{version}"
            folder = pathlib.Path(kagglehub.model_download(handle))
            day = datetime.date.fromtimestamp(folder.stat().st_mtime)
            print(
                f"{name}: Kaggle cannot be reached ({reason}), so the cached copy is "
                f"used: downloaded on {day}, version {version}.",
                flush=True,
            )
            return folder
    raise ConnectionError(
        f"{name} was asked for. Kaggle cannot be reached, and the cache has no whole "
        f"copy ({reason}). Connect to the network, or name a folder that holds the "
        "model."
    ) from unreachable


def _handle(name):
    return name.model if name.revision is None else f"{name.model}/{name.revision}"


def _cached_versions(name):
    """Numbers of the versions in the cache, the newest first."""
    default = pathlib.Path.home() / ".cache" / "kagglehub"
    cache = pathlib.Path(os.environ.get("KAGGLEHUB_CACHE", default))
    folders = (cache / "models" / name.model).glob("[0-9]*")
    return sorted((int(path.name) for path in folders if path.is_dir()), reverse=True)


@contextlib.contextmanager
def _errors_of(name):
    """Raises errors of Kaggle as those of Python, with what to do."""
    from kagglehub.exceptions import (
        BackendError,
        DataCorruptionError,
        KaggleApiHTTPError,
        UnauthenticatedError,
    )

    login = (
        "Log in: kagglehub.login(), or set KAGGLE_USERNAME and KAGGLE_KEY, or put "
        "kaggle.json into ~/.kaggle"
    )
    try:
        yield
    except KaggleApiHTTPError as error:
        status = None if error.response is None else error.response.status_code
        if status in (401, 403, 404):
            raise FileNotFoundError(
                f"There is no model {name} that this user may use (HTTP {status}). "
                f"Check the name. If it is private, or asks for consent: {login}. Or "
                "name a folder that holds the model."
            ) from error
        raise ConnectionError(f"Kaggle does not answer for {name}: {error}") from error
    except UnauthenticatedError as error:
        raise PermissionError(f"Kaggle asks who you are, for {name}. {login}.") from (
            error
        )
    except DataCorruptionError as error:
        raise ValueError(
            f"A file of {name} arrived damaged: {error}. Ask again."
        ) from error
    except BackendError as error:
        raise ValueError(f"Kaggle refuses {name}: {error}") from error


def cache_of(folder):
    """The folder to delete so that a model is downloaded anew."""
    return folder


def upload(name, folder, private, licence):
    """Makes a model, unless it is there, and adds a version of the files of a folder.

    Args:
        name: `HubName` without a version.
        folder: path.
        private: not used: Kaggle keeps a new model private until its page says
            otherwise.
        licence: str, as Hugging Face names it, or None.

    Returns:
        str. What was written, and where.

    Raises:
        FileNotFoundError, PermissionError: if this user may not write there.
        ConnectionError: if Kaggle cannot be reached.
        ValueError: if Kaggle refuses the files.
    """
    import kagglehub
    import requests

    try:
        with _errors_of(name):
            kagglehub.model_upload(
                _handle(name),
                str(folder),
                license_name=LICENCES.get(licence, licence),
                version_notes="A preset of keras_recbert",
            )
    except (requests.ConnectionError, requests.Timeout) as error:
        raise ConnectionError(
            f"Kaggle cannot be reached to write {name} ({type(error).__name__}). "
            "Connect to the network and push again."
        ) from error
    return f"{name}, a new version"
