"""LoRA adapters: what they start from, what learns, what is saved."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import SHRUNK, assert_close, largest_difference
from partly_trained import KINDS, LABELS, RATE, TEXTS, ids, moved, small, train, values

import keras_recbert
from keras_recbert.convert.load_keras import load_model
from keras_recbert.serving.savedmodel import read_savedmodel
from keras_recbert.tasks.lora_adapters import LoraAdapters, merge_adapters


def logits(model):
    return model(ids(model)).numpy()


@pytest.mark.parametrize("name", KINDS)
def test_adapters_start_at_nothing_and_only_they_learn(name):
    plain, model = small(name), small(name, lora_rank=2)
    expected = logits(plain)
    assert_close(logits(model), expected, 0.0)

    num_blocks = SHRUNK[plain.encoder.config["block"]]["num_layers"]
    added = num_blocks * KINDS[name]
    head = 12 * 2 + 2
    assert model.count_params() == plain.count_params() + added
    trainable = sum(int(np.prod(w.shape)) for w in model.trainable_weights)
    assert trainable == added + head

    before = values(model)
    free = {path for path in before if "lora" in path or path.startswith("head/")}
    assert {weight.path for weight in model.trainable_weights} == free
    train(model, steps=2)
    assert moved(before, values(model)) == free
    assert largest_difference(logits(model), expected) > 1e-3


@pytest.mark.parametrize(
    ("name", "dtype"), [("trans_blstm_tiny", None), ("bert_tiny", "mixed_bfloat16")]
)
def test_saved_adapters_go_on_as_if_never_saved(name, dtype, tmp_path):
    model = train(small(name, lora_rank=2, dtype=dtype), steps=2)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.lora_rank == 2
    before = values(model)
    assert not moved(before, values(loaded))
    assert_close(logits(loaded), logits(model), 0.0)

    train(model)
    train(loaded)
    free = {weight.path for weight in loaded.trainable_weights}
    assert moved(before, values(loaded)) == free
    for path, value in values(loaded).items():
        assert_close(value, values(model)[path], 1e-6, path)


def test_adapters_go_on_from_a_backup_with_their_optimizer(tmp_path):
    models = small(lora_rank=2), small(lora_rank=2)
    for model in models:
        model.compile_for_fine_tuning(4, learning_rate=RATE)
        model.run_eagerly = True
        model.optimizer.build(model.trainable_weights)
    one, other = models
    for _ in range(2):
        one.train_on_batch(ids(one), LABELS)
    one.save_weights(tmp_path / "backup.weights.h5")
    other.load_weights(tmp_path / "backup.weights.h5")
    for _ in range(2):
        losses = [model.train_on_batch(ids(one), LABELS)[0] for model in models]
        assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    for path, value in values(one).items():
        assert_close(values(other)[path], value, 1e-6, path)


def test_weights_pass_between_models_with_and_without_adapters(tmp_path):
    with keras.name_scope("somewhere"):
        adapted = train(small(lora_rank=2), steps=2)
    expected = logits(adapted)
    adapted.save_weights(tmp_path / "adapted.weights.h5")

    merged = small()
    merged.load_weights(tmp_path / "adapted.weights.h5")
    assert_close(logits(merged), expected, 1e-6)

    adapted.encoder.save(tmp_path / "encoder.keras")
    encoder = keras.saving.load_model(tmp_path / "encoder.keras")
    pooled = adapted.encoder(ids(adapted))["pooled_output"]
    assert_close(encoder(ids(adapted))["pooled_output"], pooled, 1e-6)

    plain = merge_adapters(adapted.encoder)
    assert [w.path for w in plain.weights] == [w.path for w in encoder.weights]
    assert len(plain.trainable_weights) == len(plain.weights)
    assert_close(plain(ids(adapted))["pooled_output"], pooled, 1e-6)
    assert_close(logits(adapted), expected, 0.0)

    merged.save_weights(tmp_path / "merged.weights.h5")
    anew = small(lora_rank=3)
    anew.load_weights(tmp_path / "merged.weights.h5")
    assert_close(logits(anew), expected, 1e-6)
    before = values(anew)
    train(anew, steps=2)  # Keras's zeros in both adapters would stay for ever
    assert moved(before, values(anew)) == {w.path for w in anew.trainable_weights}

    adapted.save(tmp_path / "model.keras")
    assert_close(logits(load_model(tmp_path / "model.keras")), expected, 1e-6)
    with pytest.raises(
        ValueError, match=r"of another rank: .*\(12, 2\) in it, \(12, 3\).*lora_rank=3"
    ):
        anew.load_weights(tmp_path / "adapted.weights.h5")


def test_adapters_are_in_the_savedmodel(tmp_path):
    arguments = {"name": "trans_blstm_1_base", "num_layers": 1}
    model = train(small(**arguments, lora_rank=2), steps=2)
    model.export_savedmodel(tmp_path / "savedmodel")
    scores = read_savedmodel(tmp_path / "savedmodel")(text=tf.constant(TEXTS))["scores"]
    expected = tf.nn.softmax(logits(model))
    assert_close(scores, expected, 1e-6)
    plain = tf.nn.softmax(logits(small(**arguments)))
    assert largest_difference(scores, plain) > 1e-3


def test_an_encoder_without_dense_layers_is_refused():
    message = "a WordBiLSTMEncoder has none. Received: lora_rank=2"
    with pytest.raises(ValueError, match=message):
        keras_recbert.build(
            "bilstm_student", task="classifier", texts=TEXTS, lora_rank=2
        )


def test_a_rank_above_the_width_is_refused():
    small(lora_rank=12)
    with pytest.raises(ValueError, match="at most 12, .* Received: lora_rank=13"):
        small(lora_rank=13)


def test_a_narrow_layer_does_not_bound_the_rank():
    block = keras.Sequential([keras.layers.Dense(5), keras.layers.Dense(1)])
    block.build((None, 6))
    encoder = types.SimpleNamespace(blocks=[block], weights=block.weights)
    assert len(LoraAdapters(encoder, 5).adapted) == 2
    with pytest.raises(ValueError, match="at most 5, .* Received: lora_rank=6"):
        LoraAdapters(encoder, 6)


def test_adapters_of_a_model_are_merged_in_its_encoder():
    with pytest.raises(TypeError, match="model.encoder. Received: a TextClassifier"):
        merge_adapters(small(lora_rank=2))
