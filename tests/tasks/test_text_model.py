import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference, randomize
from toy_texts import SIZES, VOCABULARY, review_pairs, reviews, tiny_model

import keras_recbert
from keras_recbert.tasks.fine_tuning_optimizer import (
    WarmupLinearDecay,
    fine_tuning_optimizer,
)
from keras_recbert.tasks.loading import load_model
from keras_recbert.tasks.optimizers import AdamW
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

TEXTS, LABELS = reviews()
FIRST, SECOND, SAME = review_pairs()
QUIET = {"verbose": 0}
CLASSIFIER = {"pooling": "mean", "dropout": 0.1, "label_names": ["bad", "good"]}


def learn(model, epochs=12, seed=0):
    model.compile_for_fine_tuning(epochs * 4, learning_rate=1e-2)
    model.fit(TEXTS, LABELS, batch_size=8, epochs=epochs, seed=seed, **QUIET)
    return model


@pytest.fixture(scope="module")
def classifier():
    """Trained on `TEXTS`; tests leave its weights alone."""
    return learn(tiny_model(**CLASSIFIER))


@pytest.fixture(scope="module")
def regressor():
    """Random weights, or its scores would hardly differ."""
    model = tiny_model(task="regressor")
    randomize(model)
    model.compile_for_fine_tuning(1)
    return model


def slices(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


def ids_of(model, texts):
    return {key: value.numpy() for key, value in model.preprocessor(texts).items()}


# Texts in every form -----------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "evaluate", "predict"])
def test_arguments_stand_where_keras_has_them(method):
    ours, theirs = (
        list(inspect.signature(getattr(cls, method)).parameters)
        for cls in (TextClassifier, keras.Model)
    )
    positional = [name for name in ours if name in theirs and name != "kwargs"]
    assert positional == theirs[: len(positional)]


def test_predict_takes_texts_in_every_form(classifier):
    expected = classifier.predict(TEXTS, **QUIET)
    assert expected.shape == (24, 2)
    assert np.ptp(expected[:, 0]) > 1
    assert expected.dtype == "float32"
    one_by_one = [classifier(ids_of(classifier, [text]))[0] for text in TEXTS]
    forms = {
        "rows alone, in order": np.stack(one_by_one),
        "small batches": classifier.predict(TEXTS, batch_size=5, **QUIET),
        "array of str": classifier.predict(np.array(TEXTS), **QUIET),
        "single dataset": classifier.predict(slices(TEXTS), batch_size=7, **QUIET),
        "dataset with labels": classifier.predict(
            slices(TEXTS, LABELS).batch(24), **QUIET
        ),
        "ids": classifier.predict(ids_of(classifier, TEXTS), **QUIET),
        "dataset of ids": classifier.predict(
            slices(ids_of(classifier, TEXTS)).batch(24), **QUIET
        ),
    }
    for form, logits in forms.items():
        assert_close(logits, expected, 1e-5, form)


def test_predict_takes_pairs_in_every_form(regressor):
    expected = regressor.predict((FIRST, SECOND), **QUIET)
    assert expected.shape == (12,)
    assert expected.dtype == "float32"
    pairs = ((FIRST, SECOND),)
    forms = {
        "arrays": regressor.predict((np.array(FIRST), np.array(SECOND)), **QUIET),
        "single dataset": regressor.predict(slices(*pairs), batch_size=5, **QUIET),
        "dataset with labels": regressor.predict(
            slices(pairs[0], SAME).batch(5), **QUIET
        ),
        "ids": regressor.predict(ids_of(regressor, (FIRST, SECOND)), **QUIET),
    }
    for form, scores in forms.items():
        assert_close(scores, expected, 1e-5, form)
    # A thousand times the tolerance below: pairs and single texts are told apart.
    assert np.ptp(expected) > 0.01
    assert largest_difference(expected, regressor.predict(FIRST, **QUIET)) > 0.01


def test_one_text_and_one_pair_are_batches_of_one(classifier):
    expected = classifier.predict(TEXTS[:1], **QUIET)
    assert_close(classifier.predict(TEXTS[0], **QUIET), expected, 0.0)
    pair = classifier.predict(([FIRST[0]], [SECOND[0]]), **QUIET)
    assert_close(classifier.predict((FIRST[0], SECOND[0]), **QUIET), pair, 0.0)


def test_evaluate_takes_texts_in_every_form(classifier, regressor):
    logits = classifier.predict(TEXTS, **QUIET).astype("float64")
    losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(24), LABELS]
    expected = {
        "loss": losses.mean(),
        "accuracy": np.mean(logits.argmax(1) == LABELS),
    }
    results = {
        "list": classifier.evaluate(TEXTS, LABELS, return_dict=True, **QUIET),
        "small batches": classifier.evaluate(
            np.array(TEXTS), LABELS, batch_size=5, return_dict=True, **QUIET
        ),
        "dataset": classifier.evaluate(
            slices(TEXTS, LABELS), return_dict=True, **QUIET
        ),
        "ids": classifier.evaluate(
            ids_of(classifier, TEXTS), LABELS, return_dict=True, **QUIET
        ),
    }
    for form, result in results.items():
        assert result == pytest.approx(expected, abs=1e-5), form

    weights = np.linspace(0, 2, 24)
    weighted = classifier.evaluate(
        TEXTS, LABELS, sample_weight=weights, return_dict=True, **QUIET
    )
    hits = logits.argmax(1) == LABELS
    assert weighted["accuracy"] == pytest.approx(np.average(hits, weights=weights))

    scores = regressor.predict((FIRST, SECOND), **QUIET)
    result = regressor.evaluate((FIRST, SECOND), SAME, return_dict=True, **QUIET)
    error = np.mean((scores - SAME) ** 2)
    assert result == pytest.approx({"loss": error, "mse": error}, abs=1e-5)


