"""Files and folders that appear whole or not at all."""

import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import tempfile
import uuid

from keras_recbert.core.os_errors import naming


def check_place(folder):
    """Checks that a folder is there, or can be made, and takes files.

    Raises:
        ValueError: if the path is empty.
        FileExistsError: if a file, or a link to nothing, is in the way.
        PermissionError: if nothing may be written there.
    """
    if os.fspath(folder) == "":
        raise ValueError("The path of a folder to write is empty. Name a folder.")
    folder = pathlib.Path(folder)
    for parent in folder.parents:
        if parent.exists() and not parent.is_dir():
            raise FileExistsError(f"{folder} cannot be written: {parent} is a file.")
    if folder.is_symlink() and not folder.exists():
        raise FileExistsError(f"{folder} is a link to something that is not there.")
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file. Choose another folder.")
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        raise PermissionError(
            f"{folder} cannot be written: {there} is on a read-only disk. Choose "
            "another folder."
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{folder} cannot be written: {there} takes no files of this user. Choose "
            "another folder."
        )


def check_file(path):
    """Checks that a file can be written, or replaced.

    Raises:
        ValueError: if the path is empty.
        FileNotFoundError: if its folder is not there.
        FileExistsError: if it is a folder, or its folder is a file.
        PermissionError: if nothing may be written there.
    """
    if os.fspath(path) == "":
        raise ValueError("The path of a file to write is empty. Name a file.")
    path = pathlib.Path(path)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder. Choose the path of a file.")
    if not path.parent.exists():
        raise FileNotFoundError(
            f"{path} cannot be written: there is no folder {path.parent}. Make it, or "
            "choose another path."
        )
    check_place(path.parent)


@contextlib.contextmanager
def new_file(path):
    """Gives a path beside `path`, which takes its name when all went well.

    Args:
        path: path of a file; replaced if it is there.

    Raises:
        ValueError, OSError: as `check_file`; OSError too if it cannot be written.
    """
    check_file(path)
    path = pathlib.Path(path)
    temporary = path.with_name(f".{path.name}")
    try:
        with naming(path, temporary):
            yield temporary
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_file(path, text):
    """Writes a text file whole, also where several processes write the same one."""
    temporary = f"{path}.{uuid.uuid4().hex}"
    pathlib.Path(temporary).write_text(text, encoding="utf-8")
    os.replace(temporary, path)


@contextlib.contextmanager
def locked_folder(folder):
    """Keeps a folder for this process until the block or the process ends.

    It is made if it is not there, and removed again if the block leaves nothing in it.

    Raises:
        RuntimeError: if another process has it.
    """
    folder = pathlib.Path(folder)
    with _made(folder), _lock_file(folder) as path:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _made(folder):
    """Makes a folder and those above it; removes them again if they stay empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for path in made:
            if not path.is_dir() or any(path.iterdir()):
                break
            path.rmdir()


@contextlib.contextmanager
def _lock_file(folder):
    """Gives the path of the lock file of a folder, once this process has it."""
    path = folder / ".lock"
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError(
                    f"Another process is at work in {folder}. Wait for it, stop it "
                    "first, or choose another folder."
                ) from None
            # The process before may have removed the file that was opened.
            if path.exists() and os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                yield path
                return


def check_folder(folder, files, overwrite=False):
    """Checks that a folder may be written.

    Args:
        folder: path.
        files: tuple of str. What folders of this kind hold; one that holds something
            else, or lacks the first, is not replaced.
        overwrite: bool. Whether it may be replaced.

    Raises:
        ValueError, PermissionError: as `check_place`.
        FileExistsError: if it may not.
    """
    check_place(folder)
    folder = pathlib.Path(folder)
    if folder.exists() and folder.samefile(os.curdir):
        raise FileExistsError(
            f"{folder} is the folder you are in, which is not replaced. Name another."
        )
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
        RuntimeError: if another process is writing it.
    """
    folder = pathlib.Path(folder)
    check_place(folder)
    with _made(folder.parent):
        remove_unfinished(folder)
        check_folder(folder, files, overwrite)
        with _written(folder) as written:
            yield written


@contextlib.contextmanager
def _written(folder):
    """Gives a temporary folder, which takes the name `folder`."""
    with _locked_temporary(folder) as temporary:
        written = temporary / "new"
        written.mkdir()
        with naming(folder, written):
            yield written
        old = temporary / "old"
        try:
            if folder.exists():
                # A rename, so that a stop leaves the old folder or the new one whole.
                folder.rename(old)
            written.rename(folder)
        except BaseException:
            if old.exists() and not folder.exists():
                old.rename(folder)  # or it would go with the temporary folder
            raise


@contextlib.contextmanager
def _locked_temporary(folder):
    """Gives a temporary folder beside `folder`, locked while the process is at work."""
    prefix = f".{folder.name}."
    while True:
        with naming(folder, folder.parent / prefix):
            temporary = tempfile.mkdtemp(dir=folder.parent, prefix=prefix)
        with _lock(temporary) as is_ours:
            # Another process may have taken it for one of a process that is gone.
            if is_ours is False or not os.path.isdir(temporary):
                continue
            try:
                yield pathlib.Path(temporary)
                return
            finally:
                # What cannot be removed now, the next one who writes here removes.
                shutil.rmtree(temporary, ignore_errors=True)


def remove_unfinished(folder):
    """Removes the temporary folders of processes that were killed.

    Raises:
        RuntimeError: if one of a process that is still at work is there.
    """
    name = re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}")
    for path in folder.parent.iterdir():
        if not name.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
            continue
        with _lock(path) as is_ours:
            if is_ours is None:
                continue
            if not is_ours:
                raise RuntimeError(
                    f"Another process is writing {folder}. Wait for it, stop it first, "
                    "or choose another folder."
                )
            if set(os.listdir(path)) - {"new", "old"}:
                continue  # of somebody else
            if (path / "old").exists() and not folder.exists():
                (path / "old").rename(folder)  # killed between two renames
            shutil.rmtree(path)


@contextlib.contextmanager
def _lock(folder):
    """Gives whether this process has the lock of a folder; None without locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # removed by its process meanwhile
        yield None
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = True
    except BlockingIOError:
        is_ours = False
    except OSError:  # such as on NFS, which locks no folders
        is_ours = None
    try:
        yield is_ours
    finally:
        os.close(descriptor)
