"""Encoders that are read at different blocks: sentences here, words there."""

import functools
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import (
    SHRUNK,
    VOCABULARY_SIZE,
    assert_close,
    assert_every_weight_learns,
    gradients,
    randomize,
    token_batch,
)
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.models.backbone import RecBertBackbone
from keras_recbert.tasks.text_classifier import TextClassifier

BATCH = token_batch()
SIZES = {"num_layers": 3, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
FAST = ("transformer", "swish_rnn")  # levels know nothing of the kind of block
NEXT_SENTENCE = {"next_sentence_head/kernel", "next_sentence_head/bias"}
PLAIN = {"sentence_layer": None, "token_layer": None, "concatenate": None}
TWO_LAYERS = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "vocabulary_size": 13}


def make(block="transformer", **arguments):
    keras.utils.set_random_seed(0)
    encoder = RecBertBackbone(
        block=block,
        **{
            **SHRUNK[block],
            "num_layers": 3,
            "vocabulary_size": VOCABULARY_SIZE,
            "max_sequence_length": 24,
            **arguments,
        },
    )
    randomize(encoder)
    return encoder


@functools.cache
def plain_outputs(block="transformer"):
    encoder = make(block)
    return encoder, encoder(BATCH)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=() if block in FAST else pytest.mark.slow)
        for block in SHRUNK
    ],
)
def test_levels_choose_among_the_outputs_of_the_same_encoder(block):
    plain, expected = plain_outputs(block)
    encoder = make(block, sentence_layer=1, token_layer=2)
    assert [w.path for w in encoder.weights] == [w.path for w in plain.weights]
    encoder.set_weights(plain.get_weights())
    outputs = encoder(BATCH)
    layers = expected["encoder_outputs"]
    for output, wanted in zip(outputs["encoder_outputs"], layers, strict=True):
        np.testing.assert_array_equal(output, wanted)
    np.testing.assert_array_equal(outputs["sequence_output"], layers[1])
    pooled = plain.pooler(layers[0][:, 0])
    np.testing.assert_array_equal(outputs["pooled_output"], pooled)
    assert encoder.sequence_dim == encoder.hidden_dim == 12


def test_cls_of_the_sentence_level_stands_behind_each_token():
    encoder = make(sentence_layer=2, token_layer=1, concatenate="cls")
    _, expected = plain_outputs()
    outputs = encoder(BATCH)
    assert encoder.sequence_dim == 24
    sequence, layers = outputs["sequence_output"].numpy(), expected["encoder_outputs"]
    np.testing.assert_array_equal(sequence[..., :12], layers[0])
    for position in range(sequence.shape[1]):
        np.testing.assert_array_equal(sequence[:, position, 12:], layers[1][:, 0])
    assert "next_sentence" not in outputs
    assert encoder.next_sentence_head is None


def test_logits_of_the_next_sentence_head_stand_behind_each_token():
    encoder = make(sentence_layer=1, concatenate="next_sentence")
    outputs = encoder(BATCH)
    assert encoder.sequence_dim == 14
    logits = encoder.next_sentence_head(outputs["pooled_output"])
    np.testing.assert_array_equal(outputs["next_sentence"], logits)
    sequence = outputs["sequence_output"].numpy()
    np.testing.assert_array_equal(sequence[..., :12], outputs["encoder_outputs"][2])
    for position in range(sequence.shape[1]):
        np.testing.assert_array_equal(sequence[:, position, 12:], logits)
    # The head is all that is new.
    assert encoder.count_params() == make().count_params() + 2 * 12 + 2
    assert_every_weight_learns(encoder, BATCH)


@pytest.mark.parametrize("concatenate", ["cls", "next_sentence"])
def test_bfloat16_keeps_its_dtypes(concatenate):
    encoder = make(concatenate=concatenate, sentence_layer=1, dtype="mixed_bfloat16")
    outputs = encoder(BATCH)
    assert outputs["sequence_output"].dtype == "bfloat16"
    if concatenate == "next_sentence":
        assert outputs["next_sentence"].dtype == "float32"


def test_checkpointed_gradients_are_the_same():
    levels = {"sentence_layer": 1, "token_layer": 2, "concatenate": "cls"}
    plain = make(dropout=0.0, **levels)
    checkpointed = make(dropout=0.0, gradient_checkpointing=True, **levels)
    checkpointed.set_weights(plain.get_weights())
    found, wanted = (
        gradients(one, one.trainable_weights, BATCH, training=True)
        for one in (checkpointed, plain)
    )
    for gradient, expected in zip(found, wanted, strict=True):
        assert_close(gradient, expected, 1e-4)


