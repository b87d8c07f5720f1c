"""Checkpoints that the TensorFlow Model Garden wrote, see tests/golden."""

import re

import numpy as np
import pytest
import tensorflow as tf
from harness import largest_difference
from model_garden_files import assert_official, batch_of, change, of, tensors_of, write

import keras_recbert
from keras_recbert.convert.open_checkpoint import open_checkpoint

LAYOUTS = ("archive", "encoder", "trainer", "tf_hub")
SIZES = {
    "num_layers": 2,
    "hidden_dim": 12,
    "num_heads": 3,
    "intermediate_dim": 20,
    "vocabulary_size": 37,
    "max_sequence_length": 24,
    "num_segments": 2,
}


# What is read -------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_outputs_equal_those_of_the_official_encoder(layout, golden, expected):
    encoder = keras_recbert.build("bert_base", weights=golden / layout, **SIZES)
    assert_official(encoder, expected)
    assert_official(keras_recbert.load(golden / layout), expected)


def test_the_gelu_of_the_model_garden_is_another_one(golden, expected):
    encoder = keras_recbert.load(golden / "archive")
    batch = batch_of(expected)
    real = batch["padding_mask"] == 1
    outputs = encoder(batch)["sequence_output"].numpy()[real]
    difference = largest_difference(outputs, expected["tanh_sequence_output"][real])
    assert 1e-4 < difference < 1e-3


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_are_found_in_every_layout(layout, golden):
    checkpoint = open_checkpoint(golden / layout)
    assert checkpoint.sizes == SIZES
    source = {
        "archive": "bert_config.json",
        "encoder": "the shapes in {}/bert_encoder.ckpt.index",
        "trainer": "params.yaml",
        "tf_hub": "the shapes in {}/variables/variables.index",
    }[layout].format(golden / layout)
    assert checkpoint.sizes_from.endswith(source)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_tensor_is_used_or_reported(layout, golden):
    report = keras_recbert.load(golden / layout).weights_report
    prefix = {"tf_hub": "variables/variables", "trainer": "ckpt-100"}.get(
        layout, f"bert_{'model' if layout == 'archive' else 'encoder'}.ckpt"
    )
    stored = tf.train.list_variables(str(golden / layout / prefix))
    # The object graph, and in a SavedModel `do_lower_case`, are no weights.
    weights = len(stored) - (2 if layout == "tf_hub" else 1)
    assert len(report.used) == len(set(report.used)) == 39
    assert len(report.used) + len(report.unused) == weights
    assert not set(report.used) & set(report.unused)
    assert not report.new
    unused = {
        "archive": "",
        "encoder": "",
        "trainer": r"AdamWeightDecay/.+|bert/.+|global_step|save_counter",
        "tf_hub": r"bert/cls/predictions/.+",
    }[layout]
    assert all(re.fullmatch(unused, name) for name in report.unused)
    assert len(report.unused) == {"trainer": 107, "tf_hub": 5}.get(layout, 0)


@pytest.mark.parametrize(
    ("layout", "lowercase"), [("archive", True), ("tf_hub", False)]
)
def test_vocabulary_comes_along(layout, lowercase, golden):
    checkpoint = open_checkpoint(golden / layout)
    text = (golden / "archive" / "vocab.txt").read_text(encoding="utf-8")
    assert checkpoint.vocabulary == tuple(text.split("\n")[:-1])
    # Of the archive it is guessed; the SavedModel says other than one would guess.
    assert checkpoint.lowercase is lowercase


def test_savedmodel_is_never_loaded(golden, expected, monkeypatch):
    def load(*args, **kwargs):
        raise AssertionError("a SavedModel was loaded")

    monkeypatch.setattr(tf.saved_model, "load", load)
    assert_official(keras_recbert.load(golden / "tf_hub"), expected)


def mid_2020(name):
    return name.replace("self_attention/attention_output", "self_attention_output")


def until_2020(name):
    name = name.replace("transformer/", "encoder/")
    name = name.replace("embeddings/layer_norm", "embedding_postprocessor/layer_norm")
    name = name.replace("position_embedding/embeddings", "position_embeddings/")
    name = re.sub(
        "^(type_embeddings|position_embeddings)/.*", r"embedding_postprocessor/\1", name
    )
    return "bert_model/" + mid_2020(name)


@pytest.mark.parametrize("rename", [mid_2020, until_2020])
@of("archive")
def test_names_of_older_releases_are_read(rename, folder, expected):
    tensors = tensors_of(open_checkpoint(folder))
    renamed = {rename(name): value for name, value in tensors.items()}
    assert len(renamed.keys() - tensors) >= 4
    write(folder / "bert_model.ckpt", renamed)
    assert_official(keras_recbert.load(folder), expected)


@of("archive")
def test_what_an_optimizer_keeps_is_no_second_encoder(folder, expected):
    """Keras's optimizers of today name it `m/<variable>`, in a list."""
    tensors = tensors_of(open_checkpoint(folder))
    moments = [
        tf.Variable(np.full_like(value, np.nan), name=f"m/{name}")
        for name, value in tensors.items()
    ]
    variables = [tf.Variable(value, name=name) for name, value in tensors.items()]
    model = tf.train.Checkpoint(layers=variables)
    optimizer = tf.train.Checkpoint(_variables=moments)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    checkpoint.write(str(folder / "bert_model.ckpt"))
    encoder = keras_recbert.load(folder)
    assert_official(encoder, expected)
    assert len(encoder.weights_report.unused) == 39


@of("archive")
def test_checkpoint_without_a_pooler_is_read(folder):
    def edit(tensors):
        del tensors["pooler_transform/kernel"], tensors["pooler_transform/bias"]

    change(folder, edit)
    with pytest.warns(UserWarning, match="has no pooler"):
        report = keras_recbert.load(folder).weights_report
    assert set(report.new) == {"pooler/kernel", "pooler/bias"}
