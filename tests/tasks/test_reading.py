"""Heads that read an encoder at different blocks: sentences here, words there."""

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
    randomize,
    set_seed,
    token_batch,
)
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.heads.reading import Reading, choose_reading
from keras_recbert.models.encoder_outputs import EncoderOutputs, unread_layers
from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.tasks.text_classifier import TextClassifier

BATCH = token_batch()
SIZES = {"num_layers": 3, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
FAST = ("transformer", "swish_rnn")  # readings know nothing of the kind of block
NEXT_SENTENCE = {"next_sentence/kernel", "next_sentence/bias"}
TWO_LAYERS = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "vocabulary_size": 13}


def noted(sentence=None, tokens=None, concatenate=None):
    """What an encoder notes of a pre-training on BERT's two objectives."""
    return {
        "masked_lm": {"layer": tokens, "concatenate": concatenate},
        "next_sentence": {"layer": sentence, "concatenate": None},
    }


def make(block="transformer", **arguments):
    set_seed(0)
    encoder = RecBertEncoder(
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


def read(encoder, reading):
    """What a head reads of an encoder, as an array."""
    rows = reading.rows(EncoderOutputs(encoder))
    return keras.Model(encoder.input, rows)(BATCH).numpy()


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=() if block in FAST else pytest.mark.slow)
        for block in SHRUNK
    ],
)
def test_layers_choose_among_the_outputs_of_the_encoder(block):
    encoder, expected = plain_outputs(block)
    layers = [output.numpy() for output in expected["encoder_outputs"]]
    mask = BATCH["padding_mask"][..., None]
    for layer in (1, 2, 3, None):
        hidden = layers[-1 if layer is None else layer - 1]
        assert_close(read(encoder, Reading(None, layer)), hidden, 1e-6)
        pooled = encoder.pooler(hidden[:, 0])
        assert_close(read(encoder, Reading("first", layer)), pooled, 1e-6)
        mean = (hidden * mask).sum(1) / np.maximum(mask.sum(1), 1)
        assert_close(read(encoder, Reading("mean", layer)), mean, 1e-5)


def test_cls_of_the_sentence_layer_stands_behind_each_token():
    encoder, expected = plain_outputs()
    layers = expected["encoder_outputs"]
    rows = read(encoder, Reading(None, 1, "cls", 2))
    assert rows.shape[-1] == 24
    assert_close(rows[..., :12], layers[0], 1e-6)
    for position in range(rows.shape[1]):
        assert_close(rows[:, position, 12:], layers[1][:, 0], 1e-6)
    assert encoder.next_sentence_head is None


def test_logits_of_the_next_sentence_head_stand_behind_each_token():
    encoder = make(pretrained_heads=noted(1, None, "next_sentence"))
    outputs = encoder(BATCH)
    rows = read(encoder, choose_reading(encoder, None))
    pooled = encoder.pooler(outputs["encoder_outputs"][0][:, 0])
    logits = encoder.next_sentence_head(pooled)
    assert_close(rows[..., :12], outputs["encoder_outputs"][2], 1e-6)
    for position in range(rows.shape[1]):
        assert_close(rows[:, position, 12:], logits, 1e-6)
    # The head is all that is new.
    assert encoder.count_params() == make().count_params() + 2 * 12 + 2


@pytest.mark.parametrize("concatenate", ["cls", "next_sentence"])
def test_bfloat16_keeps_its_dtypes(concatenate):
    heads = noted(1, None, concatenate)
    encoder = make(pretrained_heads=heads, dtype="mixed_bfloat16")
    outputs = EncoderOutputs(encoder)
    assert choose_reading(encoder, None).rows(outputs).dtype == "bfloat16"
    if concatenate == "next_sentence":
        assert outputs.next_sentence(1).dtype == "float32"


def test_unread_layers_are_those_that_no_head_reads():
    def names(encoder, *readings):
        found = unread_layers(encoder, readings)
        return [layer.name for layer in found if layer.weights]

    first, mean = Reading("first"), Reading("mean")
    assert names(make(), first) == []
    assert names(make(), mean) == ["pooler"]
    assert names(make(), Reading("first", 1)) == ["block_1", "block_2"]
    assert names(make(), Reading("mean", 2), Reading("first", 1)) == ["block_2"]
    joined = make(pretrained_heads=noted(3, 1, "next_sentence"))
    assert names(joined, Reading("mean", 1, "next_sentence")) == []
    assert names(joined, first) == ["next_sentence"]