def test_layers_beside_are_those_that_an_output_does_not_read():
    def names(encoder, *outputs):
        found = encoder.layers_beside(*(encoder.output[name] for name in outputs))
        return [layer.name for layer in found]

    assert names(make(), "pooled_output") == []
    assert names(make(), "sequence_output") == ["pool_token", "pooler"]
    low = make(sentence_layer=1, token_layer=2)
    assert names(low, "pooled_output") == ["block_1", "block_2"]
    assert names(low, "sequence_output", "pooled_output") == ["block_2"]
    joined = make(sentence_layer=3, token_layer=1, concatenate="next_sentence")
    assert names(joined, "sequence_output") == []
    assert names(joined, "pooled_output") == [
        "next_sentence_head",
        "concatenate_sentence",
    ]


# As it was ----------------------------------------------------------------------


def test_arguments_of_before_there_were_levels_build_the_same_encoder():
    encoder, expected = plain_outputs()
    config = encoder.get_config()
    assert {key: config.pop(key) for key in PLAIN} == PLAIN
    old = RecBertBackbone.from_config(config)
    old.set_weights(encoder.get_weights())
    for output, wanted in zip(
        tf.nest.flatten(old(BATCH)), tf.nest.flatten(expected), strict=True
    ):
        np.testing.assert_array_equal(output, wanted)


def test_weights_of_a_plain_encoder_fit_one_with_levels(tmp_path):
    """Files go by the order of layers, which levels leave as it is."""
    plain, _ = plain_outputs()
    plain.save_weights(tmp_path / "plain.weights.h5")
    encoder = make(sentence_layer=1, token_layer=2)
    encoder.set_weights([0.0 * weight for weight in encoder.get_weights()])
    encoder.load_weights(tmp_path / "plain.weights.h5")
    for weight, wanted in zip(encoder.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), wanted.numpy())


# What is made of them -------------------------------------------------------------


@pytest.mark.parametrize(
    ("pooling", "levels", "resting"),
    [
        ("first", {"sentence_layer": 1}, "block_1"),
        ("mean", {"sentence_layer": 1, "concatenate": "cls"}, "pooler"),
        ("mean", {"token_layer": 1}, "pooler, block_1"),
        ("mean", {"concatenate": "next_sentence"}, ""),
        ("first", {"concatenate": "next_sentence"}, "next_sentence_head"),
    ],
)
def test_classifier_trains_what_it_reads(pooling, levels, resting):
    model = tiny_model(num_layers=2, pooling=pooling, dropout=0.0, **levels)
    for layer in model.backbone.layers:
        if layer.weights:
            assert bool(layer.trainable_weights) == (layer.name not in resting), layer
    randomize(model)
    batch = token_batch()
    batch["token_ids"] %= model.backbone.config["vocabulary_size"]
    assert_every_weight_learns(model, batch)
    assert model(batch).shape == (3, 2)


@pytest.mark.slow
def test_classifier_on_a_low_level_fits_without_a_warning(tmp_path):
    model = tiny_model(num_layers=2, sentence_layer=1, token_layer=1)
    texts, labels = reviews()
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Gradients do not exist")
        model.fit(texts, labels, epochs=1, verbose=0)
    model.export_savedmodel(tmp_path / "export")
    served = tf.saved_model.load(str(tmp_path / "export"))
    scores = served.signatures["serving_default"](tf.constant(texts[:3]))["scores"]
    expected = tf.nn.softmax(model.predict(texts[:3], verbose=0))
    assert_close(scores, expected, 1e-5)


@pytest.mark.parametrize("kind", ["keras", "preset"])
def test_levels_travel_with_a_file(tmp_path, kind):
    levels = {"sentence_layer": 2, "token_layer": 1, "concatenate": "next_sentence"}
    encoder = make("swish_rnn", **levels)
    path = tmp_path / f"encoder.{kind}"
    if kind == "keras":
        encoder.save(path)
    else:
        encoder.save_preset(path)
    loaded = keras_recbert.load(path)
    assert {key: loaded.config[key] for key in levels} == levels
    for output, wanted in zip(
        tf.nest.flatten(loaded(BATCH)), tf.nest.flatten(encoder(BATCH)), strict=True
    ):
        np.testing.assert_array_equal(output, wanted)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels") / "preset"
    levels = {"sentence_layer": 1, "token_layer": 2, "concatenate": "next_sentence"}
    encoder = make(num_layers=3, **levels)
    encoder.save_preset(folder)
    return folder, encoder, levels


