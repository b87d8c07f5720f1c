"""A file that is written in steps, and after a kill resumes behind the last one."""

import contextlib
import fcntl
import json
import os
import pathlib

from keras_recbert.core.folders import check_file, new_file
from keras_recbert.core.json_files import read_json
from keras_recbert.core.os_errors import naming


class ResumableFile:
    """What is written beside a path until it is whole, see `resumable_file`.

    `num_rows` and `num_bytes` say what is there already.
    """

    def __init__(self, file, state_path, made_from, state):
        self._file = file
        self._state_path = state_path
        self._made_from = made_from
        self.num_rows = state["num_rows"]
        self.num_bytes = state["num_bytes"]
        file.truncate(self.num_bytes)
        file.seek(self.num_bytes)

    def append(self, data, num_rows):
        """Writes bytes, and notes that so many rows more are done.

        A process that is killed resumes behind them, or before: never between.
        """
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.num_rows += num_rows
        self.num_bytes += len(data)
        state = {
            "num_rows": self.num_rows,
            "num_bytes": self.num_bytes,
            "made_from": self._made_from,
        }
        with new_file(self._state_path) as written:
            written.write_text(json.dumps(state, indent=1), encoding="utf-8")


def check_output(path, overwrite=False):
    """Checks that a file may be written.

    Raises:
        ValueError, OSError: as `folders.check_file`; FileExistsError too if the file is
            there and may not be replaced.
    """
    check_file(path)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(
            f"{path} exists already. Choose another file, or pass overwrite=True "
            "(--overwrite) to replace it."
        )


@contextlib.contextmanager
def resumable_file(path, made_from, overwrite=False):
    """Gives a `ResumableFile`, which takes the name `path` when all went well.

    Until then it is `.NAME.partial` beside `path`, and `.NAME.progress.json` says how
    many rows and bytes are done. After an error or a kill they stay, if rows are done,
    and the next call resumes there.

    Args:
        path: str or path of the file.
        made_from: dict of JSON by what the content is decided: checksums, options. Its
            keys are words for an error.
        overwrite: bool. Whether a file at `path` is replaced, and one that was begun
            from something else is started anew.

    Raises:
        FileExistsError: if `path` is there, and `overwrite` is False.
        ValueError: if what was begun was made from something else, likewise.
        RuntimeError: if another process is writing it.
        OSError: if it cannot be written, such as where the disk is full.
    """
    path = pathlib.Path(path)
    check_output(path, overwrite)
    partial = path.with_name(f".{path.name}.partial")
    state_path = path.with_name(f".{path.name}.progress.json")
    beside = path.with_name(f".{path.name}.")  # how both names begin
    with naming(path, beside), _locked(path, partial) as file:
        written = None
        try:
            state = _read_state(path, state_path, file, made_from, overwrite)
            written = ResumableFile(file, state_path, made_from, state)
            yield written
            file.flush()
            partial.replace(path)
            state_path.unlink(missing_ok=True)
        except BaseException:
            if written is not None and not written.num_rows:
                partial.unlink(missing_ok=True)
                state_path.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _locked(path, partial):
    """Opens the partial file, which no other process writes meanwhile."""
    while True:
        with open(partial, "ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RuntimeError(
                    f"Another process is writing {path}. Wait for it, stop it first, "
                    "or choose another file."
                ) from None
            # The process before may have renamed the file that was opened.
            is_there = partial.exists()
            if is_there and os.path.samestat(partial.stat(), os.fstat(file.fileno())):
                yield file
                return


def _read_state(path, state_path, file, made_from, overwrite):
    """What is done already; nothing, if no step was finished."""
    nothing = {"num_rows": 0, "num_bytes": 0}
    try:
        state = read_json(state_path)
    except (FileNotFoundError, json.JSONDecodeError):
        return nothing
    if os.fstat(file.fileno()).st_size < state["num_bytes"]:
        return nothing  # a file of before, renamed already
    before = state["made_from"]
    other = [key for key in made_from if made_from[key] != before.get(key)]
    if not other:
        return state
    if overwrite:
        return nothing
    raise ValueError(
        f"{path} was begun, {state['num_rows']:,} rows of it, from another "
        f"{' and '.join(other)}. Run the same as then to resume, or pass "
        "overwrite=True (--overwrite) to start anew."
    )
