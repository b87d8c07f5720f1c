"""`fit` of a task model: forms of data, the rule for rate and steps, the optimizer."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference
from toy_texts import reviews, tiny_model

from keras_recbert.convert.load_keras import load_model
from keras_recbert.tasks.fine_tuning_optimizer import (
    WarmupLinearDecay,
    fine_tuning_optimizer,
)
from keras_recbert.tasks.optimizers import AdamW

TEXTS, LABELS = reviews()
QUIET = {"verbose": 0}


def slices(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


# Learning ----------------------------------------------------------------------


def test_another_seed_gives_other_weights():
    kernels = [tiny_model(seed=seed).head.dense.kernel.numpy() for seed in (0, 0, 1)]
    assert_close(kernels[0], kernels[1], 0.0)
    assert largest_difference(kernels[0], kernels[2]) > 1e-3


class Batches(keras.utils.PyDataset):
    """Pairs of TEXTS with their labels, eight at a time."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return (TEXTS[rows], TEXTS[rows]), LABELS[rows]


def generated(batch_size=8):
    for start in range(0, len(TEXTS), batch_size):
        rows = slice(start, start + batch_size)
        yield np.array(TEXTS[rows]), LABELS[rows]


def test_fit_takes_every_form_that_keras_takes(eager_steps):
    names = np.array(["bad", "good"])[LABELS]
    forms = {
        "ids": {"x": TEXTS, "y": LABELS},
        "names": {"x": TEXTS, "y": names},
        "list of names": {"x": TEXTS, "y": names.tolist()},
        "one-hot": {"x": TEXTS, "y": np.eye(2)[LABELS]},
        "generator": {"x": generated()},
    }
    weights = {}
    for form, data in forms.items():
        model = tiny_model(dropout=0.0, label_names=["bad", "good"])
        model.compile_for_fine_tuning(3, learning_rate=1e-2)
        model.fit(**data, batch_size=8, shuffle=False, **QUIET)
        weights[form] = model.head.dense.kernel.numpy()
    for form, kernel in weights.items():
        assert_close(kernel, weights["ids"], 1e-5, form)

    model = tiny_model()
    history = model.fit(Batches(), epochs=2, validation_data=Batches(), **QUIET)
    assert int(model.optimizer.iterations) == 6
    assert len(history.history["val_loss"]) == 2
    assert model.fields == ("text", "text_pair")


def test_a_step_is_traced_once(monkeypatch):
    """To trace it takes as long as many steps of a small model."""
    traced, step = [], keras.Model.train_step

    def spy(model, data):
        traced.append(model)
        return step(model, data)

    monkeypatch.setattr(keras.Model, "train_step", spy)
    model = tiny_model()
    model.fit(TEXTS, LABELS, batch_size=8, epochs=2, **QUIET)
    assert traced == [model]
    assert int(model.optimizer.iterations) == 6


def test_lengths_of_texts_are_traced_without_a_warning():
    """Which TensorFlow gives after five, of all models of a process together."""
    model = tiny_model()
    model.make_predict_function()
    quiet = "_omit_frequent_tracing_warning"  # what TensorFlow itself reads
    assert getattr(tf.function(len), quiet) is False
    assert getattr(model.predict_function, quiet) is True


def test_the_first_labels_name_the_classes(eager_steps):
    model = tiny_model(label_names=None)
    with pytest.raises(ValueError, match="names of classes. Received: None at index 1"):
        model.fit(TEXTS[:2], ["no", None], **QUIET)
    model.fit(TEXTS[:2], ["no", "yes"], **QUIET)
    assert model.label_names == ["no", "yes"]
    with pytest.raises(ValueError, match=r"\['no', 'yes'\].*Received: 'maybe'"):
        model.fit(TEXTS[:2], ["no", "maybe"], **QUIET)


def test_validation_split_takes_the_last_examples(eager_steps):
    model = tiny_model(dropout=0.0)
    history = model.fit(TEXTS, LABELS, validation_split=0.25, **QUIET).history
    expected = model.evaluate(TEXTS[18:], LABELS[18:], **QUIET)
    assert history["val_loss"] == pytest.approx([expected[0]], abs=1e-5)


