"""Failures of the operating system: which they are, and what is said of them."""

import errno
import os
import re

import h5py
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from safetensors.numpy import save_file

from keras_recbert.core.folders import new_file, write_folder
from keras_recbert.core.os_errors import error_number, in_words


def raised_by(call):
    with pytest.raises(Exception) as caught:  # noqa: B017, PT011  of many kinds
        call()
    return caught.value


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, "x/y cannot be written: no space is left on its disk. Free"),
        (errno.EROFS, "x/y cannot be written: its disk is read-only. Choose"),
        (errno.ENOENT, "There is no x/y. Check the path."),
        (errno.EISDIR, "x/y is a folder. Give the path of a file."),
        (errno.EBUSY, "x/y is in use, or is a mounted disk. Choose"),
        (errno.ENOTCONN, f"x/y: {os.strerror(errno.ENOTCONN)}."),
    ],
)
def test_words_take_the_place_of_numbers(number, expected):
    words = in_words(OSError(number, os.strerror(number), "x/y"))
    assert words.startswith(expected)
    assert "Errno" not in words
    assert "a file" in in_words(OSError(number, os.strerror(number)))


def test_errors_of_ours_keep_their_words():
    for error in (FileNotFoundError("There is no recipe a."), ValueError("Too few.")):
        assert error_number(error) is None
        assert in_words(error) == str(error)
    assert in_words(MemoryError()).startswith("There is not enough memory. Stop")


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
def checked(x):
    tf.debugging.assert_greater(x, 0, "`x` must be positive. Clip it.")
    tf.debugging.Assert(tf.reduce_all(x < 9), ["`x` must be below 9. Received", x[0]])
    return x


@tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
def gathered(x):
    return tf.gather(tf.range(5), x)


@pytest.mark.parametrize(
    ("function", "x", "words"),
    [
        (checked, [0, 1], "`x` must be positive. Clip it."),
        (checked, [11, 1], "`x` must be below 9. Received 11"),
        (gathered, [7], "indices[0] = 7 is not in [0, 5)"),
    ],
)
def test_errors_of_a_graph_keep_their_words(function, x, words):
    assert in_words(raised_by(lambda: function(tf.constant(x)))) == words
    rows = tf.data.Dataset.from_tensors(x).map(function)
    assert in_words(raised_by(lambda: list(rows))).endswith(words)


def test_libraries_say_it_in_ways_of_their_own(tmp_path):
    file = tmp_path / "file"
    file.write_text("no folder")
    below = file / "below"
    errors = [
        raised_by(lambda: tf.io.write_file(str(below), "text")),
        raised_by(lambda: h5py.File(below, "w")),
        raised_by(lambda: save_file({"a": np.ones(1, "float32")}, below)),
        raised_by(lambda: below.write_text("text")),
    ]
    assert isinstance(errors[0], tf.errors.OpError)
    assert isinstance(errors[2], safetensors.SafetensorError)
    assert {error_number(error) for error in errors} == {errno.ENOTDIR}
    for index in (0, 1, 3):  # safetensors names a temporary file of its own
        assert in_words(errors[index]).startswith(f"{below} lies below a file")
    other = tf.errors.InvalidArgumentError(None, None, "a shape; not a file")
    assert error_number(other) is None


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        tf.errors.ResourceExhaustedError(None, None, "{}; No space left on device"),
        OSError("Can't write data (file '{}', errno = 28, error message = ...)"),
    ],
)
def test_temporary_names_are_not_told(tmp_path, error):
    def failing(written):
        if isinstance(error, OSError) and error.errno is not None:
            raise error
        if isinstance(error, OSError):
            raise OSError(str(error).format(written))
        raise type(error)(None, None, error.message.format(written))

    target = tmp_path / "out"
    for writing in (new_file(target), write_folder(target, ("one",))):
        with (
            pytest.raises(OSError, match=re.escape(f"'{target}'")) as caught,
            writing as written,
        ):
            failing(written)
        assert in_words(caught.value).startswith(f"{target} cannot be written: no spa")
        assert list(tmp_path.iterdir()) == []


def test_what_fails_elsewhere_keeps_its_path(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match="other.txt"),
        write_folder(tmp_path / "out", ("one",)),
    ):
        (tmp_path / "other.txt").read_text()


def test_a_file_below_is_named_below_the_folder_that_was_asked_for(tmp_path):
    target = tmp_path / "out"
    with (
        pytest.raises(OSError, match=re.escape(f"'{target / 'parts' / 'a'}'")),
        write_folder(target, ("one",)) as written,
    ):
        (written / "parts" / "a").write_text("no folder")
    assert list(tmp_path.iterdir()) == []
