"""Failures of the operating system, in words.

Python says "[Errno 28] No space left on device", TensorFlow, HDF5 and safetensors
each say it in a way of their own, and what is written under a temporary name is named
by it. This finds the failure behind an error, and says which path and what to do.
"""

import contextlib
import errno
import itertools
import os
import re

_FULL = (
    "{path} cannot be written: no space is left on its disk. Free some and run the "
    "same again, or choose a folder on another disk."
)
_WORDS = {
    errno.ENOENT: "There is no {path}. Check the path.",
    errno.EACCES: "This user may not read or write {path}. Choose another path.",
    errno.EPERM: "This user may not change {path}. Choose another path.",
    errno.EROFS: "{path} cannot be written: its disk is read-only. Choose another.",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL.replace("is left on its disk", "of this user's quota is left"),
    errno.EFBIG: (
        "{path} cannot be written: it would be larger than this process or its disk "
        "allows (`ulimit -f` shows the limit)."
    ),
    errno.EISDIR: "{path} is a folder. Give the path of a file.",
    errno.ENOTDIR: "{path} lies below a file, or is one. Give the path of a folder.",
    errno.ENOTEMPTY: "{path} is not empty. Choose another folder.",
    errno.EEXIST: "{path} is there already. Choose another path.",
    errno.EBUSY: "{path} is in use, or is a mounted disk. Choose another path.",
    errno.EXDEV: "{path} lies on two disks. Choose another folder.",
    errno.ENAMETOOLONG: "The path {path} is too long. Choose a shorter one.",
    errno.ELOOP: "{path} is a link that leads back to itself. Choose another path.",
    errno.EIO: "The disk of {path} failed. Try again, or choose another disk.",
    errno.EMFILE: "{path} cannot be opened: too many files are (`ulimit -n`).",
    errno.ENOMEM: "There is not enough memory. Stop other processes, or ask for less.",
}
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
# What HDF5 and Rust write into their messages, and TensorFlow into its own.
_NUMBER = re.compile(r"errno = (\d+)|\(os error (\d+)\)")
_TF_REASONS = {os.strerror(number): number for number in _WORDS}
_TF = re.compile(rf"([^ ]*); ({'|'.join(map(re.escape, _TF_REASONS))})(?: \[Op:|$)")
_HDF5_NAME = re.compile(r"name = '([^']+)'")
# What an op says stands in the line before its place in the graph.
_TF_REASON = re.compile(r"([^\n]+)\n\t \[\[")
# Parts in brackets: the words of `tf.debugging.assert_*`, then what it compared.
_TF_ASSERTION = re.compile(r"assertion failed: \[(.+?)\](?: \[Condition |$)")


def in_words(error):
    """Says what failed, with which path, and what to do.

    Args:
        error: Exception.

    Returns:
        str. The message of an error that no failure of the operating system caused is
        returned as it is.
    """
    number = error_number(error)
    if number is None:
        if is_of_tensorflow(error):
            message = error.message or str(error)
            found = _TF_REASON.search(message)
            reason = found[1] if found else message.partition("\n")[0]
            found = _TF_ASSERTION.search(reason)
            return found[1].replace("] [", " ") if found else reason
        return str(error) or type(error).__name__
    path = _path(error)
    words = _WORDS.get(number, f"{{path}}: {os.strerror(number)}.")
    return words.format(path="a file" if path is None else path)


def error_number(error):
    """The `errno` behind an error of Python, TensorFlow, HDF5 or safetensors.

    Args:
        error: Exception.

    Returns:
        int, or None if the operating system is not to blame.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if isinstance(error, MemoryError) and not str(error):
        return errno.ENOMEM
    found = _NUMBER.search(str(error))
    if found:
        return int(found[1] or found[2])
    found = is_of_tensorflow(error) and _TF.search(error.message or "")
    return _TF_REASONS[found[2]] if found else None


def is_of_tensorflow(error):
    """Whether an error is a `tf.errors.OpError`, without importing TensorFlow."""
    return hasattr(error, "error_code") and hasattr(error, "op")


def _path(error):
    path = getattr(error, "filename", None)
    if isinstance(path, bytes | str):
        return os.fsdecode(path)
    by_name = _HDF5_NAME.search(str(error))
    if by_name:
        return by_name[1]
    found = is_of_tensorflow(error) and _TF.search(error.message or "")
    return found[1] if found and found[1] else None


@contextlib.contextmanager
def naming(path, temporary):
    """Gives failures of what is written under a temporary name the true one.

    Args:
        path: path that the user knows.
        temporary: path that is written in its place, or what it begins with.

    Raises:
        OSError: naming `path`, in place of an error of any kind that the operating
            system caused there.
    """
    try:
        yield
    except Exception as error:
        number = error_number(error)
        known = getattr(error, "filename", None)
        found = re.search(
            rf"{re.escape(str(temporary))}([^\s'\";]*)", f"{known} {error}"
        )
        is_ours = found or (known is None and number in _CANNOT_WRITE)
        if number is None or not is_ours:
            raise
        # TensorFlow adds temporary names of its own, `variables_temp/...tempstate123`.
        parts = found[1].split("/") if found else [""]
        kept = [] if parts[0] else parts[1:]
        below = "".join(
            f"/{part}" for part in itertools.takewhile(lambda p: "temp" not in p, kept)
        )
        raise OSError(number, os.strerror(number), f"{path}{below}") from error
