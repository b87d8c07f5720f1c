import json
import os
import resource

import pytest

from keras_recbert.core.os_errors import in_words
from keras_recbert.serving.resumable_file import check_output, resumable_file

FROM = {"input": "abc", "model": "def", "batch size": 32}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def begun(tmp_path):
    """A file of which two rows are there, and a third was begun."""
    path = tmp_path / "out.csv"
    with pytest.raises(KeyboardInterrupt), resumable_file(path, FROM) as file:
        file.append(b"one\n", 1)
        file.append(b"two\n", 1)
        raise KeyboardInterrupt
    with open(tmp_path / ".out.csv.partial", "ab") as partial:
        partial.write(b"thr")
    return path


def test_it_has_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "out.csv"
    with resumable_file(path, FROM) as file:
        file.append(b"one\n", 1)
        assert not path.exists()
        assert names(tmp_path) == [".out.csv.partial", ".out.csv.progress.json"]
        state = json.loads((tmp_path / ".out.csv.progress.json").read_text())
        assert state == {"num_rows": 1, "num_bytes": 4, "made_from": FROM}
    assert names(tmp_path) == ["out.csv"]
    assert path.read_bytes() == b"one\n"


def test_it_resumes_behind_the_last_step(begun):
    with resumable_file(begun, dict(FROM)) as file:
        assert (file.num_rows, file.num_bytes) == (2, 8)
        file.append(b"three\n", 1)
    assert begun.read_bytes() == b"one\ntwo\nthree\n"
    assert names(begun.parent) == ["out.csv"]


def test_an_error_before_the_first_row_leaves_nothing(tmp_path):
    with (
        pytest.raises(ValueError, match="stop"),
        resumable_file(tmp_path / "out.csv", FROM) as file,
    ):
        file.append(b"header\n", 0)
        raise ValueError("stop")
    assert names(tmp_path) == []


def test_what_was_made_from_something_else_is_refused(begun):
    before = names(begun.parent)
    other = {**FROM, "model": "other", "batch size": 8}
    message = (
        "out.csv was begun, 2 rows of it, from another model and batch size.*--over"
    )
    with pytest.raises(ValueError, match=message), resumable_file(begun, other):
        raise AssertionError
    assert names(begun.parent) == before
    with resumable_file(begun, FROM, overwrite=True) as file:
        assert file.num_rows == 2  # of the same, there is nothing to start anew
    begun.unlink()


def test_overwrite_starts_anew_from_something_else(begun):
    with resumable_file(begun, {**FROM, "model": "other"}, overwrite=True) as file:
        assert (file.num_rows, file.num_bytes) == (0, 0)
        file.append(b"new\n", 1)
    assert begun.read_bytes() == b"new\n"


@pytest.mark.parametrize("lost", ["state", "end of the file"])
def test_without_its_progress_it_starts_at_the_first_row(begun, lost):
    if lost == "state":
        (begun.parent / ".out.csv.progress.json").unlink()
    else:
        (begun.parent / ".out.csv.partial").write_bytes(b"one")
    with resumable_file(begun, FROM) as file:
        assert (file.num_rows, file.num_bytes) == (0, 0)
    assert begun.read_bytes() == b""


def test_a_file_that_is_there_is_replaced_on_request_only(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="exists already.*--overwrite"):
        check_output(path)
    with pytest.raises(FileExistsError), resumable_file(path, FROM):
        raise AssertionError
    assert names(tmp_path) == ["out.csv"]
    with resumable_file(path, FROM, overwrite=True) as file:
        file.append(b"new", 1)
        assert path.read_text() == "mine"
    assert path.read_text() == "new"


def test_two_processes_do_not_write_one_file(tmp_path):
    path = tmp_path / "out.csv"
    with resumable_file(path, FROM) as file:
        with (
            pytest.raises(RuntimeError, match="Another process is writing .*out.csv"),
            resumable_file(path, FROM),
        ):
            raise AssertionError
        file.append(b"one\n", 1)
    assert path.read_bytes() == b"one\n"


def test_a_full_disk_names_the_file_and_keeps_what_is_done(tmp_path):
    """Files may not grow: as on a disk that is full."""
    path = tmp_path / "out.csv"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError) as caught, resumable_file(path, FROM) as file:
            file.append(b"x" * 999 + b"\n", 10)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
            file.append(b"y" * 999 + b"\n", 10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert in_words(caught.value).startswith(f"{path} cannot be written: it would be")
    assert os.path.getsize(tmp_path / ".out.csv.partial") == 1500
    with resumable_file(path, FROM) as file:
        assert file.num_rows == 10
        file.append(b"z\n", 1)
    assert path.read_bytes() == b"x" * 999 + b"\nz\n"