def test_validation_data_may_be_texts_or_a_dataset(eager_steps):
    model = tiny_model()
    history = model.fit(
        TEXTS, LABELS, validation_data=(TEXTS[:5], LABELS[:5]), **QUIET
    ).history
    assert set(history) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    expected = model.evaluate(TEXTS[:5], LABELS[:5], **QUIET)
    assert history["val_loss"] == pytest.approx([expected[0]], abs=1e-5)
    model.compile_for_fine_tuning(1)
    history = model.fit(
        TEXTS, LABELS, validation_data=slices(TEXTS[:5], LABELS[:5]), **QUIET
    ).history
    expected = model.evaluate(TEXTS[:5], LABELS[:5], **QUIET)
    assert history["val_loss"] == pytest.approx([expected[0]], abs=1e-5)


# The recipe --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total_steps", "fraction"), [(1, 0.1), (4, 0.1), (10, 0.0), (37, 0.3), (10, 1.0)]
)
def test_schedule_rises_and_falls_linearly(total_steps, fraction):
    schedule = WarmupLinearDecay(2e-3, total_steps, fraction)
    warmup = max(1, fraction * total_steps)
    for step in range(total_steps):
        done = step + 1
        expected = 2e-3 * done / warmup
        if done > warmup:
            expected = 2e-3 * (total_steps + 1 - done) / (total_steps + 1 - warmup)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5)
        assert float(schedule(step)) > 0
    assert float(schedule(total_steps)) == pytest.approx(0, abs=1e-9)
    clone = WarmupLinearDecay.from_config(schedule.get_config())
    assert float(clone(0)) == float(schedule(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 10), "`learning_rate` must be above 0 and finite. .*learning_rate=0"),
        ((1e-3, 0), "`total_steps` must be at least 1. Received: 0"),
        ((1e-3, 10, 1.5), r"`warmup_fraction` must be in \[0, 1\]. Received: 1.5"),
    ],
)
def test_impossible_schedules_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupLinearDecay(*arguments)


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny"])
def test_only_matrices_and_tables_decay(name):
    model = tiny_model(name)
    optimizer = fine_tuning_optimizer(1, learning_rate=0.1, weight_decay=0.5)
    before = [weight.numpy() for weight in model.trainable_weights]
    optimizer.build(model.trainable_weights)
    optimizer.apply([np.zeros_like(value) for value in before])
    factors = {}
    for weight, old in zip(model.trainable_weights, before, strict=True):
        decays = largest_difference(weight, 0.95 * old) < 1e-7 and np.any(old)
        stays = largest_difference(weight, old) == 0
        assert decays != stays, weight.path
        factors[weight.path] = bool(decays)
    for path, decays in factors.items():
        vector = path.rpartition("/")[2] in ("bias", "gamma", "beta", "alpha") or (
            "bias" in path.rpartition("/")[2]
        )
        assert decays != vector, path
    assert sum(factors.values()) >= 8
    assert len(factors) - sum(factors.values()) >= 8


def test_gradients_are_clipped_at_a_global_norm_of_1():
    optimizer = fine_tuning_optimizer(10)
    assert type(optimizer) is AdamW
    weights = [keras.Variable(np.zeros(3)), keras.Variable(np.zeros(4))]
    optimizer.build(weights)
    optimizer.apply([np.full(3, 100.0), np.full(4, -50.0)])
    # After one step the first moment is (1 - beta_1) times the clipped gradient.
    moments = np.concatenate([moment.numpy() for moment in optimizer._momentums])
    assert np.linalg.norm(moments) == pytest.approx(0.1, rel=1e-4)
    assert moments[0] / moments[-1] == pytest.approx(-2.0, rel=1e-4)


def test_dropout_acts_in_training_only():
    model = tiny_model(dropout=0.3)
    ids = model.preprocessor(TEXTS[:4])
    assert largest_difference(model(ids, training=True), model(ids)) > 1e-3
    assert_close(model(ids), model(ids, training=False), 0.0)
    assert_close(model.predict(TEXTS[:4], **QUIET), model(ids), 1e-6)


