import json

import numpy as np
import pytest
import torch
import transformers
from foreign_berts import (
    PIECES,
    SIZES,
    edit_json,
    edit_tensors,
    outputs_of_torch,
    transformers_bert,
    write_huggingface_folder,
)
from harness import assert_close, ragged_mask
from safetensors.numpy import load_file, save_file

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError

QUERY = "encoder.layer.1.attention.self.query.weight"


def batch_of(lengths=(9, 5, 1)):
    rng = np.random.default_rng(0)
    shape = (len(lengths), max(lengths))
    return {
        "token_ids": rng.integers(0, SIZES["vocabulary_size"], shape, "int32"),
        "segment_ids": rng.integers(0, 2, shape, "int32"),
        "padding_mask": ragged_mask(lengths, max(lengths)),
    }


def assert_same_outputs(encoder, model):
    batch = batch_of()
    outputs = encoder(batch)
    sequence, pooled = outputs_of_torch(getattr(model, "bert", model), batch)
    real = batch["padding_mask"].astype(bool)
    assert_close(outputs["sequence_output"].numpy()[real], sequence[real], 1e-5)
    if pooled is not None:
        assert_close(outputs["pooled_output"], pooled, 1e-5)


@pytest.fixture
def folder(tmp_path):
    write_huggingface_folder(tmp_path / "bert")
    return tmp_path / "bert"


# In ------------------------------------------------------------------------------


def test_outputs_equal_those_of_transformers(tmp_path):
    model = write_huggingface_folder(tmp_path)
    encoder = keras_recbert.load(tmp_path)
    assert_same_outputs(encoder, model)
    assert {key: encoder.config[key] for key in SIZES} == SIZES


def test_every_tensor_is_accounted_for(tmp_path):
    model = write_huggingface_folder(
        tmp_path, transformers_bert("BertForSequenceClassification")
    )
    encoder = keras_recbert.build("bert_tiny", weights=tmp_path, **SIZES)
    assert_same_outputs(encoder, model)
    report = encoder.weights_report
    names = set(load_file(tmp_path / "model.safetensors"))
    assert set(report.unused) == {"classifier.weight", "classifier.bias"}
    assert set(report.used) | set(report.unused) == names
    assert not set(report.used) & set(report.unused)
    assert set(report.copied) == {weight.path for weight in encoder.weights}
    assert not report.new and not report.adapted
    text = str(report)
    assert f"{len(names) - 2} tensors used, 2 unused" in text
    assert "bert.encoder.layer.*.attention.self.{query,key,value}.weight" in text
    assert "unused    1 x classifier.bias" in text


def test_a_checkpoint_without_pooler_says_so(tmp_path):
    model = write_huggingface_folder(tmp_path, transformers_bert("BertForMaskedLM"))
    with pytest.warns(UserWarning, match="has no pooler, so `pooled_output` starts"):
        encoder = keras_recbert.load(tmp_path)
    assert_same_outputs(encoder, model)
    assert set(encoder.weights_report.new) == {"pooler/kernel", "pooler/bias"}
    assert "cls.predictions.bias" in encoder.weights_report.unused


def test_shards(tmp_path):
    model = write_huggingface_folder(tmp_path, max_shard_size="4KB")
    assert not (tmp_path / "model.safetensors").exists()
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_same_outputs(keras_recbert.load(tmp_path), model)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_read_as_float32(tmp_path, dtype):
    model = transformers_bert().to(getattr(torch, dtype))
    write_huggingface_folder(tmp_path, model)
    encoder = keras_recbert.load(tmp_path)
    assert all(weight.dtype == "float32" for weight in encoder.weights)
    assert_same_outputs(encoder, model.float())


def test_names_of_old_conversions(tmp_path):
    model = write_huggingface_folder(tmp_path)

    def rename(tensors):
        for name in list(tensors):
            if "LayerNorm" in name:
                old = name.replace(".weight", ".gamma").replace(".bias", ".beta")
                tensors[old] = tensors.pop(name)

    edit_tensors(tmp_path / "model.safetensors", rename)
    assert_same_outputs(keras_recbert.load(tmp_path), model)