def test_fine_tuning_reads_what_the_preset_says(preset):
    folder, encoder, levels = preset
    model = keras_recbert.build("bert_tiny", task="classifier", weights=folder, **SIZES)
    backbone = model.backbone
    assert {key: backbone.config[key] for key in levels} == levels
    assert not backbone.weights_report.new
    for key in ("pooled_output", "sequence_output", "next_sentence"):
        assert_close(backbone(BATCH)[key], encoder(BATCH)[key], 0.0)


def test_levels_said_aloud_replace_those_of_the_preset(preset):
    folder, encoder, _ = preset
    other = {"sentence_layer": None, "token_layer": 1, "concatenate": "cls"}
    built = keras_recbert.build("bert_tiny", weights=folder, **SIZES, **other)
    assert {key: built.config[key] for key in other} == other
    assert set(built.weights_report.unused) == NEXT_SENTENCE
    outputs, expected = built(BATCH), encoder(BATCH)
    layers = expected["encoder_outputs"]
    assert_close(outputs["sequence_output"][..., :12], layers[0], 0.0)
    assert_close(outputs["pooled_output"], encoder.pooler(layers[2][:, 0]), 0.0)


def test_fewer_layers_than_a_level_of_the_preset(preset):
    folder, _, _ = preset
    with pytest.raises(
        ValueError, match="`token_layer` must be a block of.*from 1 to 1"
    ):
        keras_recbert.build("bert_tiny", weights=folder, **{**SIZES, "num_layers": 1})


def test_plain_encoder_starts_one_with_a_next_sentence_head(tmp_path):
    make().save_preset(tmp_path / "preset")
    built = keras_recbert.build(
        "bert_tiny",
        weights=tmp_path / "preset",
        **SIZES,
        sentence_layer=1,
        concatenate="next_sentence",
    )
    assert set(built.weights_report.new) == NEXT_SENTENCE
    assert_close(built(BATCH)["encoder_outputs"][2], make()(BATCH)["sequence_output"])


# Errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"sentence_layer": 13, "num_layers": 12},
            "`sentence_layer` must be a block of the encoder, from 1 to 12. Received: "
            "sentence_layer=13, num_layers=12.",
        ),
        ({"token_layer": 3}, "`token_layer` must be a block.*from 1 to 2. Received: t"),
        ({"sentence_layer": 0}, "`sentence_layer` must be a whole number of at least"),
        ({"token_layer": 1.0}, "Received: token_layer=1.0"),
        ({"token_layer": True}, "Received: token_layer=True"),
        (
            {"concatenate": "nsp"},
            "`concatenate` must be one of None, 'cls', 'next_sentence'. Received: "
            "concatenate='nsp'.",
        ),
        (
            {"concatenate": "cls", "causal": True},
            "would show each of them what follows. Received: concatenate='cls', causal",
        ),
    ],
)
def test_impossible_levels(arguments, message):
    with pytest.raises(ValueError, match=message):
        keras_recbert.build("bert_tiny", **{**TWO_LAYERS, **arguments})


def test_hugging_face_has_no_levels(tmp_path):
    encoder = make(sentence_layer=1)
    with pytest.raises(ValueError, match="'transformer' blocks, sentence_layer=1. `s"):
        encoder.save_huggingface(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_causal_encoder_pools_the_last_token_of_a_lower_block():
    encoder = make(causal=True, sentence_layer=1)
    outputs = encoder(BATCH)
    last = BATCH["padding_mask"].sum(axis=1) - 1
    hidden = outputs["encoder_outputs"][0].numpy()[np.arange(3), last]
    assert_close(outputs["pooled_output"], encoder.pooler(hidden), 1e-6)


def test_a_classifier_of_an_encoder_with_levels_is_saved_whole(tmp_path):
    encoder = make(sentence_layer=1, token_layer=2, concatenate="cls")
    model = TextClassifier(encoder, pooling="mean")
    randomize(model, seed=3)
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    assert_close(loaded(BATCH), model(BATCH), 0.0)
    assert model.head.dense.kernel.shape == (24, 2)
