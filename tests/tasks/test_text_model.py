import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference, randomize
from toy_texts import review_pairs, reviews, tiny_model

from keras_recbert.convert.load_keras import load_model
from keras_recbert.tasks.text_classifier import TextClassifier

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


def test_fit_gives_the_same_weights_for_every_form(eager_steps):
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


def test_fit_learns(classifier):
    accuracy = classifier.evaluate(TEXTS, LABELS, **QUIET)[1]
    assert accuracy == 1.0


def test_fit_repeats_itself(eager_steps):
    one, again = (learn(tiny_model(**CLASSIFIER), epochs=3) for _ in range(2))
    other = learn(tiny_model(**CLASSIFIER), epochs=3, seed=1)  # only the order differs
    pairs = zip(one.get_weights(), again.get_weights(), strict=True)
    assert max(largest_difference(a, b) for a, b in pairs) < 1e-4
    pairs = zip(one.get_weights(), other.get_weights(), strict=True)
    assert max(largest_difference(a, b) for a, b in pairs) > 1e-2


def test_mixed_bfloat16_gives_float32_logits(eager_steps, classifier):
    mixed = tiny_model(**CLASSIFIER, dtype="mixed_bfloat16")
    mixed.set_weights(classifier.get_weights())
    logits = mixed.predict(TEXTS, **QUIET)
    assert logits.dtype == "float32"
    assert mixed.encoder(ids_of(mixed, TEXTS))["pooled_output"].dtype == "bfloat16"
    expected = classifier.predict(TEXTS, **QUIET)
    assert np.array_equal(logits.argmax(1), expected.argmax(1))
    difference = largest_difference(logits, expected)
    print(f"bfloat16 and float32 logits differ by up to {difference:.3f}")
    assert 0 < difference < 0.06 * np.abs(expected).max()
    mixed.fit(TEXTS, LABELS, **QUIET)
    assert all(np.all(np.isfinite(weight)) for weight in mixed.get_weights())


# Files -------------------------------------------------------------------------


def test_saved_classifier_is_whole_and_learns_again(eager_steps, classifier, tmp_path):
    path = tmp_path / "model.keras"
    classifier.save(path)
    loaded = load_model(path)
    assert type(loaded) is type(classifier)
    assert loaded.label_names == ["bad", "good"]
    assert loaded.num_classes == 2
    assert loaded.fields == ("text",)
    assert loaded.head_dropout == 0.1
    assert loaded.pooling == "mean"
    assert loaded.encoder.started_from == "preset"  # not random weights
    odd = ["Good FILMS!", "", "unheard of"]
    for key, ids in ids_of(classifier, odd).items():
        np.testing.assert_array_equal(ids_of(loaded, odd)[key], ids)
    expected = classifier.predict(TEXTS, **QUIET)
    assert_close(loaded.predict(TEXTS, **QUIET), expected, 1e-6)

    before = loaded.head.dense.kernel.numpy()
    loaded.fit(TEXTS, LABELS, **QUIET)
    assert largest_difference(loaded.head.dense.kernel, before) > 1e-6


def test_saved_regressor_of_pairs_is_whole(eager_steps, tmp_path):
    model = tiny_model(task="regressor", sequence_length=32, truncation="waterfall")
    randomize(model)
    model.fit((FIRST, SECOND), SAME, **QUIET)
    assert model.fields == ("text", "text_pair")
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert loaded.fields == ("text", "text_pair")
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


def test_fit_notices_how_many_texts_an_example_has(eager_steps):
    model = tiny_model()
    model.compile(keras.optimizers.SGD(0.0), loss="sparse_categorical_crossentropy")
    for x, y, expected in (
        ((FIRST, SECOND), SAME, 2),
        (TEXTS, LABELS, 1),
        (slices((FIRST, SECOND), SAME), None, 2),
        (ids_of(model, TEXTS), LABELS, 2),  # ids do not say: as before
    ):
        model.fit(x, y, **QUIET)
        assert len(model.fields) == expected


def test_loading_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file .*none.keras. `rec"):
        load_model(tmp_path / "none.keras")


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        (["a", None], [0, 1], TypeError, "NoneType at index 1"),
        (["a", "x"], [0], ValueError, "2 texts, 1 labels"),
        ((["a"], ["a"], ["a"]), [0], ValueError, "a tuple of 3"),
        ((["a", "x"], ["a"]), [0, 1], ValueError, "Received: 2 and 1 texts"),
        ([], [], ValueError, "There is no text: every column needs at least one"),
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
        (
            ["a", "x"],
            [[0, 1], [1]],
            ValueError,
            r"rows as long as each other.*\[\[0, 1",
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
    before = classifier.head.dense.kernel.numpy()
    with pytest.raises(error, match=message):
        classifier.fit(x, y, **QUIET)
    assert_close(classifier.head.dense.kernel, before, 0.0)


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