def test_the_vocabulary_comes_along(folder):
    encoder = keras_recbert.load(folder)
    assert encoder.preprocessor(["ab A"])["token_ids"].numpy().tolist() == [
        [2, 5, 12, 5, 3]
    ]
    model = keras_recbert.build(
        "bert_tiny", task="classifier", weights=folder, **sizes_but_vocabulary()
    )
    assert model.preprocessor.tokenizer.vocabulary == tuple(PIECES)
    assert model.predict(["ab A", "f"], verbose=0).shape == (2, 2)


def sizes_but_vocabulary():
    return {key: size for key, size in SIZES.items() if key != "vocabulary_size"}


def test_case_is_what_the_tokenizer_says(folder):
    assert keras_recbert.load(folder).preprocessor.tokenizer.lowercase
    config = folder / "tokenizer_config.json"
    config.write_text('{"do_lower_case": false}')
    assert not keras_recbert.load(folder).preprocessor.tokenizer.lowercase
    config.write_text('{"do_lower_case": true, "strip_accents": false}')
    assert keras_recbert.load(folder).preprocessor.tokenizer.strip_accents is False
    # Where nothing says it, capital letters in the pieces do.
    config.unlink()
    pieces = [*PIECES[:-1], "B"]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    assert not keras_recbert.load(folder).preprocessor.tokenizer.lowercase


