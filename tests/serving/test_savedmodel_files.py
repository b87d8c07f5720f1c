"""Files of a SavedModel: overwritten, cut, on a full disk."""

import logging
import pathlib
import re
import resource
import shutil

import pytest
import tensorflow as tf
from savedmodels import SLOW

from keras_recbert.core.os_errors import in_words
from keras_recbert.serving.savedmodel import read_savedmodel

VARIABLES = ("index", "data-00000-of-00001")


def contents(folder):
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_an_existing_path_stays_untouched(written, tmp_path):
    model = written("bert").model
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("keep me")
    before = contents(tmp_path)
    with pytest.raises(
        FileExistsError, match="mine exists already. Choose .*overwrite"
    ):
        model.export_savedmodel(folder)
    with pytest.raises(FileExistsError, match="notes.txt is a file"):
        model.export_savedmodel(folder / "notes.txt")
    assert contents(tmp_path) == before
    for fields in ((), ("text_pair",), ("text", "text_pair", "text")):
        with pytest.raises(
            ValueError, match="fields 'text', 'text_pair' .which may be"
        ):
            model.export_savedmodel(tmp_path / "new", fields=fields)
    assert contents(tmp_path) == before


@pytest.fixture
def tensorflow_log():
    """Messages that TensorFlow logs meanwhile: a list of str."""
    logger, messages = tf.get_logger(), []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_overwrite_replaces_only_a_savedmodel(written, tmp_path, tensorflow_log):
    model = written("bert").model
    model.export_savedmodel(tmp_path / "deep" / "er")
    old = tmp_path / "deep" / "er" / "saved_model.pb"
    old.write_bytes(b"")
    model.export_savedmodel(tmp_path / "deep" / "er", overwrite=True)
    assert old.stat().st_size > 1000
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["er"]

    foreign = tmp_path / "photos"
    foreign.mkdir()
    (foreign / "cat.jpg").write_text("meow")
    with pytest.raises(FileExistsError, match="photos holds no saved_model.pb, so"):
        model.export_savedmodel(foreign, overwrite=True)
    with pytest.raises(FileExistsError, match="cat.jpg is a file"):
        model.export_savedmodel(foreign / "cat.jpg", overwrite=True)
    assert (foreign / "cat.jpg").read_text() == "meow"
    # The folder that TensorFlow wrote has another name now.
    assert not [line for line in tensorflow_log if "Assets written" in line]
    tf.get_logger().info("Assets written to: what a user wrote")
    assert tensorflow_log[-1].endswith("a user wrote")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failure_while_writing_leaves_nothing_behind(
    written, tmp_path, monkeypatch, overwrite
):
    model = written("bert").model
    path = tmp_path / "model"
    if overwrite:
        path.mkdir()
        (path / "saved_model.pb").write_bytes(b"old")
    before = contents(tmp_path)

    def write_half(folder, *args, **kwargs):
        pathlib.Path(folder, "saved_model.pb").write_bytes(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(
        tf.saved_model, "save", lambda _, folder, **k: write_half(folder)
    )
    monkeypatch.setattr(
        "keras.export.ExportArchive.write_out", lambda _, f, **k: write_half(f)
    )
    with pytest.raises(OSError, match="No space left"):
        model.export_savedmodel(path, overwrite=overwrite)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("overwrite", [pytest.param(False, marks=SLOW), True])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(
    written, tmp_path, overwrite
):
    """Files may not grow to the size of the weights, as on a disk that is full."""
    it = written("bert")
    path = tmp_path / "model"
    if overwrite:
        shutil.copytree(it.path, path)
    before = contents(tmp_path)
    data = it.path / "variables" / "variables.data-00000-of-00001"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (data.stat().st_size - 64, limits[1]))
    try:
        with pytest.raises(OSError) as error:
            it.model.export_savedmodel(path, overwrite=overwrite)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    message = in_words(error.value)
    assert message.startswith(f"{path}/variables")
    assert re.search(r"\w cannot be written: it would be larger than", message)
    assert len(message.splitlines()) == 1
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "file", ["saved_model.pb", *(f"variables/variables.{end}" for end in VARIABLES)]
)
@pytest.mark.parametrize("kept", [None, 0, 0.3, 0.99])
def test_a_cut_savedmodel_is_named_as_damaged(written, tmp_path, file, kept):
    shutil.copytree(written("bert").path, tmp_path / "cut")
    path = tmp_path / "cut" / file
    if kept is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    if file == "saved_model.pb" and kept is None:
        with pytest.raises(FileNotFoundError, match="no SavedModel at"):
            read_savedmodel(tmp_path / "cut")
        return
    with pytest.raises(ValueError, match="cut is damaged: .*recbert export") as error:
        read_savedmodel(tmp_path / "cut")
    assert len(str(error.value).splitlines()) == 1


def test_a_savedmodel_without_a_default_signature(tmp_path):
    tf.saved_model.save(tf.Module(), str(tmp_path))
    with pytest.raises(
        ValueError, match="no signature .serving_default.. It has: none"
    ):
        read_savedmodel(tmp_path)