class LearningRates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def test_each_fit_of_an_uncompiled_model_has_a_schedule_of_its_own(eager_steps):
    model, seen = tiny_model(), LearningRates()
    model.fit(TEXTS, LABELS, batch_size=12, shuffle=False, callbacks=[seen], **QUIET)
    first = model.optimizer
    model.fit(
        TEXTS, LABELS, batch_size=8, epochs=2, shuffle=False, callbacks=[seen], **QUIET
    )
    assert model.optimizer is not first
    expected = [float(WarmupLinearDecay(3e-4, 2)(step)) for step in range(2)]
    expected += [float(WarmupLinearDecay(3e-4, 6)(step)) for step in range(6)]
    assert seen.rates == pytest.approx(expected)


def test_the_rule_is_printed_and_can_be_overruled(eager_steps, capsys):
    model, seen = tiny_model(), LearningRates()
    model.fit(TEXTS, LABELS, batch_size=12, shuffle=False, verbose=2)
    printed = capsys.readouterr().out
    assert printed.count("learning rate 0.0003, 2 steps, rising and falling; mean") == 1
    assert "from random weights" in printed
    model.fit(TEXTS, LABELS, learning_rate=1e-2, callbacks=[seen], **QUIET)
    assert seen.rates == pytest.approx([1e-2])
    model.fit(TEXTS, LABELS, callbacks=[seen], **QUIET)
    assert seen.rates[1:] == pytest.approx([3e-4])
    other = tiny_model(learning_rate=2e-3, pooling="first")
    other.fit(TEXTS, LABELS, callbacks=[seen], **QUIET)
    assert seen.rates[2:] == pytest.approx([2e-3])
    assert other.pooling == "first"


def test_steps_that_nobody_counted_are_counted(eager_steps):
    model, seen = tiny_model(), LearningRates()
    model.compile_for_fine_tuning(learning_rate=1e-3, warmup_fraction=0.0)
    for _ in range(2):
        model.fit(TEXTS, LABELS, batch_size=12, callbacks=[seen], **QUIET)
    assert seen.rates == pytest.approx([1e-3, 5e-4] * 2)
    dataset = slices(TEXTS, LABELS).batch(8).filter(lambda *_: True)
    model.fit(dataset, callbacks=[seen], **QUIET)  # of unknown length
    # The fourth finds no batch.
    assert seen.rates[4:] == pytest.approx([1e-5, 2e-5, 3e-5, 4e-5])
    model.fit(dataset.repeat(), steps_per_epoch=3, callbacks=[seen], **QUIET)
    assert seen.rates[8:] == pytest.approx([1e-3, 2e-3 / 3, 1e-3 / 3])


def test_a_rate_cannot_beat_what_the_model_was_compiled_with():
    model = tiny_model()
    model.compile_for_fine_tuning(4)
    with pytest.raises(ValueError, match="compiled already.*learning_rate=0.1"):
        model.fit(TEXTS, LABELS, learning_rate=0.1)


def test_a_file_holds_no_optimizer_of_the_recipe(eager_steps, tmp_path):
    model = tiny_model()
    model.save(tmp_path / "new.keras")
    model.fit(TEXTS, LABELS, **QUIET)
    model.save(tmp_path / "recipe.keras")
    model.compile(keras.optimizers.SGD(0.5), loss="sparse_categorical_crossentropy")
    model.fit(TEXTS, LABELS, **QUIET)
    model.save(tmp_path / "own.keras")
    new, recipe, own = (
        (tmp_path / f"{name}.keras").stat().st_size for name in ("new", "recipe", "own")
    )
    assert recipe < 1.1 * new
    assert own < 1.1 * new
    assert int(load_model(tmp_path / "own.keras").optimizer.iterations) == 1


def test_fit_keeps_what_the_model_was_compiled_with(eager_steps):
    model, seen = tiny_model(), LearningRates()
    # The whole run is announced, the calls of `fit` share its steps.
    model.compile_for_fine_tuning(4, learning_rate=1e-3, warmup_fraction=0.5)
    optimizer = model.optimizer
    for _ in range(2):
        model.fit(
            TEXTS, LABELS, batch_size=12, shuffle=False, callbacks=[seen], **QUIET
        )
    assert model.optimizer is optimizer
    assert seen.rates == pytest.approx([5e-4, 1e-3, 2e-3 / 3, 1e-3 / 3])

    sgd = keras.optimizers.SGD(0.5)
    model.compile(sgd, loss="sparse_categorical_crossentropy")
    model.fit(TEXTS[:8], LABELS[:8], **QUIET)
    assert model.optimizer is sgd
