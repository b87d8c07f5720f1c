"""Folders and files that appear whole or not at all."""

import os
import re

import pytest

from keras_recbert.core.folders import (
    check_file,
    check_folder,
    check_place,
    write_folder,
)


def write(folder, text, **options):
    with write_folder(folder, ("one",), **options) as written:
        (written / "one").write_text(text)


def killed_while_writing(folder, *names):
    """What a process that was killed leaves behind."""
    left = folder.parent / f".{folder.name}.abcdef_1"
    for name in names:
        (left / name).mkdir(parents=True)
        (left / name / "one").write_text(name)
    return left


@pytest.mark.parametrize("check", [check_place, check_file, check_folder])
def test_an_empty_path_is_refused(check):
    arguments = ("", ("one",)) if check is check_folder else ("",)
    with pytest.raises(ValueError, match="to write is empty. Name a fi?o?l"):
        check(*arguments)


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch, overwrite):
    monkeypatch.chdir(tmp_path)
    for path in (".", tmp_path):
        with pytest.raises(FileExistsError, match="is the folder you are in"):
            write(path, "text", overwrite=overwrite)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_checked_before_it_is_written(tmp_path):
    (tmp_path / "file").write_text("text")
    check_file(tmp_path / "file")
    check_file(tmp_path / "new")
    with pytest.raises(FileExistsError, match="is a folder. Choose the path of a file"):
        check_file(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder .*none"):
        check_file(tmp_path / "none" / "file")
    with pytest.raises(FileExistsError, match="file is a file"):
        check_file(tmp_path / "file" / "below")


@pytest.mark.parametrize("names", [(), ("new",), ("new", "old")])
def test_what_a_killed_process_left_is_removed(tmp_path, names):
    write(tmp_path / "out", "whole")
    left = killed_while_writing(tmp_path / "out", *names)
    left.mkdir(exist_ok=True)
    write(tmp_path / "out", "next", overwrite=True)
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / "one").read_text() == "next"


def test_a_folder_whose_replacement_was_killed_is_put_back(tmp_path):
    killed_while_writing(tmp_path / "out", "new", "old")
    with pytest.raises(FileExistsError, match="exists already"):
        write(tmp_path / "out", "next")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / "one").read_text() == "old"


def test_two_at_once_are_refused_and_the_first_ends_well(tmp_path):
    message = f"Another process is writing {re.escape(str(tmp_path / 'out'))}"
    with write_folder(tmp_path / "out", ("one",)) as first:
        with pytest.raises(RuntimeError, match=message):
            write(tmp_path / "out", "second")
        write(tmp_path / "other", "beside")
        (first / "one").write_text("first")
    assert sorted(os.listdir(tmp_path)) == ["other", "out"]
    assert (tmp_path / "out" / "one").read_text() == "first"


@pytest.mark.parametrize("name", [".out.config", ".out.abcdef_1", ".other.abcdef_1"])
def test_what_others_hid_there_stays(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis.txt").write_text("text")
    write(tmp_path / "out", "whole")
    assert (tmp_path / name / "thesis.txt").is_file()
