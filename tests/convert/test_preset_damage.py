"""Damaged presets, and cards that agree with the damage, are refused by name."""

import json

import numpy as np
import pytest
import safetensors.numpy
from presets import load

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset import load_preset, read_preset
from keras_recbert.convert.preset_files import checksum_of_card
from keras_recbert.core.json_files import file_sha256, to_json


def change_json(file, change):
    content = json.loads(file.read_text())
    change(content)
    file.write_text(to_json(content))


def sign(folder):
    """Makes the card agree with the files, as somebody who means harm would."""

    def update(card):
        for name, entry in card["files"].items():
            if (folder / name).is_file():
                entry["bytes"] = (folder / name).stat().st_size
                entry["sha256"] = file_sha256(folder / name)
        card["sha256"] = checksum_of_card(card)

    change_json(folder / "card.json", update)


@pytest.mark.parametrize(
    "name", ["card.json", "config.json", "model.safetensors", "vocab.txt"]
)
def test_one_flipped_byte_is_found(copied, name):
    content = bytearray((copied / name).read_bytes())
    for index in (content.find(b"9"), len(content) // 2, len(content) - 2):
        changed = bytearray(content)
        changed[index] ^= 1
        (copied / name).write_bytes(changed)
        with pytest.raises(CheckpointError, match=f"{name}.*"):
            load(copied)


def test_the_sums_are_shown(copied):
    file = copied / "vocab.txt"
    wanted = file_sha256(file)
    file.write_bytes(file.read_bytes().replace(b"good", b"food"))
    message = f"vocab.txt was changed or damaged: its sha256 is {file_sha256(file)}"
    with pytest.raises(CheckpointError, match=f"{message}, and .* {wanted}. Copy the"):
        read_preset(copied)


def test_a_changed_metric_is_found(copied):
    change_json(
        copied / "card.json", lambda card: card["metrics"].update({"seeds": 30})
    )
    with pytest.raises(
        CheckpointError, match="card.json was changed or damaged: its s"
    ):
        load(copied)


def test_a_cut_file_is_found(copied):
    file = copied / "model.safetensors"
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:-7])
    message = f"model.safetensors was .*its bytes is {size - 7}, and .* be {size}"
    with pytest.raises(CheckpointError, match=message):
        load(copied)
    sign(copied)
    with pytest.raises(CheckpointError, match="model.safetensors is damaged or cut"):
        load(copied)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_missing_file_is_named(copied, name):
    (copied / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing, which card.json"):
        load(copied)


def test_load_tells_a_preset_that_lost_its_card(copied):
    (copied / "card.json").unlink()
    for read in (
        keras_recbert.load,
        lambda path: keras_recbert.build("bert_tiny", weights=path),
    ):
        with pytest.raises(FileNotFoundError, match="card.json is missing"):
            read(copied)


def test_a_folder_without_a_card_is_no_preset(copied, tmp_path):
    (copied / "card.json").unlink()
    with pytest.raises(FileNotFoundError, match="card.json is missing. `model.save_p"):
        load(copied)
    with pytest.raises(FileNotFoundError, match="There is no preset at .*nowhere"):
        load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda config: config.update({"class": "os.system"}),
            "config.json says that the model is a 'os.system', card.json",
        ),
        (
            lambda config: config["encoder"].update({"class": "os.system"}),
            "the class must be one of 'RecBertEncoder', 'TextClassifier', "
            "'TextRegressor'. It is 'os.system'",
        ),
        (
            lambda config: config["encoder"].update({"class": ["os"]}),
            r"a class is a string. It is \['os'\]",
        ),
        (
            lambda config: config["encoder"]["arguments"].update(
                {"dtype": {"module": "os", "class_name": "system", "config": {}}}
            ),
            "encoder.arguments must hold numbers, strings and lists",
        ),
        (
            lambda config: config["arguments"].update({"shell": "true"}),
            "does not describe a model .*'shell'",
        ),
        (
            lambda config: config["encoder"]["arguments"].update({"num_layers": -1}),
            "does not describe a model .*num_layers=-1",
        ),
        (
            lambda config: config["arguments"].pop("fields"),
            "does not describe a model .*'fields'",
        ),
        (
            lambda config: config["preprocessor"]["arguments"].update(
                {"truncation": "none"}
            ),
            "does not describe a model .*truncation='none'",
        ),
        (
            lambda config: config.update({"preprocessor": None}),
            "card.json must name vocab.txt if and only if",
        ),
        (
            lambda config: config.update({"module": "os"}),
            r"Missing: \[\]. Unknown: \['module'\]",
        ),
        (
            lambda config: config["preprocessor"].pop("lowercase"),
            r"preprocessor must have .* Missing: \['lowercase'\]",
        ),
        (
            lambda config: config.update({"encoder": ["RecBertEncoder"]}),
            "encoder must be a JSON object",
        ),
        (
            lambda config: config.update({"format_version": 2}),
            "config.json: the format version is 2. This .* reads version 3",
        ),
    ],
)
def test_a_config_that_is_none_is_refused(copied, change, message):
    change_json(copied / "config.json", change)
    sign(copied)
    with pytest.raises(CheckpointError, match=message):
        load(copied)


