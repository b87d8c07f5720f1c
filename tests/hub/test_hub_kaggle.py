"""Kaggle at the public functions of `kagglehub`: its server has no open form."""

import shutil

import kagglehub
import pytest
import requests
from kagglehub.exceptions import KaggleApiHTTPError, UnauthenticatedError
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.convert.hub_folder import downloaded, local_folder
from keras_recbert.publish.push import push

MODEL = "kaggle://jane/films/keras/tiny"


class Kaggle:
    """Keeps versions as Kaggle does, with a cache as that of `kagglehub`."""

    def __init__(self, folder, cache):
        self.folder, self.cache, self.error, self.uploads = folder, cache, None, []

    def model_upload(self, handle, local_model_dir, license_name=None, **_):
        if self.error is not None:
            raise self.error
        self.uploads.append((handle, license_name))
        shutil.copytree(local_model_dir, self.folder / handle / str(len(self.uploads)))

    def model_download(self, handle):
        parts = handle.split("/")
        if len(parts) == 4:
            if self.error is not None:
                raise self.error
            parts.append(str(len(self.uploads)))
        cached = self.cache.joinpath("models", *parts)
        if not cached.exists():
            if self.error is not None:
                raise self.error
            shutil.copytree(self.folder.joinpath(*parts), cached)
        return str(cached)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "films"
    tiny_model(label_names=["bad", "good"]).save_preset(folder)
    return folder


@pytest.fixture
def kaggle(tmp_path, monkeypatch, preset):
    kaggle = Kaggle(tmp_path / "kaggle", tmp_path / "cache")
    for name in ("model_upload", "model_download"):
        monkeypatch.setattr(kagglehub, name, getattr(kaggle, name))
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(kaggle.cache))
    assert push(preset, MODEL, licence="apache-2.0") == f"{MODEL}, a new version"
    yield kaggle
    downloaded.cache_clear()


def look_up(name=MODEL):
    downloaded.cache_clear()
    return local_folder(name)


def test_what_is_pushed_is_loaded(kaggle, preset):
    assert kaggle.uploads == [("jane/films/keras/tiny", "Apache 2.0")]
    assert keras_recbert.load(MODEL).label_names == ["bad", "good"]
    push(preset, MODEL)
    assert (look_up().name, look_up(f"{MODEL}/1").name) == ("2", "1")


def test_without_a_network_the_newest_cached_version_is_used_and_named(kaggle, capsys):
    folder = look_up()
    kaggle.error = requests.ConnectionError("no route")
    assert look_up() == folder
    said = capsys.readouterr().out
    assert "Kaggle cannot be reached (ConnectionError), so the cached copy" in said
    assert "version 1." in said
    assert look_up(f"{MODEL}/1") == folder
    shutil.rmtree(kaggle.cache)
    for name in (MODEL, f"{MODEL}/1"):
        with pytest.raises(ConnectionError, match=f"{name} was asked for.*no whole co"):
            look_up(name)


def test_refusals_say_what_to_do(kaggle, preset):
    answer = requests.Response()
    answer.status_code = 404
    kaggle.error = KaggleApiHTTPError("404 Client Error", answer)
    with pytest.raises(FileNotFoundError, match=r"HTTP 404\). Check the name.*login"):
        look_up()
    kaggle.error = UnauthenticatedError()
    with pytest.raises(PermissionError, match="KAGGLE_USERNAME and KAGGLE_KEY"):
        push(preset, MODEL)
    kaggle.error = requests.ConnectionError("no route")
    with pytest.raises(ConnectionError, match="cannot be reached to write kaggle://j"):
        push(preset, MODEL)


def test_a_truncated_file_in_the_cache_is_found(kaggle):
    file = look_up() / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-8])
    size = len(whole)
    with pytest.raises(ValueError, match=rf"bytes is {size - 8}.* must be {size}") as e:
        look_up()
    assert f"Delete the cache, {file.parent}, and ask again" in str(e.value)
    shutil.rmtree(file.parent)
    assert (look_up() / "model.safetensors").read_bytes() == whole
