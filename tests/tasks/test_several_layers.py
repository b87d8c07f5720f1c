"""Heads that read several layers of an encoder, and encoders that are not trained."""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, assert_every_weight_learns, randomize
from toy_texts import reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.heads.reading import Reading
from keras_recbert.models.encoder_outputs import EncoderOutputs
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "samples"
WORDS = [["a", "good", "film"], ["bad"], ["very", "dull", "story", "."]]
TAGS = [["O", "B-x", "O"], ["B-x"], ["O", "B-x", "I-x", "O"]]
NAMES = ["O", "B-x", "I-x"]
TEXTS, LABELS = reviews(8)


def tagger(name="bert_tiny", **arguments):
    arguments = {"label_names": NAMES, "num_layers": 3, "dropout": 0.0, **arguments}
    return tiny_model(name, task="token_classifier", **arguments)


def features(model, texts=WORDS):
    packed = model.preprocessor(texts)
    return {name: packed[name].numpy() for name in model.input}


def layers_of(encoder, ids):
    """Outputs of the embeddings and of each block, as arrays."""
    below = encoder.embeddings(ids["token_ids"], ids["segment_ids"])
    return [one.numpy() for one in (below, *encoder(ids)["encoder_outputs"])]


@pytest.fixture(scope="module")
def encoder():
    """One that no test changes; its blocks differ."""
    model = tagger()
    randomize(model)
    return model.encoder


# What is read ---------------------------------------------------------------------


def test_what_is_read_is_made_of_the_outputs_of_the_layers(encoder):
    ids = features(tagger())
    hidden = layers_of(encoder, ids)
    for layer, combine, expected in (
        (0, None, hidden[0]),
        (2, None, hidden[2]),
        ((2,), "sum", hidden[2]),
        ((0, 2), "sum", hidden[0] + hidden[2]),
        ((1, 3), "concatenate", np.concatenate([hidden[1], hidden[3]], axis=-1)),
        ((1, 2, 3), "weighted_sum", np.mean(hidden[1:], axis=0)),  # as it starts
    ):
        # Called on other inputs, and in the graph of the encoder itself.
        inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ids}
        for given in (inputs, None):
            outputs = EncoderOutputs(encoder, given)
            rows = Reading(None, layer, combine=combine).rows(outputs)
            found = keras.Model(outputs.inputs, rows)(ids)
            assert_close(found, expected, 1e-5, f"{layer}, {combine}")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"layer": -1}, Reading("mean")),
        ({"layer": -2}, Reading("mean", 2)),
        ({"layer": -4}, Reading("mean", 0)),
        ({"layer": [-2, 1]}, Reading("mean", (2, 1), combine="concatenate")),
        ({"layer": "all"}, Reading("mean", (1, 2, 3), combine="concatenate")),
        (
            {"layer": "all", "combine": "weighted_sum", "concatenate": "cls"},
            Reading("mean", (1, 2, 3), "cls", combine="weighted_sum"),
        ),
    ],
    ids=str,
)
def test_what_a_user_names(arguments, expected):
    assert tiny_model(num_layers=3, **arguments).head.reading == expected


def test_several_layers_of_a_pretrained_bert_are_read_by_their_mean(tmp_path):
    """Its own pooling is that of one block."""
    tiny_model(num_layers=2).encoder.save_huggingface(tmp_path / "bert")
    arguments = {"task": "classifier", "weights": tmp_path / "bert", "num_heads": 2}
    sizes = {"num_layers": 2, "hidden_dim": 18, "max_sequence_length": 64}
    for layer, pooling in ((None, "first"), ("all", "mean"), (0, "mean")):
        more = {**arguments, **sizes, "layer": layer}
        model = keras_recbert.build("bert_tiny", **more)
        assert model.head.reading.pooling == model.pooling == pooling
        assert fine_tuning_defaults(model.encoder).pooling == "first"
        assert model.learning_rate == 3e-4
    features_only = keras_recbert.build("bert_tiny", **more, freeze="encoder")
    assert features_only.learning_rate == 3e-3


# What a user types ------------------------------------------------------------------


def test_a_user_fits_and_asks(eager_steps):
    model = tagger(layer="all")
    before = {weight.path: weight.numpy() for weight in model.weights}
    model.fit(WORDS, TAGS, verbose=0)
    still = {
        weight.path
        for weight in model.weights
        if np.array_equal(weight.numpy(), before[weight.path])
    }
    assert still == {"pooler/kernel", "pooler/bias"}
    assert model.predict(WORDS, verbose=0)["tags"].shape == (3, 4)


def test_the_command(tmp_path, eager_steps, capsys):
    line = "finetune --task wnut17 --model bert_tiny --layer -2 -1 --vocabulary-size 60"
    line += f" --data-dir {SAMPLES / 'wnut17'} --output-dir {tmp_path / 'run'}"
    line += " --epochs 1 --overrides num_layers 2 hidden_dim 12 num_heads 2 --no-export"
    assert main(line.split()) == 0, capsys.readouterr().err
    config = json.loads((tmp_path / "run" / "results.json").read_text())["config"]
    assert (config["layer"], config["combine"]) == ([-2, -1], None)
    model = keras_recbert.load(tmp_path / "run" / "preset")
    assert model.head.reading == Reading(None, (1, 2), combine="concatenate")