def test_a_tokenizer_json_is_enough(folder):
    tokenizer = transformers.BertTokenizer(vocab=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    preprocessor = keras_recbert.load(folder).preprocessor
    assert preprocessor.tokenizer.vocabulary == tuple(PIECES)
    assert preprocessor.tokenizer.lowercase
    edit_json(folder / "tokenizer.json", model={"type": "BPE", "vocab": {}})
    with pytest.raises(
        CheckpointError, match="tokenizer.json: model.type must be 'WordP.*'BPE'"
    ):
        keras_recbert.load(folder)


def test_another_vocabulary_is_an_error(folder):
    other = [*PIECES[:-1], "x"]
    with pytest.raises(ValueError, match="`vocabulary` differs from that of `weights`"):
        keras_recbert.build(
            "bert_tiny",
            task="classifier",
            weights=folder,
            vocabulary=other,
            **sizes_but_vocabulary(),
        )


# Out -----------------------------------------------------------------------------


def test_round_trip_is_bit_equal(tmp_path):
    model = write_huggingface_folder(tmp_path / "in")
    encoder = keras_recbert.load(tmp_path / "in")
    encoder.save_huggingface(tmp_path / "out")
    again = transformers.AutoModel.from_pretrained(tmp_path / "out")
    state, expected = again.state_dict(), model.state_dict()
    assert state.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(state[name], tensor), name
    for weight, back in zip(
        encoder.weights, keras_recbert.load(tmp_path / "out").weights, strict=True
    ):
        assert np.array_equal(weight.numpy(), back.numpy()), weight.path
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("ab A", "f x é"):
        ids = encoder.preprocessor([text])["token_ids"].numpy()[0].tolist()
        assert tokenizer(text)["input_ids"] == ids


def test_recurrent_encoders_have_no_huggingface_folder(tmp_path):
    sizes = {"num_layers": 1, "hidden_dim": 12, "num_heads": 3, "vocabulary_size": 13}
    for name, what in (
        ("swish_tiny", "'swish_rnn' blocks"),
        ("bert_rab_tiny", "relative_attention_bias=True"),
        ("bert_ltr_base", "causal=True"),
    ):
        encoder = keras_recbert.build(name, **sizes)
        with pytest.raises(ValueError, match=f"plain BERT only.*{what}"):
            encoder.save_huggingface(tmp_path / "out")
    sizes = {"recurrent_dim": 3, "vocabulary_size": 13, "vector_dim": 4}
    for name, cls in (
        ("bilstm_student", "WordBiLSTMEncoder"),
        ("bi_attentive_student", "BiAttentiveEncoder"),
    ):
        model = keras_recbert.build(name, task="classifier", **sizes)
        with pytest.raises(ValueError, match=f"plain BERT only.*Received: a {cls}"):
            model.save_huggingface(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_not_overwritten_unasked(folder, tmp_path):
    encoder = keras_recbert.load(folder)
    with pytest.raises(FileExistsError, match="exists already.*--overwrite"):
        encoder.save_huggingface(folder)
    encoder.save_huggingface(folder, overwrite=True)
    assert_close(
        encoder(batch_of())["pooled_output"],
        keras_recbert.load(folder)(batch_of())["pooled_output"],
        0.0,
    )
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds no config.json"):
        encoder.save_huggingface(tmp_path / "thesis", overwrite=True)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


# Damage --------------------------------------------------------------------------


def damage_rename(tensors):
    tensors["encoder.layer.1.attention.self.qeury.weight"] = tensors.pop(QUERY)


def damage_shape(tensors):
    tensors[QUERY] = tensors[QUERY][:, :-1].copy()


def damage_number(tensors):
    tensors[QUERY] = tensors[QUERY].copy()
    tensors[QUERY][3, 4] = np.nan


def damage_type(tensors):
    tensors[QUERY] = np.zeros((12, 12), "int32")


@pytest.mark.parametrize(
    "damage, message",
    [
        (
            damage_rename,
            f"model.safetensors lacks the tensor '{QUERY}'.*It has .*qeury.*renamed",
        ),
        (damage_shape, rf"'{QUERY}' has the shape \(12, 11\).*must be \(12, 12\)"),
        (damage_number, f"'{QUERY}' holds 1 of 144 numbers that are NaN"),
        (damage_type, f"'{QUERY}' holds I32. Weights must be floats"),
        (
            lambda tensors: [tensors.pop(n) for n in list(tensors) if "1.att" not in n],
            "lacks the tensor .* and 26 more",
        ),
    ],
)
def test_a_damaged_tensor_is_named(folder, damage, message):
    edit_tensors(folder / "model.safetensors", damage)
    with pytest.raises(CheckpointError, match=message) as error:
        keras_recbert.load(folder)
    assert "model.safetensors" in str(error.value)


def test_a_cut_file_is_named(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="model.safetensors is damaged or cut"):
        keras_recbert.load(folder)
    file.write_bytes(b"")
    with pytest.raises(CheckpointError, match="model.safetensors is damaged or cut"):
        keras_recbert.load(folder)


def test_damaged_shards_are_named(tmp_path):
    write_huggingface_folder(tmp_path, max_shard_size="4KB")
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    shard = content["weight_map"][QUERY]
    tensors = load_file(tmp_path / shard)
    save_file({k: v for k, v in tensors.items() if k != QUERY}, tmp_path / shard)
    with pytest.raises(CheckpointError, match=f"{shard} lacks the tensor '{QUERY}'"):
        keras_recbert.load(tmp_path)
    (tmp_path / shard).unlink()
    with pytest.raises(CheckpointError, match=f"{shard} is missing"):
        keras_recbert.load(tmp_path)
    edit_json(index, weight_map={QUERY: "../elsewhere.safetensors"})
    with pytest.raises(CheckpointError, match="Only files beside it are read"):
        keras_recbert.load(tmp_path)
    edit_json(index, weight_map=None)
    with pytest.raises(CheckpointError, match="has no weight_map"):
        keras_recbert.load(tmp_path)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "roberta"}, "model_type must be 'bert'.*'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act must be 'gelu'.*'relu'"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps must be 1e-12.*1e-05"),
        ({"position_embedding_type": "relative_key"}, "must be 'absolute'"),
        ({"is_decoder": True}, "is_decoder must be False"),
        ({"hidden_size": None}, "hidden_size must be a whole number.*missing"),
        ({"hidden_size": "12"}, "hidden_size must be a whole number.*'12'"),
        ({"num_hidden_layers": 0}, "num_hidden_layers must be.*It is 0"),
        ({"num_attention_heads": 5}, "multiple of num_attention_heads.*12 and 5"),
        ({"num_hidden_layers": 3}, "lacks the tensor 'encoder.layer.2.*3 layers"),
    ],
)
def test_configs_that_are_no_plain_bert(folder, changes, message):
    edit_json(folder / "config.json", **changes)
    with pytest.raises(CheckpointError, match=message) as error:
        keras_recbert.load(folder)
    assert "config.json" in str(error.value)


def test_a_config_that_is_missing_or_no_json(folder):
    (folder / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match="config.json is not valid JSON"):
        keras_recbert.load(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(CheckpointError, match="config.json must hold a JSON object"):
        keras_recbert.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(CheckpointError, match="config.json is missing"):
        keras_recbert.load(folder)


def test_others_may_read_the_weights(folder, tmp_path):
    keras_recbert.load(folder).save_huggingface(tmp_path / "out")
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "out").iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]
