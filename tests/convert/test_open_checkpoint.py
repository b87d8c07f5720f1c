import json
import pickle
import shlex
import subprocess
import sys

import pytest
import torch
from foreign_berts import transformers_bert, write_huggingface_folder
from harness import assert_close, token_batch

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.open_checkpoint import open_checkpoint


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


def test_the_advice_against_pickles_works(tmp_path):
    folder = tmp_path / "bert"
    model = write_huggingface_folder(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(folder)
    _, _, command = str(error.value).partition("transformers are: ")
    python, *arguments = shlex.split(command)
    assert python == "python"
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
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
    with pytest.raises(CheckpointError, match="num_layers=2.*num_layers=1, said aloud"):
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
        from keras_recbert.builder import _build_backbone

        _build_backbone(card, {}, open_checkpoint(tmp_path / "same"))