def test_fit_gives_the_same_weights_for_every_form():
    def weights(make):
        model = tiny_model(dropout=0.0)
        x, y = make(model)
        model.fit(x, y, batch_size=8, epochs=2, shuffle=False, **QUIET)
        return model.get_weights()

    expected = weights(lambda model: (TEXTS, LABELS))
    forms = {
        "single dataset": lambda model: (slices(TEXTS, LABELS), None),
        "ids": lambda model: (ids_of(model, TEXTS), LABELS),
    }
    untrained = tiny_model(dropout=0.0).get_weights()
    moved = max(map(largest_difference, expected, untrained))
    assert moved > 3e-4  # six steps of up to 3e-4
    for form, make in forms.items():
        for a, b in zip(weights(make), expected, strict=True):
            # Adam divides by small numbers: rounding is not far from a step.
            assert largest_difference(a, b) < 1e-5, form


def test_preprocessor_shows_the_ids(classifier):
    packed = ids_of(classifier, (["good films.", "x"], ["bad", "a film"]))
    names = [
        [classifier.preprocessor.tokenizer.id_to_token(id_) for id_ in row]
        for row in packed["token_ids"]
    ]
    assert names == [
        ["[CLS]", "good", "film", "##s", ".", "[SEP]", "bad", "[SEP]"],
        ["[CLS]", "x", "[SEP]", "a", "film", "[SEP]", "[PAD]", "[PAD]"],
    ]
    assert packed["segment_ids"].tolist() == [
        [0] * 6 + [1] * 2,
        [0] * 3 + [1] * 3 + [0] * 2,
    ]
    assert packed["padding_mask"].tolist() == [[1] * 8, [1] * 6 + [0] * 2]


def test_fixed_and_dynamic_length_give_the_same_logits(classifier):
    fixed = tiny_model(**CLASSIFIER, sequence_length=40)
    assert fixed.preprocessor(["good"])["token_ids"].shape == (1, 40)
    assert classifier.preprocessor(["good"])["token_ids"].shape == (1, 3)
    fixed.set_weights(classifier.get_weights())
    expected = classifier.predict(TEXTS, **QUIET)
    assert_close(fixed.predict(TEXTS, **QUIET), expected, 1e-5)


