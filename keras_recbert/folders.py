"""Folders that appear whole or not at all."""

import contextlib
import pathlib
import tempfile


def check_folder(folder, marker, overwrite=False):
    """Checks that a folder may be written.

    Args:
        folder: path.
        marker: str. A file that folders of this kind hold; with `overwrite`, a
            folder without it is not replaced.
        overwrite: bool.

    Raises:
        FileExistsError: if it may not.
    """
    folder = pathlib.Path(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(
            f"{folder} exists already. Choose another folder, or pass overwrite=True "
            "(--overwrite) to replace it."
        )
    if not (folder / marker).is_file():
        raise FileExistsError(
            f"{folder} holds no {marker}, so it is not replaced. Choose another folder."
        )


@contextlib.contextmanager
def write_folder(folder, marker, overwrite=False):
    """Gives a temporary folder, which takes the name `folder` when all went well.

    Args:
        folder, marker, overwrite: see `check_folder`.

    Raises:
        FileExistsError: if `folder` may not be written; before anything is.
    """
    folder = pathlib.Path(folder)
    check_folder(folder, marker, overwrite)
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