def test_a_class_of_another_name_is_never_called(copied):
    called = []
    change_json(copied / "config.json", lambda config: config.update({"class": "f"}))
    change_json(copied / "card.json", lambda card: card.update({"class": "f"}))
    sign(copied)
    with pytest.raises(CheckpointError, match="config.json: the class .* It is 'f'"):
        load_preset(copied, {"g": called.append})
    assert not called


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda card: card["files"].update({"../run.sh": {}}),
            r"files must have .* Unknown: \['../run.sh'\]",
        ),
        (
            lambda card: card["files"].pop("model.safetensors"),
            r"files must have .* Missing: \['model.safetensors'\]",
        ),
        (
            lambda card: card["files"].pop("vocab.txt"),
            "card.json must name vocab.txt if and only if",
        ),
        (
            lambda card: card["files"].update({"config.json": 5}),
            "config.json must be a JSON object. It is 5",
        ),
        (
            lambda card: card.update({"format_version": 7}),
            "card.json: the format version is 7. This .*'tensorflow'",
        ),
        (lambda card: card.pop("license"), r"Missing: \['license'\]"),
        (lambda card: card.update({"run": "sh"}), r"Unknown: \['run'\]"),
    ],
)
def test_a_card_that_is_none_is_refused(copied, change, message):
    change_json(copied / "card.json", change)
    change_json(
        copied / "card.json",
        lambda card: card.update({"sha256": checksum_of_card(card)}),
    )
    with pytest.raises(CheckpointError, match=message):
        load(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("head/bias"), "lacks the tensor 'head/bias'. The"),
        (
            lambda tensors: tensors.update({"head/scale": tensors["head/bias"]}),
            "holds, beside those of the model, the tensor 'head/scale'",
        ),
        (
            lambda tensors: tensors.update({"head/bias": np.zeros(3, "float32")}),
            r"the tensor 'head/bias' has .*\(\(3,\), 'F32'\).* be \(\(2,\), 'F32'\)",
        ),
        (
            lambda tensors: tensors.update({"head/bias": np.zeros(2, "float64")}),
            r"the tensor 'head/bias' has .*\(\(2,\), 'F64'\)",
        ),
        (
            lambda tensors: tensors["head/kernel"].fill(np.nan),
            "the tensor 'head/kernel' holds NaN or infinite numbers",
        ),
    ],
)
def test_wrong_tensors_are_named(copied, change, message):
    file = copied / "model.safetensors"
    tensors = {k: v.copy() for k, v in safetensors.numpy.load_file(file).items()}
    change(tensors)
    safetensors.numpy.save_file(tensors, file)
    sign(copied)
    with pytest.raises(CheckpointError, match=f"model.safetensors.*{message}"):
        load(copied)
