"""Downloads over HTTP, from a hub on this machine."""

import os
import pathlib

import numpy as np
import pytest
from foreign_berts import minilm_folder
from hub_server import point_to, serving
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.convert.hub_folder import downloaded, local_folder, with_revision
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.convert.token_table import TOKENS, is_folder, read_token_table

MODEL = "hf://jane/films"


@pytest.fixture(scope="module")
def classifier():
    return tiny_model(label_names=["bad", "good"])


@pytest.fixture(scope="module")
def preset(classifier, tmp_path_factory):
    """Files of a preset, by their names."""
    folder = tmp_path_factory.mktemp("presets") / "films"
    classifier.save_preset(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def hub(monkeypatch, tmp_path, preset):
    """A hub with the preset, and with what nobody needs."""
    with serving() as (hub, address):
        point_to(monkeypatch, address, tmp_path / "cache")
        downloaded.cache_clear()
        more = {"README.md": b"# Films", "pytorch_model.bin": b"\x80pickle"}
        hub.add("jane/films", {**preset, **more, "onnx/model.safetensors": b"x"})
        yield hub
    downloaded.cache_clear()


def look_up():
    """Looks a name up as another process would."""
    downloaded.cache_clear()
    return local_folder(MODEL)


def go_offline(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_a_folder_is_left_alone_without_a_request(hub, tmp_path):
    assert local_folder(tmp_path) is tmp_path
    assert local_folder("hf") == "hf"
    assert not hub.requests


def test_a_preset_is_downloaded_once_and_is_the_one_that_was_saved(
    hub, classifier, preset
):
    encoder = keras_recbert.build("bert_tiny", weights=MODEL)
    count = len(hub.requests)
    loaded = keras_recbert.load(MODEL)
    assert len(hub.requests) == count  # looked up once in a process
    for one, other in zip(
        [*classifier.weights, *classifier.encoder.weights],
        [*loaded.weights, *encoder.weights],
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    assert loaded.label_names == ["bad", "good"]
    assert encoder.preprocessor is not None
    assert set(os.listdir(local_folder(MODEL))) == set(preset)
    asked = {line.rpartition("/")[2] for line in hub.requests}
    assert not {"README.md", "pytorch_model.bin"} & asked


def test_a_revision_is_that_one(hub):
    first = hub.files("jane/films")[0]
    newer = hub.add("jane/films", {"tokenizer_config.json": b"{}"})
    assert look_up().name == newer
    assert local_folder(f"{MODEL}@{first}").name == first
    with pytest.raises(FileNotFoundError, match="no revision 'v9' of hf://jane/films"):
        local_folder(f"{MODEL}@v9")


def test_a_bert_of_hugging_face_works_as_its_folder_does(hub, tmp_path):
    encoder = tiny_model().encoder
    encoder.preprocessor = tiny_model().preprocessor
    encoder.save_huggingface(tmp_path / "bert")
    files = {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()}
    commit = hub.add("jane/bert", {**files, "1_Pooling/config.json": b"{}"})
    here, there = open_checkpoint(tmp_path / "bert"), open_checkpoint("hf://jane/bert")
    assert with_revision("hf://jane/bert") == f"hf://jane/bert@{commit}"
    assert with_revision(tmp_path) is tmp_path
    assert there.format == here.format != "keras_recbert"
    assert there.sizes == here.sizes
    assert there.vocabulary == here.vocabulary
    assert keras_recbert.explain("hf://jane/bert")
    assert is_folder("hf://jane/bert")  # as `vectors`
    table = read_token_table("hf://jane/bert")
    np.testing.assert_array_equal(table.vectors, here.weight(TOKENS))


@pytest.mark.slow  # 90 MB
def test_minilm_is_the_same_as_from_its_folder(hub):
    folder = pathlib.Path(minilm_folder())
    files = [path for path in folder.iterdir() if path.is_file()]
    model = "sentence-transformers/all-MiniLM-L6-v2"
    hub.add(model, {path.name: path.read_bytes() for path in files})
    one, other = (
        keras_recbert.build("bert_minilm", weights=weights, num_layers=2)
        for weights in (f"hf://{model}", folder)
    )
    texts = ["a gripping film", "no charm at all"]
    np.testing.assert_array_equal(one.encode(texts), other.encode(texts))


def test_the_cached_copy_is_used_and_named_where_the_hub_is_not_there(
    hub, monkeypatch, capsys
):
    folder = look_up()
    assert not capsys.readouterr().out
    hub.status = 503
    assert look_up() == folder
    assert "the Hub does not answer" in capsys.readouterr().out
    go_offline(monkeypatch)
    count = len(hub.requests)
    assert look_up() == folder
    said = capsys.readouterr().out
    assert f"{MODEL}: HF_HUB_OFFLINE is set, so the cached copy is used" in said
    assert f"revision {folder.name}" in said
    assert len(hub.requests) == count
    (folder / "vocab.txt").unlink()
    with pytest.raises(ConnectionError, match="is set, and the cache has no whole co"):
        look_up()


def test_a_hub_that_cannot_be_reached_without_a_copy(hub, monkeypatch, tmp_path):
    from huggingface_hub import constants

    closed = "http://127.0.0.1:9"
    point_to(monkeypatch, closed, tmp_path / "empty")
    with pytest.raises(ConnectionError, match="hf://jane/films was asked for") as error:
        look_up()
    assert "no whole copy" in str(error.value)
    assert "name a folder" in str(error.value)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="unset HF_HUB_OFFLINE"):
        look_up()


def test_what_may_not_be_read_says_how_to_log_in(hub, monkeypatch):
    hub.models["jane/films"]["private"] = True
    assert look_up()  # with the token
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(FileNotFoundError, match="hf auth login, or set HF_TOKEN"):
        look_up()
    with pytest.raises(FileNotFoundError, match="There is no model hf://jane/none"):
        local_folder("hf://jane/none")
    hub.status = 403
    with pytest.raises(PermissionError, match="The Hub refuses hf://jane/films"):
        look_up()


def test_a_model_of_pickles_is_refused_unread(hub):
    hub.add("jane/old", {"config.json": b"{}", "pytorch_model.bin": b"\x80pickle"})
    with pytest.raises(FileNotFoundError, match="holds: config.json, pytorch_model.b"):
        local_folder("hf://jane/old")
    assert not any("pytorch_model.bin" in line for line in hub.requests)


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt"])
@pytest.mark.parametrize("shared", [False, True])
def test_a_truncated_file_in_the_cache_is_found(hub, monkeypatch, file, shared):
    folder = look_up()
    if shared:  # as huggingface_hub keeps a file once for several models
        blob = (folder / file).resolve()
        store = folder.parents[2] / "blobs" / "ab" / ("ab" * 32)
        store.parent.mkdir(parents=True)
        blob.rename(store)
        blob.symlink_to(store)
        assert look_up() == folder
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[:-3])
    for offline in (False, True):
        if offline:
            go_offline(monkeypatch)
        with pytest.raises(ValueError, match=rf"{file} of hf://jane/films") as error:
            look_up()
        found = str(error.value)
        assert "Expected checksum: " in found
        assert f"of {len(whole) - 3} bytes" in found
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    # What the message says to do helps.
    os.remove(found.partition("Delete ")[2].partition(" from the cache")[0])
    assert (look_up() / file).read_bytes() == whole


def test_a_preset_that_was_damaged_before_it_was_pushed(hub, preset):
    hub.add("jane/bad", {**preset, "vocab.txt": preset["vocab.txt"][:-4]})
    with pytest.raises(ValueError, match=r"vocab.txt was changed.*before it was pushe"):
        local_folder("hf://jane/bad")