# Learning ----------------------------------------------------------------------


def test_fit_learns_and_repeats_itself(classifier):
    accuracy = classifier.evaluate(TEXTS, LABELS, **QUIET)[1]
    assert accuracy == 1.0
    again = learn(tiny_model(**CLASSIFIER))
    other = learn(tiny_model(**CLASSIFIER), seed=1)  # only the order differs
    pairs = zip(classifier.get_weights(), again.get_weights(), strict=True)
    assert max(largest_difference(a, b) for a, b in pairs) < 1e-4
    pairs = zip(classifier.get_weights(), other.get_weights(), strict=True)
    assert max(largest_difference(a, b) for a, b in pairs) > 1e-2


def test_another_seed_gives_other_weights():
    kernels = [tiny_model(seed=seed).head.kernel.numpy() for seed in (0, 0, 1)]
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


def test_fit_takes_every_form_that_keras_takes():
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
        weights[form] = model.head.kernel.numpy()
    for form, kernel in weights.items():
        assert_close(kernel, weights["ids"], 1e-5, form)

    model = tiny_model()
    history = model.fit(Batches(), epochs=2, validation_data=Batches(), **QUIET)
    assert int(model.optimizer.iterations) == 6
    assert len(history.history["val_loss"]) == 2
    assert model.num_texts == 2


def test_the_first_labels_name_the_classes():
    model = tiny_model(label_names=None)
    model.fit(TEXTS[:2], ["no", "yes"], **QUIET)
    assert model.label_names == ["no", "yes"]
    with pytest.raises(ValueError, match=r"\['no', 'yes'\].*Received: 'maybe'"):
        model.fit(TEXTS[:2], ["no", "maybe"], **QUIET)


def test_validation_split_takes_the_last_examples():
    model = tiny_model(dropout=0.0)
    history = model.fit(TEXTS, LABELS, validation_split=0.25, **QUIET).history
    expected = model.evaluate(TEXTS[18:], LABELS[18:], **QUIET)
    assert history["val_loss"] == pytest.approx([expected[0]], abs=1e-5)


def test_validation_data_may_be_texts_or_a_dataset():
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
    ids = ids_of(model, TEXTS[:4])
    assert largest_difference(model(ids, training=True), model(ids)) > 1e-3
    assert_close(model(ids), model(ids, training=False), 0.0)
    assert_close(model.predict(TEXTS[:4], **QUIET), model(ids), 1e-6)


