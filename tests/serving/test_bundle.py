"""What TensorFlow Serving loads: a user exports a version, and checks it."""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.serving import check
from keras_recbert.serving.bundle import (
    TEXTS,
    WARM_UP,
    batch_sizes,
    read_warm_up,
    write_bundle,
)
from keras_recbert.serving.check import check_bundle, highest_version
from keras_recbert.serving.savedmodel import read_savedmodel


@pytest.fixture(scope="module")
def model():
    """Tests leave it as it is."""
    return tiny_model(label_names=["bad", "good"])


@pytest.fixture(scope="module")
def bundle(model, tmp_path_factory):
    """The folder that the command wrote."""
    folder = tmp_path_factory.mktemp("bundles")
    model.save(folder / "model.keras")
    main(["export", str(folder / "model.keras"), f"{folder}/films", "--version", "3"])
    return folder / "films"


def test_a_version_is_what_the_server_loads(bundle, model):
    assert sorted(path.name for path in bundle.iterdir()) == [
        "3",
        "README.md",
        "batching.config",
        "compose.yaml",
        "models.config",
    ]
    text = (bundle / "batching.config").read_text()
    sizes = [int(size) for size in re.findall(r"allowed_batch_sizes: (\d+)", text)]
    largest = int(re.search(r"max_batch_size { value: (\d+) }", text)[1])
    assert sizes == sorted(sizes) and sizes[-1] == largest == 64
    config = text_format.Parse(
        (bundle / "models.config").read_text(), ModelServerConfig()
    )
    (one,) = config.model_config_list.config
    service = yaml.safe_load((bundle / "compose.yaml").read_text())["services"]["films"]
    assert service["environment"] == {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}
    assert one.name == "films"
    assert service["volumes"] == [f".:{one.base_path}:ro"]
    flags = dict(flag.split("=") for flag in service["command"] if "=" in flag)
    assert flags.pop("--tensorflow_intra_op_parallelism") == "1"
    for flag in flags.values():
        assert (bundle / pathlib.Path(flag).name).is_file()
    # The request of the README is one that the model answers.
    request = re.search(r"curl -d '(.*)' ", (bundle / "README.md").read_text())[1]
    (text,) = json.loads(request)["instances"]
    signature = read_savedmodel(bundle / "3")
    scores = signature(text=tf.constant([text]))["scores"]
    expected = tf.nn.softmax(model.predict([text], verbose=0))
    np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_requests_of_every_batch_size_warm_it_up(bundle):
    sizes = []
    for record in tf.data.TFRecordDataset(str(bundle / "3" / WARM_UP)):
        request = PredictionLog.FromString(record.numpy()).predict_log.request
        assert request.model_spec.name == "films"
        assert request.model_spec.signature_name == "serving_default"
        assert set(request.inputs) == {"text"}
        sizes.append(tf.make_ndarray(request.inputs["text"]).shape)
    assert sizes == [(size,) for size in batch_sizes(64)]
    requests = read_warm_up(bundle / "3")
    assert requests[2][1]["text"].tolist() == [*TEXTS, TEXTS[0]]


def test_sizes_of_batches():
    assert batch_sizes(64) == (1, 2, 4, 8, 16, 32, 64)
    assert batch_sizes(20) == (1, 2, 4, 8, 16, 20)
    assert batch_sizes(1) == (1,)


@pytest.mark.slow
def test_the_check_names_ops_and_answers(bundle, capsys, monkeypatch):
    assert main(["check", str(bundle)]) == 0
    printed = capsys.readouterr().out
    assert f"{bundle / '3'}: " in printed
    assert "FastWordpieceTokenizeWithOffsets  TF Text 2.7 or later" in printed
    assert re.search(r"answered +64 in +\d+\.\d ms", printed)
    monkeypatch.delitem(check.TF_TEXT_OPS, "NormalizeUTF8")
    assert main(["check", str(bundle / "3")]) != 0
    assert "not every server knows: NormalizeUTF8" in capsys.readouterr().err


@pytest.mark.slow
def test_pairs_lists_and_weights_of_half_the_bytes(tmp_path):
    sizes = {"hidden_dim": 64, "intermediate_dim": 256}
    model = tiny_model(task="multiple_choice", **sizes)
    model.save(tmp_path / "it.keras")
    arguments = ["export", str(tmp_path / "it.keras")]
    for name, more in (("whole", []), ("half", ["--precision", "bfloat16"])):
        assert main([*arguments, str(tmp_path / name), "--version", "1", *more]) == 0
    found = check_bundle(tmp_path / "half")
    assert [number for number, _ in found.requests] == list(batch_sizes(64))
    assert found.refused == []
    whole, half = (
        (tmp_path / name / "1/variables/variables.data-00000-of-00001").stat().st_size
        for name in ("whole", "half")
    )
    assert half < 0.6 * whole
    inputs = {"text": tf.constant([TEXTS[0]]), "choices": tf.constant([TEXTS])}
    one, other = (
        read_savedmodel(tmp_path / name / "1")(**inputs)["scores"]
        for name in ("whole", "half")
    )
    np.testing.assert_allclose(one, other, atol=0.02)


def test_nothing_half_written_is_there_for_a_server(bundle, model, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError("No space left on device")

    monkeypatch.setattr(tf.io, "TFRecordWriter", fail)
    with pytest.raises(OSError, match="No space left"):
        write_bundle(model, bundle, 4)
    assert [path.name for path in bundle.iterdir() if path.name[0] in ".4"] == []
    assert highest_version(bundle) == bundle / "3"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("films", 0), "`version` must be.*Received: version=0"),
        (("17", 1), "has another name. Received: .*17'. Name it DIR/NAME"),
        (("my films", 1), "letters, digits, _, - and a dot. Received: .*my films"),
        (("films", 1, ("question",)), "question"),
    ],
)
def test_what_cannot_be_is_told(model, tmp_path, arguments, message):
    folder, *rest = arguments
    with pytest.raises(ValueError, match=message):
        write_bundle(model, tmp_path / folder, *rest)
    assert not list(tmp_path.rglob("*.pb"))


def test_a_version_is_replaced_only_if_asked(bundle, model, capsys, tmp_path):
    with pytest.raises(FileExistsError, match="overwrite"):
        write_bundle(model, bundle, 3)
    with pytest.raises(FileNotFoundError, match="no SavedModel.*--version 1"):
        check_bundle(tmp_path)
    keras_recbert.build("bert_tiny", num_layers=1).save(tmp_path / "encoder.keras")
    command = ["export", str(tmp_path / "encoder.keras"), str(tmp_path / "it")]
    assert main([*command, "--precision", "bfloat16"]) != 0
    assert "of a model with a head" in capsys.readouterr().err
    assert main([*command, "--format", "litert", "--version", "1"]) != 0
    assert "--version is for a SavedModel" in capsys.readouterr().err