# Which a head chooses -------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "pooling", "expected"),
    [
        (None, "first", Reading("first")),
        (None, "mean", Reading("mean")),
        (noted(1), "first", Reading("first", 1)),
        (noted(1), "mean", Reading("mean")),
        (noted(1, 2), None, Reading(None, 2)),
        (noted(2, 1, "cls"), "mean", Reading("mean", 1, "cls", 2)),
        (noted(None, 1, "cls"), "mean", Reading("mean", 1, "cls")),
        (noted(2, 1, "cls"), "first", Reading("first", 2)),
        (
            {"bigram_shift": {"layer": 2, "concatenate": None}},
            "mean",
            Reading("mean", 2),
        ),
        # The last block by its number is the last block.
        (noted(3, 3), "first", Reading("first")),
    ],
)
def test_heads_read_where_those_of_the_pretraining_did(heads, pooling, expected):
    encoder = make(pretrained_heads=heads)
    assert choose_reading(encoder, pooling) == expected


def test_arguments_replace_what_the_pretraining_had():
    encoder = make(pretrained_heads=noted(1, 2, "cls"))
    choose = functools.partial(choose_reading, encoder)
    assert choose("first", layer=3) == Reading("first")
    assert choose("mean", layer=1) == Reading("mean", 1, "cls", 1)
    assert choose("mean", concatenate="none") == Reading("mean", 2)
    expected = Reading("mean", 2, "next_sentence", 1)
    assert choose("mean", concatenate="next_sentence") == expected


# What is made of them -------------------------------------------------------------


@pytest.mark.parametrize(
    ("pooling", "arguments", "resting"),
    [
        ("first", {"layer": 1}, "block_1"),
        ("mean", {"concatenate": "cls"}, "pooler"),
        ("mean", {"layer": 1}, "pooler, block_1"),
        ("mean", {"concatenate": "next_sentence"}, ""),
    ],
)
def test_classifier_trains_what_it_reads(pooling, arguments, resting):
    model = tiny_model(num_layers=2, pooling=pooling, dropout=0.0, **arguments)
    for layer in model.encoder.layers:
        if layer.weights:
            assert bool(layer.trainable_weights) == (layer.name not in resting), layer
    randomize(model)
    batch = token_batch()
    batch["token_ids"] %= model.encoder.config["vocabulary_size"]
    assert_every_weight_learns(model, batch)
    assert model(batch).shape == (3, 2)


@pytest.mark.slow
def test_classifier_on_a_low_layer_fits_without_a_warning(tmp_path):
    model = tiny_model(num_layers=2, layer=1)
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
def test_what_the_encoder_notes_travels_with_a_file(tmp_path, kind):
    heads = noted(2, 1, "next_sentence")
    encoder = make("swish_rnn", pretrained_heads=heads)
    path = tmp_path / f"encoder.{kind}"
    if kind == "keras":
        encoder.save(path)
    else:
        encoder.save_preset(path)
    loaded = keras_recbert.load(path)
    assert loaded.pretrained_heads == heads
    reading = choose_reading(encoder, "mean")
    np.testing.assert_array_equal(read(loaded, reading), read(encoder, reading))


@pytest.mark.parametrize("kind", ["keras", "preset"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"pooling": "mean"},
        {"pooling": "first"},
        {"pooling": "mean", "layer": 3, "concatenate": "none"},
        {"pooling": "mean", "concatenate": "next_sentence"},
    ],
    ids=str,
)
def test_classifier_is_saved_whole(tmp_path, kind, arguments):
    encoder = make(pretrained_heads=noted(1, 2, "cls"))
    model = TextClassifier(encoder, **arguments)
    randomize(model, seed=3)
    path = tmp_path / f"model.{kind}"
    if kind == "keras":
        model.save(path)
    else:
        model.save_preset(path)
    loaded = keras_recbert.load(path)
    assert loaded.head.reading == model.head.reading
    assert [w.trainable for w in loaded.weights] == [w.trainable for w in model.weights]
    assert_close(loaded(BATCH), model(BATCH), 0.0)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading") / "preset"
    encoder = make(pretrained_heads=noted(1, 2, "next_sentence"))
    encoder.save_preset(folder)
    return folder, encoder


def test_fine_tuning_reads_what_the_preset_says(preset):
    folder, encoder = preset
    model = keras_recbert.build("bert_tiny", task="classifier", weights=folder, **SIZES)
    assert model.head.reading == Reading("mean", 2, "next_sentence", 1)
    assert not model.encoder.weights_report.new
    rows = read(model.encoder, model.head.reading)
    assert_close(rows, read(encoder, model.head.reading), 0.0)


