"""Files of JSON, and checksums of files."""

import hashlib
import json
import pathlib
import reprlib

from keras_recbert.core.folders import new_file


def to_json(value):
    """JSON as files of this package have it: indented, without NaN.

    Raises:
        ValueError: for a number that is not finite.
        TypeError: for what JSON does not have; NumPy's numbers become Python's.
    """

    def plain(value):
        if hasattr(value, "item"):  # a number of NumPy
            return value.item()
        raise TypeError(
            f"{reprlib.repr(value)} of type {type(value).__name__} is no JSON"
        )

    # Escaped, so that no encoding and no editor changes a character.
    return json.dumps(value, indent=2, allow_nan=False, default=plain) + "\n"


def read_json(path):
    """What a file of JSON in UTF-8 holds.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is no JSON.
    """
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def write_json(path, value):
    """Writes a file of JSON, whole or not at all."""
    with new_file(path) as written:
        written.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def file_sha256(path):
    """sha256 checksum of a file, as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
