"""Models on the Hugging Face Hub, through `huggingface_hub`."""

import contextlib
import datetime
import hashlib
import pathlib

from keras_recbert.core.extras import check_installed
from keras_recbert.core.json_files import file_sha256

# A preset, or a BERT of Hugging Face as `convert/huggingface.py` reads it. No pickle.
FILES = (
    "card.json",
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "model-*-of-*.safetensors",
    "vocab.txt",
    "tokenizer_config.json",
    "tokenizer.json",
    "added_tokens.json",
)


def check_ready():
    """Raises `ImportError` if `huggingface_hub` is not installed."""
    check_installed("A model on hf://", "hub", "huggingface_hub")


def download(name):
    """The folder of a model in the cache, which gets what it lacks.

    Where the Hub cannot be reached, or HF_HUB_OFFLINE=1, the cached copy is taken, and
    a line says which. Every file is compared with the checksum that the Hub has of it.

    Args:
        name: `keras_recbert.hub.names.HubName`.

    Returns:
        pathlib.Path.

    Raises:
        FileNotFoundError: if there is no such model or revision, or nothing in it that
            can be read.
        PermissionError: if the Hub does not let this user read it.
        ConnectionError: if the Hub cannot be reached and the cache has no copy.
        ValueError: if a file is not the one that the Hub has.
    """
    check_ready()
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    unreachable = _why_unreachable(name)
    try:
        with _errors_of(name):
            folder = pathlib.Path(
                snapshot_download(
                    name.model,
                    revision=name.revision,
                    allow_patterns=list(FILES),
                    local_files_only=unreachable is not None,
                    library_name="keras_recbert",
                )
            )
    except LocalEntryNotFoundError as error:
        raise ConnectionError(
            f"{name} was asked for: {unreachable or _first_line(error)}, and the cache "
            "has no whole copy. Connect to the network, unset HF_HUB_OFFLINE if it is "
            "set, or name a folder that holds the model."
        ) from error
    if unreachable is not None:
        day = datetime.date.fromtimestamp(folder.stat().st_mtime)
        print(
            f"{name}: {unreachable}, so the cached copy is used: downloaded on {day}, "
            f"revision {folder.name}.",
            flush=True,
        )
    if not any(path.suffix == ".safetensors" for path in folder.iterdir()):
        raise FileNotFoundError(
            f"{name} holds neither a preset nor a model.safetensors. It holds: "
            f"{', '.join(_listed(name, folder)[:8]) or 'nothing'}. Pickles and other "
            "formats are not downloaded: convert it where it was made, or name a "
            "folder."
        )
    _check_files(name, folder)
    return folder


def _why_unreachable(name):
    """Why the Hub does not answer, in words; None if it does.

    `snapshot_download` would take the cached copy without a word.
    """
    import httpx2  # what huggingface_hub raises errors of
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        api = HfApi(library_name="keras_recbert")
        api.model_info(name.model, revision=name.revision)
    except OfflineModeIsEnabled:
        return "HF_HUB_OFFLINE is set"
    except httpx2.TransportError as error:
        return f"the Hub cannot be reached ({type(error).__name__}: {error})"
    except HfHubHTTPError as error:
        if _is_down(error):
            return f"the Hub does not answer ({_first_line(error)})"
        raise _refusal(name, error) from error
    return None


@contextlib.contextmanager
def _errors_of(name):
    """Raises errors of the Hub as those of Python, with what to do."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except (OfflineModeIsEnabled, httpx2.TransportError) as error:
        raise ConnectionError(
            f"The Hub cannot be reached for {name} ({_first_line(error)}). Connect to "
            "the network, unset HF_HUB_OFFLINE if it is set, or name a folder."
        ) from error
    except HfHubHTTPError as error:
        raise _refusal(name, error) from error


def _refusal(name, error):
    """What the Hub answered, as an error of Python with what to do."""
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    reason = _first_line(error)
    if isinstance(error, RevisionNotFoundError):
        return FileNotFoundError(
            f"There is no revision {name.revision!r} of hf://{name.model}. Name a "
            "branch, a tag or a commit that its page lists, or leave it out."
        )
    if isinstance(error, RepositoryNotFoundError):
        return FileNotFoundError(
            f"There is no model hf://{name.model} that this user may read ({reason}). "
            "Check the name. If it is private or gated, log in: hf auth login, or set "
            "HF_TOKEN. Or name a folder that holds the model."
        )
    if error.response.status_code in (401, 403):
        return PermissionError(
            f"The Hub refuses {name} ({reason}). Log in as a user with the right to "
            "it: hf auth login, or set HF_TOKEN to a token that may write."
        )
    if _is_down(error):
        return ConnectionError(f"{name}: {reason}. Try again later.")
    return ValueError(f"The Hub refuses {name}: {error}")


def _is_down(error):
    return error.response.status_code >= 500 or error.response.status_code == 429


def _first_line(error):
    return str(error).strip().partition("\n")[0]


def _listed(name, folder):
    """Names of the files of a model, also those that are not downloaded."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        listed = get_cached_repo_tree(name.model, revision=folder.name)
    except CachedRepoTreeNotFoundError:  # a copy of an older huggingface_hub
        return sorted(path.name for path in folder.iterdir())
    return sorted(file.path for file in listed)


def _check_files(name, folder):
    """Raises if a file in the cache is not the one that the Hub has.

    The cache links each to a file that is named by its checksum: the sha256 of a large
    one, and of a small one the SHA-1 that git has of it. That file may be a link, too,
    with a name of another kind.
    """
    for file in sorted(folder.iterdir()):
        if not file.is_symlink():
            print(f"{file} has no checksum of the Hub to compare with.", flush=True)
            continue
        expected = file.readlink().name
        received = (file_sha256 if len(expected) == 64 else _git_checksum)(file)
        if expected != received:
            raise ValueError(
                f"{file} of {name} is not the file that the Hub has. Expected "
                f"checksum: {expected}. Received: {received}, of "
                f"{file.stat().st_size} bytes. Delete {file.resolve()} from the cache, "
                "and ask again."
            )


def _git_checksum(file):
    """SHA-1 of a file as git has it, which is how the Hub names a small one."""
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def cache_of(folder):
    """The folder to delete so that a model is downloaded anew."""
    return folder.parents[1]


def upload(name, folder, private, licence):
    """Makes a model, unless it is there, and commits the files of a folder.

    Args:
        name: `HubName` without a revision.
        folder: path.
        private: bool. Nobody else sees it.
        licence: not used; the model card says it.

    Returns:
        str. What was written, and where.

    Raises:
        PermissionError: if this user may not write there.
        ConnectionError: if the Hub cannot be reached.
        ValueError: if it is there and public, and should be private.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(library_name="keras_recbert")
    files = sorted(pathlib.Path(folder).iterdir())
    with _errors_of(name):
        api.create_repo(name.model, private=private or None, exist_ok=True)
        if private and not api.model_info(name.model).private:
            raise ValueError(
                f"{name} is there already, and public. Nothing was sent. Leave "
                "--private out, choose another name, or make it private on its page."
            )
        # `upload_folder` may make several commits.
        commit = api.create_commit(
            name.model,
            [CommitOperationAdd(file.name, file) for file in files],
            commit_message="Upload a preset of keras_recbert",
        )
    return f"{name}, revision {commit.oid}"
