import json
import pickle
import shlex
import sys

import numpy as np
import pytest
import torch
from foreign_berts import (
    edit_json,
    edit_tensors,
    transformers_bert,
    write_huggingface_folder,
)
from harness import assert_close, token_batch

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.convert.preset_files import checksum_of_card
from keras_recbert.core.json_files import file_sha256


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no folder.*hf download"):
        open_checkpoint(tmp_path / "bert-base-uncased")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(CheckpointError, match="It holds: notes.txt. Needed: model.saf"):
        open_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="is a file. Pass the folder it is in"):
        open_checkpoint(tmp_path / "notes.txt")


class Trap:
    """Runs code when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_are_refused_unread(tmp_path):
    trap = tmp_path / "trap"
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text("{}")
    file = tmp_path / "bert" / "pytorch_model.bin"
    file.write_bytes(pickle.dumps(Trap(str(trap))))
    for load in (
        keras_recbert.load,
        lambda path: keras_recbert.build("bert_tiny", weights=path),
    ):
        with pytest.raises(CheckpointError) as error:
            load(tmp_path / "bert")
        assert not trap.exists()
    message = str(error.value)
    assert "pytorch_model.bin is a pickle" in message
    assert "can run any code" in message
    assert "save_pretrained" in message


def test_the_advice_against_pickles_works(tmp_path, monkeypatch):
    folder = tmp_path / "bert"
    model = write_huggingface_folder(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(folder)
    _, _, command = str(error.value).partition("transformers are: ")
    python, flag, code, *paths = shlex.split(command)
    assert (python, flag) == ("python", "-c")
    # Here, where torch and transformers are loaded, with no name of ours.
    monkeypatch.setattr(sys, "argv", [flag, *paths])
    exec(code, {})
    encoder = keras_recbert.load(f"{folder}-safetensors")
    batch = token_batch(sequence_length=11)
    batch["token_ids"] %= 13
    with torch.no_grad():
        expected = model(
            input_ids=torch.tensor(batch["token_ids"]).long(),
            token_type_ids=torch.tensor(batch["segment_ids"]).long(),
            attention_mask=torch.tensor(batch["padding_mask"]).long(),
        ).pooler_output
    assert_close(encoder(batch)["pooled_output"], expected.numpy(), 1e-5)


def test_a_mismatch_shows_both_sizes(tmp_path):
    write_huggingface_folder(tmp_path)
    with pytest.raises(CheckpointError) as error:
        keras_recbert.build("bert_tiny", weights=tmp_path)
    message = str(error.value)
    for line in (
        "hidden_dim: 128 in 'bert_tiny', 12 in the checkpoint",
        "num_heads: 2 in 'bert_tiny', 3 in the checkpoint",
        "intermediate_dim: 512 in 'bert_tiny', 20 in the checkpoint",
        "Build it with hidden_dim=12, num_heads=3, intermediate_dim=20",
        "config.json",
    ):
        assert line in message
    # The advice, taken.
    encoder = keras_recbert.build(
        "bert_tiny", weights=tmp_path, hidden_dim=12, num_heads=3, intermediate_dim=20
    )
    # Sizes that the name does not fix are the checkpoint's.
    assert encoder.config["vocabulary_size"] == 13
    assert encoder.max_sequence_length == 24
    for size, value in (("vocabulary_size", 14), ("num_segments", 1)):
        with pytest.raises(CheckpointError, match=f"{size}: {value} in .*in the check"):
            keras_recbert.build(
                "bert_tiny",
                weights=tmp_path,
                hidden_dim=12,
                num_heads=3,
                intermediate_dim=20,
                **{size: value},
            )


def test_more_layers_than_there_are(tmp_path):
    write_huggingface_folder(tmp_path)
    sizes = {"hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
    with pytest.raises(CheckpointError, match="num_layers: 3 in .*, 2 in the check"):
        keras_recbert.build("bert_tiny", weights=tmp_path, num_layers=3, **sizes)
    # Fewer only if the caller says so.
    with pytest.raises(CheckpointError, match="num_layers=2.*=1, named explicitly"):
        model = transformers_bert()
        write_huggingface_folder(tmp_path / "same", model)
        config = tmp_path / "same" / "config.json"
        assert json.loads(config.read_text())["num_hidden_layers"] == 2
        card = keras_recbert.ModelCard(
            name="one_layer_of_twelve",
            sizes={"block": "transformer", "num_layers": 1, **sizes},
            paper="none",
            table="none",
            num_parameters=0,
        )
        from keras_recbert.builder.encoder import build_encoder

        build_encoder(card, {}, open_checkpoint(tmp_path / "same"))


# Hostile or odd folders ------------------------------------------------------------


def test_a_config_that_counts_forever_is_refused(tmp_path):
    write_huggingface_folder(tmp_path)
    edit_json(tmp_path / "config.json", num_hidden_layers=10**12)
    with pytest.raises(
        CheckpointError, match="config.json says .* 1000000000000 layers.* 39 tensors"
    ):
        keras_recbert.load(tmp_path)


def test_a_deep_json_is_told_by_name(tmp_path):
    write_huggingface_folder(tmp_path)
    (tmp_path / "config.json").write_text("[" * 100_000)
    with pytest.raises(CheckpointError, match="config.json is not valid JSON"):
        keras_recbert.load(tmp_path)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("tokenizer.json", {"model": [1]}, "model.type must be 'WordPiece'"),
        ("tokenizer.json", {"model": {"type": "WordPiece"}}, "model.vocab must be"),
        (
            "tokenizer.json",
            {"model": {"type": "WordPiece", "vocab": {"a": 0, "b": "1"}}},
            "model.vocab must be",
        ),
        (
            "tokenizer.json",
            {"model": {"type": "WordPiece"}, "normalizer": "x"},
            "normalizer.type must be 'BertNormalizer'.*It is 'x'",
        ),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "tokenizer_class must be 'BertTokenizer'.*move the tokenizer's files",
        ),
        ("tokenizer_config.json", {"tokenize_chinese_chars": False}, "must be True"),
        ("tokenizer_config.json", {"do_lower_case": "false"}, "It is 'false'"),
    ],
)
def test_other_tokenizers_are_refused(tmp_path, name, content, message):
    write_huggingface_folder(tmp_path)
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match=message) as error:
        keras_recbert.load(tmp_path)
    assert name in str(error.value)


def test_sizes_that_are_no_numbers(tmp_path):
    write_huggingface_folder(tmp_path)
    with pytest.raises(ValueError, match="`num_layers` must be a whole number.*'two'"):
        keras_recbert.build("bert_tiny", weights=tmp_path, num_layers="two")


def test_the_folder_one_stands_in(tmp_path, monkeypatch):
    write_huggingface_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert keras_recbert.load(".").config["num_layers"] == 2


def test_a_half_downloaded_file_is_no_checkpoint(tmp_path):
    (tmp_path / "model.safetensors.incomplete").write_bytes(b"")
    with pytest.raises(CheckpointError, match="holds no checkpoint that can be read"):
        open_checkpoint(tmp_path)


def test_the_way_to_a_preset_is_told(tmp_path):
    (tmp_path / "model.keras").write_bytes(b"")
    with pytest.raises(CheckpointError, match="recbert convert .*model.keras FOLDER"):
        open_checkpoint(tmp_path / "model.keras")
    (tmp_path / "preset").mkdir()
    (tmp_path / "preset" / "card.json").write_text("{}")
    with pytest.raises(CheckpointError, match="training run. Pass the preset in it"):
        open_checkpoint(tmp_path)


def test_a_checkpoint_file_does_not_lead_out_of_its_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("bert.ckpt.index", "bert.ckpt.data-00000-of-00001"):
        (tmp_path / "elsewhere" / name).write_bytes(b"")
    (tmp_path / "here").mkdir()
    target = tmp_path / "elsewhere" / "bert.ckpt"
    (tmp_path / "here" / "checkpoint").write_text(
        f'model_checkpoint_path: "{target}"\nall_model_checkpoint_paths: "{target}"\n'
    )
    with pytest.raises(CheckpointError, match="names .*elsewhere.* not in the folder"):
        open_checkpoint(tmp_path / "here")


def test_a_report_sends_no_codes_to_the_terminal(tmp_path):
    write_huggingface_folder(tmp_path)
    edit_tensors(
        tmp_path / "model.safetensors",
        lambda tensors: tensors.update({"\x1b[31mred": np.ones(1, "float32")}),
    )
    report = keras_recbert.load(tmp_path).weights_report
    assert "\x1b[31mred" in report.unused
    assert "\x1b" not in str(report)
    assert "\\x1b[31mred" in str(report)


def test_nothing_else_is_lost_by_overwriting(tmp_path):
    write_huggingface_folder(tmp_path / "bert")
    encoder = keras_recbert.load(tmp_path / "bert")
    encoder.save_preset(tmp_path / "preset")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "config.json").write_text("{}")
    (tmp_path / "project" / "src").mkdir()
    for folder, foreign in (("preset", "card.json"), ("project", "src")):
        with pytest.raises(FileExistsError, match=f"also holds '{foreign}'"):
            encoder.save_huggingface(tmp_path / folder, overwrite=True)
    (tmp_path / "preset" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="also holds 'notes.txt'"):
        encoder.save_preset(tmp_path / "preset", overwrite=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file is a file"):
        encoder.save_preset(tmp_path / "file", overwrite=True)
    with pytest.raises(FileExistsError, match="cannot be written: .*file is a file"):
        encoder.save_preset(tmp_path / "file" / "preset")


def test_presets_whose_config_asks_for_more_than_they_hold(tmp_path):
    write_huggingface_folder(tmp_path / "bert")
    encoder = keras_recbert.load(tmp_path / "bert")
    for number, (size, value, message) in enumerate(
        (
            ("num_layers", 10**9, "too few for the 1000000000 layers"),
            ("vocabulary_size", 10**12, r"'embeddings/token_embedding/embeddings' has"),
            ("hidden_dim", 12 * 10**9, "has the shape"),
        )
    ):
        folder = tmp_path / str(number)
        encoder.save_preset(folder)
        config = json.loads((folder / "config.json").read_text())
        config["arguments"][size] = value
        (folder / "config.json").write_text(json.dumps(config))
        forge_sums(folder)
        with pytest.raises(CheckpointError, match=message):
            keras_recbert.load(folder)
        with pytest.raises(CheckpointError):
            keras_recbert.build(
                "bert_tiny",
                weights=folder,
                **{"hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20},
            )


def test_a_preset_that_lacks_a_weight_starts_nothing(tmp_path):
    """Nor does a recurrent encoder take the gap for one of its new parts."""
    write_huggingface_folder(tmp_path / "bert")
    keras_recbert.load(tmp_path / "bert").save_preset(tmp_path / "preset")
    gone = "block_1/attention_norm/gamma"
    edit_tensors(tmp_path / "preset" / "model.safetensors", lambda t: t.pop(gone))
    forge_sums(tmp_path / "preset")
    sizes = {"hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20, "num_layers": 2}
    for name in ("bert_tiny", "bert_rab_tiny", "trans_blstm_tiny"):
        with pytest.raises(CheckpointError, match=f"has nothing for .*'{gone}'"):
            keras_recbert.build(name, weights=tmp_path / "preset", **sizes)
    with pytest.raises(CheckpointError, match=f"lacks the tensor '{gone}'"):
        keras_recbert.load(tmp_path / "preset")


def forge_sums(folder):
    """Makes a card agree with its files, as somebody hostile would."""
    card = json.loads((folder / "card.json").read_text())
    for name, entry in card["files"].items():
        entry["bytes"] = (folder / name).stat().st_size
        entry["sha256"] = file_sha256(folder / name)
    card["sha256"] = checksum_of_card(card)
    (folder / "card.json").write_text(json.dumps(card))


def write_empty_tensors(file, count):
    """A safetensors file of so many tensors without numbers."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    header = json.dumps({f"t{index}": empty for index in range(count)}).encode()
    header += b" " * (-len(header) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header)


@pytest.mark.parametrize(
    "count, message",
    [
        (20_001, "holds 20,001 tensors. An encoder has at most 20,000"),
        (150_000, "has a header of .* bytes. That of an encoder has at most 8,388,608"),
    ],
)
def test_more_tensors_than_any_encoder_has(tmp_path, count, message):
    write_huggingface_folder(tmp_path)
    write_empty_tensors(tmp_path / "model.safetensors", count)
    with pytest.raises(CheckpointError, match=f"model.safetensors {message}"):
        keras_recbert.load(tmp_path)