class LearningRates(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        self.rates.append(float(self.model.optimizer.learning_rate))


def test_each_fit_of_an_uncompiled_model_has_a_schedule_of_its_own():
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


def test_the_rule_is_printed_and_can_be_overruled(capsys):
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


def test_steps_that_nobody_counted_are_counted():
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


def test_a_file_holds_no_optimizer_of_the_recipe(tmp_path):
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


def test_fit_keeps_what_the_model_was_compiled_with():
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


def test_mixed_bfloat16_gives_float32_logits(classifier):
    mixed = tiny_model(**CLASSIFIER, dtype="mixed_bfloat16")
    mixed.set_weights(classifier.get_weights())
    logits = mixed.predict(TEXTS, **QUIET)
    assert logits.dtype == "float32"
    assert mixed.backbone(ids_of(mixed, TEXTS))["pooled_output"].dtype == "bfloat16"
    expected = classifier.predict(TEXTS, **QUIET)
    assert np.array_equal(logits.argmax(1), expected.argmax(1))
    difference = largest_difference(logits, expected)
    print(f"bfloat16 and float32 logits differ by up to {difference:.3f}")
    assert 0 < difference < 0.06 * np.abs(expected).max()
    mixed.fit(TEXTS, LABELS, **QUIET)
    assert all(np.all(np.isfinite(weight)) for weight in mixed.get_weights())


# Files -------------------------------------------------------------------------


def test_saved_classifier_is_whole_and_learns_again(classifier, tmp_path):
    path = tmp_path / "model.keras"
    classifier.save(path)
    loaded = load_model(path)
    assert type(loaded) is type(classifier)
    assert loaded.label_names == ["bad", "good"]
    assert loaded.num_classes == 2
    assert loaded.num_texts == 1
    assert loaded.head_dropout == 0.1
    assert loaded.pooling == "mean"
    assert loaded.backbone.started_from == "preset"  # not random weights
    odd = ["Good FILMS!", "", "unheard of"]
    for key, ids in ids_of(classifier, odd).items():
        np.testing.assert_array_equal(ids_of(loaded, odd)[key], ids)
    expected = classifier.predict(TEXTS, **QUIET)
    assert_close(loaded.predict(TEXTS, **QUIET), expected, 1e-6)

    before = loaded.head.kernel.numpy()
    loaded.fit(TEXTS, LABELS, **QUIET)
    assert largest_difference(loaded.head.kernel, before) > 1e-6


def test_saved_regressor_of_pairs_is_whole(tmp_path):
    model = tiny_model(task="regressor", sequence_length=32, truncation="waterfall")
    randomize(model)
    model.fit((FIRST, SECOND), SAME, **QUIET)
    assert model.num_texts == 2
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.num_texts == 2
    assert loaded.preprocessor.get_config() == model.preprocessor.get_config()
    expected = model.predict((FIRST, SECOND), **QUIET)
    assert_close(loaded.predict((FIRST, SECOND), **QUIET), expected, 1e-6)


def test_a_saved_model_keeps_its_own_optimizer(tmp_path):
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.25), loss="sparse_categorical_crossentropy")
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.compiled
    assert float(loaded.optimizer.learning_rate) == 0.25


