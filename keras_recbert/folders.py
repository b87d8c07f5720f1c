"""Files and folders that appear whole or not at all."""

import contextlib
import fcntl
import os
import pathlib
import tempfile


def check_place(folder):
    """Checks that a folder is there, or can be made, and takes files.

    Raises:
        FileExistsError: if a file, or a link to nothing, is in the way.
        PermissionError: if nothing may be written there.
    """
    folder = pathlib.Path(folder)
    for parent in folder.parents:
        if parent.exists() and not parent.is_dir():
            raise FileExistsError(f"{folder} cannot be written: {parent} is a file.")
    if folder.is_symlink() and not folder.exists():
        raise FileExistsError(f"{folder} is a link to something that is not there.")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file. Choose another folder.")
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{folder} cannot be written: {there} takes no files of this user. Choose "
            "another folder."
        )


@contextlib.contextmanager
def new_file(path):
    """Gives a path beside `path`, which takes its name when all went well.

    Args:
        path: path of a file; replaced if it is there.
    """
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def locked_folder(folder):
    """Keeps a folder, which is there, for this process until the block or it ends.

    Raises:
        RuntimeError: if another process has it.
    """
    with open(pathlib.Path(folder) / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"Another process is at work in {folder}. Wait for it, stop it first, "
                "or choose another folder."
            ) from None
        yield


def check_folder(folder, files, overwrite=False):
    """Checks that a folder may be written.

    Args:
        folder: path.
        files: tuple of str. What folders of this kind hold; one that holds something
            else, or lacks the first, is not replaced.
        overwrite: bool. Whether it may be replaced.

    Raises:
        FileExistsError: if it may not.
        PermissionError: as `check_place`.
    """
    folder = pathlib.Path(folder)
    check_place(folder)
    held = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if not held:
        return
    if not overwrite:
        raise FileExistsError(
            f"{folder} exists already. Choose another folder, or pass overwrite=True "
            "(--overwrite) to replace it."
        )
    if files[0] not in held:
        raise FileExistsError(
            f"{folder} holds no {files[0]}, so it is not replaced. Choose another "
            "folder."
        )
    foreign = [name for name in held if name not in files]
    if foreign:
        raise FileExistsError(
            f"{folder} also holds {foreign[0]!r}, which would be lost, so it is not "
            "replaced. Choose another folder."
        )


@contextlib.contextmanager
def write_folder(folder, files, overwrite=False):
    """Gives a temporary folder, which takes the name `folder` when all went well.

    Args:
        folder, files, overwrite: see `check_folder`.

    Raises:
        FileExistsError: if `folder` may not be written; before anything is.
    """
    folder = pathlib.Path(folder)
    check_folder(folder, files, overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=folder.parent, prefix=f".{folder.name}."
    ) as temporary:
        written = pathlib.Path(temporary) / "new"
        written.mkdir()
        yield written
        old = pathlib.Path(temporary) / "old"
        try:
            if folder.exists():
                # A rename, so that a stop leaves the old folder or the new one whole.
                folder.rename(old)
            written.rename(folder)
        except BaseException:
            if old.exists() and not folder.exists():
                old.rename(folder)  # or it would go with the temporary folder
            raise