# What travels -----------------------------------------------------------------------


def test_a_weighted_sum_travels_with_every_file(tmp_path):
    model = tagger(layer=[0, -1], combine="weighted_sum", num_layers=2)
    randomize(model)
    ids = features(model)
    expected = model(ids)
    assert_every_weight_learns(model, ids)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        assert again.head.reading == Reading(None, (0, 2), combine="weighted_sum")
        assert_close(again(ids), expected, 0.0, name)
        trained = [weight.path for weight in again.trainable_weights]
        assert trained == [weight.path for weight in model.trainable_weights]
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures["words"]
    answers = served(words=tf.ragged.constant(WORDS).to_tensor())
    scores = np.max(tf.nn.softmax(expected), axis=-1)
    for row, words in enumerate(WORDS):  # each word is one word piece, behind [CLS]
        own = scores[row, 1 : len(words) + 1]
        assert_close(answers["scores"][row, : len(words)], own)


def test_each_of_several_heads_has_weights_of_its_own(tmp_path):
    one = {"task": "regressor", "layer": [0, 1], "combine": "weighted_sum"}
    heads = {"stars": one, "tone": "classifier", "low": {**one, "layer": 1}}
    shared = {"layer": "all", "combine": "weighted_sum"}
    with pytest.raises(ValueError, match="`combine` is of several layers"):
        tiny_model(task=heads, num_layers=2, **shared)
    del heads["low"]["combine"]
    model = tiny_model(task=heads, num_layers=2, **shared)
    assert [head.reading for head in model.heads.values()] == [
        Reading("mean", (0, 1), combine="weighted_sum"),
        Reading("mean", (1, 2), combine="weighted_sum"),
        Reading("mean", 1),
    ]
    mixes = [weight for weight in model.weights if "layer_logits" in weight.path]
    assert len({weight.path for weight in mixes}) == len(mixes) == 2
    randomize(model)
    ids = features(model, TEXTS)
    for name, save in (("model.keras", model.save), ("preset", model.save_preset)):
        save(tmp_path / name)
        again = keras_recbert.load(tmp_path / name)
        for head, expected in model(ids).items():
            assert_close(again(ids)[head], expected, 0.0, f"{head} of {name}")


# An encoder that is not trained -----------------------------------------------------


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny"])
def test_nothing_is_computed_backwards_in_a_frozen_encoder(name):
    ids = {}
    for freeze, expected in (
        (None, {"block_2", "block_1", "block_0", "embeddings"}),
        ("encoder", set()),
    ):
        model = tagger(name, layer=[0, 3], combine="sum", freeze=freeze)
        passed = []
        for layer in (model.encoder.embeddings, *model.encoder.blocks):
            watch_gradients(layer, passed)
        ids = ids or features(model)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(ids, training=True) ** 2)
        weights = [weight.value for weight in model.trainable_weights]
        assert None not in tape.gradient(loss, weights)
        assert set(passed) == expected, freeze
    model.encoder.trainable = True  # as users do after some epochs
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(ids, training=True) ** 2)
    weights = [weight.value for weight in model.encoder.blocks[0].weights]
    assert None not in tape.gradient(loss, weights)


def watch_gradients(layer, passed):
    """Notes the name of a layer when a gradient reaches what it gives."""
    call = layer.call

    @tf.custom_gradient
    def noted(x):
        def backward(gradient):
            passed.append(layer.name)
            return gradient

        return tf.identity(x), backward

    layer.call = lambda *args, **kwargs: noted(call(*args, **kwargs))


# Errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": [1, 7]}, "or several of them, or 'all'. Received: layer=[1, 7]"),
        ({"layer": "last"}, "to -3; or several of them, or 'all'. Received: layer='la"),
        ({"layer": []}, "`layer` names no layer. Received: layer=[]."),
        ({"combine": "sum"}, "`combine` is of several layers. Received: combine='sum'"),
        ({"layer": 1, "combine": "sum"}, "Received: combine='sum', layer=1. Name them"),
        (
            {"layer": "all", "combine": "mean"},
            "`combine` must be one of 'concatenate', 'sum', 'weighted_sum'. Received: ",
        ),
        (
            {"layer": "all", "pooling": "first"},
            "of one block, from 1. Received: pooling='first', layer='all'",
        ),
        ({"layer": 0, "pooling": "first"}, "Use pooling='mean', or one block."),
    ],
    ids=str,
)
def test_wrong_layers_are_told(arguments, message):
    with pytest.raises(ValueError) as error:
        tiny_model(num_layers=2, **arguments)
    assert message in str(error.value)