def test_fit_notices_how_many_texts_an_example_has():
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.0), loss="sparse_categorical_crossentropy")
    for x, y, expected in (
        ((FIRST, SECOND), SAME, 2),
        (TEXTS, LABELS, 1),
        (slices((FIRST, SECOND), SAME), None, 2),
        (ids_of(model, TEXTS), LABELS, 2),  # ids do not say: as before
    ):
        model.fit(x, y, **QUIET)
        assert model.num_texts == expected


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file .*none.keras. `rec"):
        load_model(tmp_path / "none.keras")


# Mistakes ----------------------------------------------------------------------


def test_texts_need_a_vocabulary():
    model = tiny_model(vocabulary=None, vocabulary_size=30)
    labelled = slices(["a film"], [0])
    for call in (
        lambda: model.predict(["a film"]),
        lambda: model.predict(slices(["a film"])),
        lambda: model.fit(["a film"], [0]),
        lambda: model.fit(labelled),
        lambda: model.evaluate(["a film"], [0]),
        lambda: model.evaluate(labelled),
    ):
        with pytest.raises(ValueError, match="built without a vocabulary.*vocab"):
            call()
    with pytest.raises(ValueError, match="built without a vocabulary"):
        model.export_savedmodel("never_written")


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (["a", None], [0, 1], TypeError, "NoneType at index 1"),
        (["a", "x"], [0], ValueError, "2 texts, 1 labels"),
        ((["a"], ["a"], ["a"]), [0], ValueError, "a tuple of 3"),
        ((["a", "x"], ["a"]), [0, 1], ValueError, "Received: 2 and 1 texts"),
        ([], [], ValueError, "Received: 0 texts"),
        (7, [0], TypeError, "Received: 7 of type int"),
        (["a", "x"], None, ValueError, "`y` must hold the labels.*Received: None"),
        (
            ["a", "x"],
            ["good", "poor"],
            ValueError,
            "`y` must hold the names of classes.*Received: 'poor' at index 1",
        ),
        (
            ["a", "x"],
            [[0, 1], [0.5, 0.5]],
            ValueError,
            r"one-hot.*Received: \[0.5, 0.5\] at index 1",
        ),
        (["a", "x"], [[0, 1, 0]] * 2, ValueError, r"from 0 to 1.*Received: \[0, 1, 0"),
        (
            ["a", "x"],
            [0, 2],
            ValueError,
            "from 0 to 1, .*'bad', 'good'.*Received: 2 at index 1",
        ),
        (["a", "x"], [-1, 1], ValueError, "Received: -1 at index 0"),
        (["a", "x"], [0.5, 1.0], ValueError, "Received: 0.5 at index 0"),
    ],
)
def test_unusable_examples_are_refused(classifier, x, y, error, message):
    before = classifier.head.kernel.numpy()
    with pytest.raises(error, match=message):
        classifier.fit(x, y, **QUIET)
    assert_close(classifier.head.kernel, before, 0.0)


@pytest.mark.parametrize("labels", [["low", "high"], [1.0, float("nan")]])
def test_scores_must_be_numbers(regressor, labels):
    with pytest.raises(
        ValueError, match="`y` must hold finite numbers. Received: .* at index"
    ):
        regressor.fit(["a", "x"], labels, **QUIET)


def test_datasets_to_learn_from_need_labels(classifier):
    for dataset in (slices(TEXTS), slices((FIRST, SECOND)), slices(FIRST, SECOND)):
        for call in (classifier.fit, classifier.evaluate):
            with pytest.raises(ValueError, match=r"are \(text, label\) or .*Received"):
                call(dataset)
        with pytest.raises(ValueError, match=r"are \(text, label\) or .*Received"):
            classifier.fit(TEXTS, LABELS, validation_data=dataset)


def test_an_impossible_validation_split_is_refused(classifier):
    for split in (1.0, -0.1, 0.99):
        with pytest.raises(ValueError, match="`validation_split` "):
            classifier.fit(TEXTS, LABELS, validation_split=split)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "at least 2 classes.*num_classes=1.*task='regressor'"),
        ({"num_classes": 0}, "`num_classes` must be a whole number of at least 1"),
        ({"label_names": ["a", "a"]}, "different name for each class.*'a', 'a'"),
        ({"num_classes": 3, "label_names": ["a", "b"]}, "num_classes=3, label_names"),
        (
            {"num_clases": 3},
            "TextClassifier takes no argument 'num_clases'.*Did you mean 'num_classes'",
        ),
        ({"vocabulery": "x"}, "takes no argument 'vocabulery'.*Did you.* 'vocabulary'"),
        ({"hiden_dim": 8}, "takes no argument 'hiden_dim'.*Did you mean 'hidden_dim'"),
        ({"gate": "gelu"}, "'bert_tiny' takes no argument 'gate'"),
        (
            {"vocabulary_size": 12},
            "more word pieces.*26 word pieces, vocabulary_si.*12",
        ),
        ({"sequence_length": 100}, "`sequence_length` must not exceed"),
        ({"vocabulary": None, "lowercase": False}, "'lowercase' need a vocabulary"),
        ({"truncation": "middle"}, "`truncation` must be one of"),
    ],
)
def test_impossible_tasks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        tiny_model(**arguments)


def test_the_text_front_must_fit_the_encoder():
    from keras_recbert.tasks import TextClassifier

    backbone = keras_recbert.build("bert_tiny", vocabulary_size=26, **SIZES)
    front = TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_sequence_length=65)
    with pytest.raises(ValueError, match="65 word pieces, max_sequence_length=64"):
        TextClassifier(backbone, front)
    with pytest.raises(ValueError, match="must be a RecBertBackbone.*Received: Dense"):
        TextClassifier(keras.layers.Dense(3))


def test_unknown_task_gets_the_nearest_name():
    with pytest.raises(ValueError, match="'clasifier'. Did you mean 'classifier'"):
        keras_recbert.build("bert_tiny", task="clasifier")
