"""Freezing next sentence prediction: what rests, what continues to learn."""

import math
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from toy_pretrainers import ALL, LOW_SENTENCE, examples, make, repeated

import keras_recbert
from keras_recbert.tasks.fine_tuning_optimizer import fine_tuning_optimizer
from keras_recbert.tasks.optimizers import AdamW


class FreezeAt(keras.callbacks.Callback):
    """Freezes inside `fit`, and keeps all weights of that moment."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.step:
            self.model.freeze_next_sentence()
            self.weights = {w.path: w.numpy() for w in self.model.weights}
            self.slots = slots(self.model)


def slots(model):
    optimizer = model.optimizer
    return {v.path: v.numpy() for v in optimizer.variables if v.ndim}


def is_frozen(path, level=1):
    below = [f"block_{index}/" for index in range(level)]
    parts = ("embeddings/", *below, "pooler/", "next_sentence")
    return path.startswith(tuple(parts))


@pytest.mark.slow
@pytest.mark.parametrize("entries", [ALL[5], LOW_SENTENCE], ids=str)
def test_freezing_inside_fit(entries):
    model = make(entries, dropout=0.0, num_layers=len(entries))
    optimizer = fine_tuning_optimizer(200, learning_rate=0.01, warmup_fraction=0.0)
    model.compile_for_pretraining(optimizer)
    batch = examples(model)
    freeze = FreezeAt(10)
    model.fit(repeated(batch, 60), verbose=0, callbacks=[freeze])
    assert model.next_sentence_frozen
    assert int(optimizer.iterations) == 60
    moved = []
    for weight in model.weights:
        same = np.array_equal(weight.numpy(), freeze.weights[weight.path])
        assert same == is_frozen(weight.path), weight.path
        assert weight.trainable != is_frozen(weight.path), weight.path
        moved.append(not same)
    assert any(moved)
    # No slot is lost or new, and those of frozen weights rest.
    after = slots(model)
    assert list(after) == list(freeze.slots)
    for weight in model.weights:
        own = [path for path in after if weight.path.replace("/", "_") in path]
        assert len(own) == 2, weight.path
        for path in own:
            same = np.array_equal(after[path], freeze.slots[path])
            assert same == is_frozen(weight.path), path
    model.freeze_next_sentence()  # again: nothing to do


@pytest.mark.slow
def test_momentum_goes_on_through_the_freeze():
    """The step after it equals one by hand from the slots of before."""
    model = make(ALL[5], dropout=0.0, num_layers=2)
    optimizer = AdamW(0.01, weight_decay=0.0, global_clipnorm=0.5, epsilon=1e-6)
    model.compile_for_pretraining(optimizer)
    x, y, weights = examples(model)
    model.fit(repeated((x, y, weights), 3), verbose=0)
    model.freeze_next_sentence()
    trained = model.trainable_weights
    assert 0 < len(trained) < len(model.weights)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True), weights)
    gradients = tape.gradient(loss, [weight.value for weight in trained])
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
    # Clipped by the norm of what trains, and of nothing else.
    norm = math.sqrt(sum(np.sum(np.square(g, dtype="float64")) for g in gradients))
    assert norm > 0.5
    before = slots(model)
    old = [weight.numpy() for weight in trained]
    resting = [(w, w.numpy()) for w in model.weights if is_frozen(w.path)]
    model.fit(repeated((x, y, weights), 1), verbose=0)
    assert len(trained) + len(resting) == len(model.weights)
    for weight, value in resting:
        np.testing.assert_array_equal(weight.numpy(), value, weight.path)
    step = 4  # of the optimizer: its count goes on too
    for weight, value, gradient in zip(trained, old, gradients, strict=True):
        gradient = gradient * 0.5 / norm
        name = weight.path.replace("/", "_")
        m, v = (next(before[p] for p in before if f"{name}_{s}" in p) for s in SLOTS)
        assert np.any(m != 0.0)
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        rate = 0.01 * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        assert_close(weight, value - rate * m / (np.sqrt(v) + 1e-6), 1e-4, weight.path)


SLOTS = ("momentum", "velocity")


@pytest.mark.slow
def test_masked_lm_goes_on_learning_after_the_freeze():
    model = make({"masked_lm": None, "next_sentence": {"layer": 1}}, dropout=0.0)
    model.compile_for_pretraining(AdamW(0.01))
    batch = examples(model)
    model.fit(repeated(batch, 5), verbose=0)
    model.freeze_next_sentence()
    before = model.evaluate(repeated(batch, 1), verbose=0, return_dict=True)
    model.fit(repeated(batch, 40), verbose=0)
    after = model.evaluate(repeated(batch, 1), verbose=0, return_dict=True)
    assert after["masked_lm_loss"] < 0.7 * before["masked_lm_loss"]
    assert after["next_sentence_loss"] == before["next_sentence_loss"]


def test_frozen_model_stays_frozen_in_a_file(tmp_path):
    model = make(LOW_SENTENCE)
    model.compile_for_pretraining(AdamW(0.01))
    model.freeze_next_sentence()  # before the first step: slots for all weights
    assert len(slots(model)) == 2 * len(model.weights)
    for variable in model.optimizer.variables:
        variable.assign(variable + np.ones(variable.shape, variable.dtype))
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Keras: "Skipping ... optimizer"
        loaded = keras_recbert.load(tmp_path / "model.keras")
    assert loaded.next_sentence_frozen
    assert [w.path for w in loaded.trainable_weights] == [
        w.path for w in model.trainable_weights
    ]
    for one, other in zip(
        loaded.optimizer.variables, model.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.slow
def test_frozen_model_goes_on_from_a_file_as_if_nothing_had_happened(tmp_path):
    model = make(LOW_SENTENCE, dropout=0.0)
    model.compile_for_pretraining(AdamW(0.01))
    batch = examples(model)
    model.fit(repeated(batch, 2), verbose=0)
    model.freeze_next_sentence()
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    for one in (model, loaded):
        one.fit(repeated(batch, 3), verbose=0)
    for weight, other in zip(loaded.weights, model.weights, strict=True):
        assert_close(weight, other, 1e-6, weight.path)


@pytest.mark.slow
def test_freezing_before_the_first_step():
    model = make(LOW_SENTENCE)
    model.compile_for_pretraining(AdamW(0.01))
    model.freeze_next_sentence()
    before = {w.path: w.numpy() for w in model.weights}
    model.fit(repeated(examples(model), 1), verbose=0)
    for weight in model.weights:
        same = np.array_equal(before[weight.path], weight.numpy())
        assert same == is_frozen(weight.path), weight.path
