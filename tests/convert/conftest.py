"""What tests of foreign and own checkpoints share."""

import lzma
import pathlib
import shutil

import numpy as np
import pytest
from harness import randomize
from model_garden_files import GOLDEN
from toy_texts import tiny_model

from keras_recbert.convert.preset import write_preset


@pytest.fixture(scope="module")
def classifier():
    """A classifier with texts; tests leave it alone."""
    model = tiny_model(label_names=["bad", "good"], pooling="mean", sequence_length=16)
    randomize(model)
    return model


@pytest.fixture(scope="module")
def written(classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "classifier"
    write_preset(classifier, folder, {"SST-2 validation accuracy": 91.4, "seeds": 3})
    return folder


@pytest.fixture
def copied(written, tmp_path):
    """A preset that a test may damage."""
    return pathlib.Path(shutil.copytree(written, tmp_path / "preset"))


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    """A copy of the fixtures, with the graph of the SavedModel unpacked."""
    folder = tmp_path_factory.mktemp("model_garden") / "golden"
    shutil.copytree(GOLDEN, folder)
    packed = folder / "tf_hub" / "saved_model.pb.xz"
    graph = lzma.decompress(packed.read_bytes())
    packed.with_suffix("").write_bytes(graph)
    packed.unlink()
    return folder


@pytest.fixture
def folder(golden, request, tmp_path):
    """A layout of one's own to change."""
    return shutil.copytree(golden / request.param, tmp_path / request.param)


@pytest.fixture(scope="module")
def expected():
    with np.load(GOLDEN / "expected.npz") as file:
        return dict(file)