def test_what_is_noted_can_be_replaced(preset):
    folder, _ = preset
    other = noted(None, 1, "cls")
    built = keras_recbert.build(
        "bert_tiny", weights=folder, **SIZES, pretrained_heads=other
    )
    assert built.pretrained_heads == other
    assert set(built.weights_report.unused) == NEXT_SENTENCE


def test_fewer_layers_than_the_preset_was_read_at(preset):
    folder, _ = preset
    message = "pre-trained with the head of masked_lm at block 2, which must be from 1"
    with pytest.raises(ValueError, match=message):
        keras_recbert.build("bert_tiny", weights=folder, **{**SIZES, "num_layers": 1})


def test_plain_encoder_starts_one_with_a_next_sentence_head(tmp_path):
    make().save_preset(tmp_path / "preset")
    heads = noted(1, None, "next_sentence")
    built = keras_recbert.build(
        "bert_tiny", weights=tmp_path / "preset", **SIZES, pretrained_heads=heads
    )
    assert set(built.weights_report.new) == NEXT_SENTENCE
    assert_close(built(BATCH)["encoder_outputs"][2], make()(BATCH)["sequence_output"])


def test_causal_encoder_pools_the_last_token_of_a_lower_block():
    encoder = make(causal=True)
    last = BATCH["padding_mask"].sum(axis=1) - 1
    hidden = encoder(BATCH)["encoder_outputs"][0].numpy()[np.arange(3), last]
    assert_close(read(encoder, Reading("first", 1)), encoder.pooler(hidden), 1e-6)


# Errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"layer": 13},
            r"`layer` must be from 0 \(the embeddings\) to 2 .*Received: layer=13.",
        ),
        ({"layer": 1.0}, "Received: layer=1.0"),
        ({"layer": True}, "Received: layer=True"),
        (
            {"concatenate": "nsp"},
            "`concatenate` must be one of 'none', 'cls', 'next_sentence', or None for "
            "what the encoder was pre-trained with. Received: concatenate='nsp'.",
        ),
        (
            {"concatenate": "cls", "causal": True},
            "would show each of them what follows. Received: concatenate='cls', causal",
        ),
        (
            {"concatenate": "cls", "pooling": "first"},
            "reads the first one alone. Received: concatenate='cls'. Leave it out, or",
        ),
        (
            {"pretrained_heads": {"masked_lm": 3}},
            "`pretrained_heads` must be a dict of names .*{'masked_lm': 3}",
        ),
        (
            {"pretrained_heads": noted(1, 2, "nsp")},
            "must be one of None, 'cls', 'next_sentence'.*masked_lm with concatenate=",
        ),
        (
            {"pretrained_heads": noted(3)},
            "head of next_sentence at block 3, which must be from 1 to 2. Received: nu",
        ),
    ],
)
def test_impossible_readings(arguments, message):
    with pytest.raises(ValueError, match=message):
        keras_recbert.build(
            "bert_tiny", task="classifier", **{**TWO_LAYERS, **arguments}
        )


def test_encoder_of_one_output_is_read_at_its_last_block():
    encoder = make()
    del encoder.output["encoder_outputs"]
    assert choose_reading(encoder, "first", layer=3) == Reading("first")
    message = "gives the output of its last block only.*Received: layer=2"
    with pytest.raises(ValueError, match=message):
        choose_reading(encoder, "first", layer=2)


@pytest.mark.parametrize(
    ("layer", "pooling"), [(None, "first"), (-1, "first"), (2, "mean"), (0, "mean")]
)
def test_a_pooler_reads_the_last_block_by_default(layer, pooling):
    encoder = make()
    encoder.started_from = "bert"
    assert TextClassifier(encoder, layer=layer).pooling == pooling
    assert TextClassifier(encoder, layer=layer, pooling="mean").pooling == "mean"


def test_hugging_face_reads_the_last_block(tmp_path):
    encoder = make(pretrained_heads=noted(1))
    message = "'transformer' blocks, pretrained_heads=.*`s"
    with pytest.raises(ValueError, match=message):
        encoder.save_huggingface(tmp_path / "folder")
    model = TextClassifier(encoder, pooling="first")
    with pytest.raises(ValueError, match="Received: .*pooling='first', layer=1."):
        model.save_huggingface(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
    make(pretrained_heads=noted()).save_huggingface(tmp_path / "folder")
