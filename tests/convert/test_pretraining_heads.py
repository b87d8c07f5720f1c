"""A pretrainer that goes on from a checkpoint with the heads of its pre-training."""

import json

import numpy as np
import pytest
import tensorflow as tf
from foreign_berts import (
    PIECES,
    SIZES,
    edit_tensors,
    transformers_bert,
    write_huggingface_folder,
)
from harness import assert_close, token_batch

import keras_recbert
from keras_recbert.convert.checkpoint import CheckpointError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

POSITIONS = np.array([[5, 1, 8], [2, 6, 0], [0, 0, 0]], "int32")
OWN = {key: value for key, value in SIZES.items() if key != "vocabulary_size"}


@pytest.fixture(scope="module")
def theirs():
    return transformers_bert("BertForPreTraining", layer_norm_eps=1e-12)


@pytest.fixture
def folder(theirs, tmp_path):
    write_huggingface_folder(tmp_path, theirs)
    return tmp_path


def build(folder, **arguments):
    arguments = {**OWN, **arguments}
    return keras_recbert.build(
        "bert_tiny", task="pretrainer", weights=folder, **arguments
    )


def assert_same_logits(ours, theirs):
    x = token_batch()
    x["token_ids"] %= len(PIECES)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(x["token_ids"]).long(),
            token_type_ids=torch.tensor(x["segment_ids"]).long(),
            attention_mask=torch.tensor(x["padding_mask"]).long(),
        )
    found = ours({**x, "mask_positions": POSITIONS})
    assert_close(found["next_sentence"], expected.seq_relationship_logits, 1e-5)
    logits = expected.prediction_logits.numpy()
    wanted = np.take_along_axis(logits, POSITIONS[..., None], axis=1)
    assert wanted.shape == (3, 3, len(PIECES))
    assert_close(found["masked_lm"], wanted, 1e-5)


def test_logits_are_those_of_transformers(folder, theirs):
    ours = build(folder)
    report = ours.encoder.weights_report
    assert not report.new
    assert not [name for name in report.unused if "decoder" not in name]
    assert report.copied["masked_lm/norm/gamma"] == (
        "cls.predictions.transform.LayerNorm.weight",
    )
    assert ours.count_params() == sum(p.numel() for p in theirs.parameters())
    assert_same_logits(ours, theirs)


def test_names_of_2018(folder, theirs):
    """`LayerNorm.gamma`, as the files of bert-base-uncased have it."""

    def rename(tensors):
        for name in list(tensors):
            if "LayerNorm" in name:
                old = name.replace(".weight", ".gamma").replace(".bias", ".beta")
                tensors[old] = tensors.pop(name)

    edit_tensors(folder / "model.safetensors", rename)
    ours = build(folder)
    assert not ours.encoder.weights_report.new
    assert_same_logits(ours, theirs)


def test_heads_of_google_research(theirs, tmp_path):
    tensors = {}
    heads = {
        "cls.predictions.bias": "cls/predictions/output_bias",
        "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
        "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    }
    for name, value in theirs.state_dict().items():
        value = value.numpy()
        if "decoder" in name:
            continue
        if name in heads:
            tensors[heads[name]] = value
            continue
        if name.endswith("_embeddings.weight"):
            name = name.removesuffix(".weight")
        elif "LayerNorm" in name:
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        elif name.endswith(".weight"):
            name, value = name.removesuffix("weight") + "kernel", value.T
        tensors[name.replace("layer.", "layer_").replace(".", "/")] = value
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name, initializer=value)
            for name, value in tensors.items()
        }
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(variables)
        prefix = str(tmp_path / "bert_model.ckpt")
        saver.save(session, prefix, write_meta_graph=False, write_state=False)
    config = {
        "hidden_size": SIZES["hidden_dim"],
        "num_hidden_layers": SIZES["num_layers"],
        "num_attention_heads": SIZES["num_heads"],
        "intermediate_size": SIZES["intermediate_dim"],
        "vocab_size": SIZES["vocabulary_size"],
        "max_position_embeddings": SIZES["max_sequence_length"],
        "type_vocab_size": SIZES["num_segments"],
        "hidden_act": "gelu",
    }
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    ours = build(tmp_path, vocabulary=PIECES)
    report = ours.encoder.weights_report
    assert not report.new
    assert not report.unused
    assert_same_logits(ours, theirs)


@pytest.mark.parametrize(
    ("objectives", "sizes", "new"),
    [
        (
            {"masked_lm": None, "next_sentence": {"layer": 1}},
            {},
            {"next_sentence"},
        ),
        ({"masked_lm": {"layer": 1}, "next_sentence": None}, {}, {"masked_lm"}),
        (
            {"masked_lm": {"concatenate": "cls"}, "next_sentence": None},
            {},
            {"masked_lm"},
        ),
        (
            {"masked_lm": {"concatenate": "next_sentence"}, "next_sentence": None},
            {},
            {"masked_lm"},
        ),
        (
            {"masked_lm": None, "next_sentence": None},
            {"num_layers": 1},
            {"masked_lm", "next_sentence"},
        ),
    ],
)
def test_heads_that_read_something_else_start_anew(folder, objectives, sizes, new):
    model = build(folder, objectives=objectives, **sizes)
    report = model.encoder.weights_report
    assert {path.split("/")[0] for path in report.new} == new


def test_part_of_a_head(folder):
    edit_tensors(
        folder / "model.safetensors",
        lambda tensors: tensors.pop("cls.predictions.transform.dense.bias"),
    )
    message = "lacks the tensor 'cls.predictions.transform.dense.bias'"
    with pytest.raises(CheckpointError, match=message):
        build(folder)
