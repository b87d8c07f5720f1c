"""Texts beyond a row, read in windows: what a user types, and what comes back."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from toy_texts import DISLIKED, FILLERS, LIKED, VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.tasks.text_classifier import TextClassifier
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.window_preprocessor import WindowPreprocessor

LIMIT, ROOM, STRIDE = 12, 10, 7  # 3/4 of a window
SERVED = ("scores", "label_names", "label")


def long_reviews(number=48, seed=0):
    """Texts of 3 to 33 words whose only clue stands at the end, and labels."""
    rng = np.random.default_rng(seed)
    labels = (np.arange(number) % 2).astype("int32")
    texts = []
    for index, label in enumerate(labels):
        words = list(rng.choice(FILLERS, 2 + (13 * index) % 31))
        words.append(rng.choice((DISLIKED, LIKED)[label]))
        texts.append(" ".join(words))
    return texts, labels


def model_of(name="bert_tiny", **arguments):
    defaults = {"max_sequence_length": LIMIT, "dropout": 0.0, "long_texts": "windows"}
    return tiny_model(name, **{**defaults, **arguments})


def windows_of(text):
    """The windows of a text as texts."""
    words, begin = text.split(), 0
    windows = [words[:ROOM]]
    while begin + ROOM < len(words):
        begin += STRIDE
        windows.append(words[begin : begin + ROOM])
    return [" ".join(window) for window in windows]


def logits_of(model, texts):
    """As of `predict`, without a graph."""
    return model(model.preprocessor(texts)).numpy()


def accuracy(model, texts, labels):
    return np.mean(logits_of(model, texts).argmax(1) == labels)


def train(model, texts, labels):
    options = {"batch_size": 8, "learning_rate": 1e-2, "verbose": 0, "seed": 0}
    model.fit(texts, labels, epochs=12, **options)


@pytest.fixture(scope="module")
def learned():
    texts, labels = long_reviews()
    # The clue is in one window of many, so the mean would learn it slower.
    model = model_of(pooling="mean", window_pooling="max")
    train(model, texts, labels)
    return model, texts, labels


@pytest.fixture(scope="module")
def unseen():
    """Other texts, whose clue stands behind the first row."""
    examples = zip(*long_reviews(60, seed=1), strict=True)
    examples = [one for one in examples if len(one[0].split()) > ROOM]
    return tuple(map(list, zip(*examples, strict=True)))


def test_a_clue_behind_the_first_row_is_learned(learned, unseen):
    model, _, _ = learned
    assert type(model) is TextClassifier
    assert accuracy(model, *unseen) > 0.9


@pytest.mark.slow
def test_a_clue_behind_the_first_row_is_lost_without_windows(learned, unseen):
    _, texts, labels = learned
    model = model_of(pooling="mean", long_texts="truncate")
    train(model, texts, labels)
    assert accuracy(model, *unseen) < 0.7


def test_evaluate_counts_texts_not_windows(learned):
    model, texts, labels = learned
    logits = model.predict(texts, verbose=0)
    assert logits.shape == (len(texts), 2)
    loss, found = model.evaluate(texts, labels, batch_size=len(texts), verbose=0)
    log_probabilities = keras.ops.log_softmax(logits).numpy()
    expected = -log_probabilities[np.arange(len(texts)), labels].mean()
    assert loss == pytest.approx(expected, abs=1e-5)
    assert found == pytest.approx(accuracy(model, texts, labels))


@pytest.mark.parametrize(
    "window_pooling, pooling", [("mean", "mean"), ("max", "first")]
)
def test_numbers_are_those_of_a_loop_over_windows(window_pooling, pooling):
    model = model_of("swish_tiny", window_pooling=window_pooling, pooling=pooling)
    texts, _ = long_reviews(7)
    packer = TextPreprocessor(model.preprocessor.tokenizer)
    kernel, bias = (weight.numpy() for weight in model.head.dense.weights)
    join = {"mean": np.mean, "max": np.max}[window_pooling]
    expected = []
    for text in texts:
        read = []
        for window in windows_of(text):
            row = model.encoder(packer([window]))
            vector = row["pooled_output"][0].numpy()
            if pooling == "mean":
                vector = row["sequence_output"][0].numpy().mean(axis=0)
            read.append(vector)
        expected.append(join(read, axis=0) @ kernel + bias)
    assert_close(logits_of(model, texts), np.array(expected), 1e-5, "logits")


@pytest.mark.parametrize(
    "window_pooling, dtype", [("mean", "mixed_bfloat16"), ("max", "float32")]
)
def test_a_text_of_one_window_is_as_without_windows(window_pooling, dtype):
    model = model_of(window_pooling=window_pooling, dtype=dtype)
    plain = model_of(long_texts="truncate", dtype=dtype)
    plain.set_weights(model.get_weights())
    texts = [text for text in long_reviews(12)[0] if len(text.split()) <= ROOM]
    found, expected = (logits_of(one, texts) for one in (model, plain))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["bert_tiny", "trans_blstm_tiny"])
def test_padding_windows_change_nothing(name):
    """Neither logits nor gradients; and a batch is as its rows."""
    texts, labels = long_reviews(5)
    pooling = "max" if name == "bert_tiny" else "mean"
    model = model_of(name, window_pooling=pooling, sequence_length=10)
    packed = model.preprocessor(texts)
    padded = {key: tf.pad(ids, [[0, 0], [0, 2], [0, 2]]) for key, ids in packed.items()}
    found = []
    for ids in (packed, padded):
        with tf.GradientTape() as tape:
            logits = model(ids)
            loss = model.head.loss()(tf.constant(labels), logits)
        weights = model.trainable_variables
        found.append([logits, loss, *tape.gradient(loss, weights)])
    for one, other in zip(*found, strict=True):
        one, other = map(tf.convert_to_tensor, (one, other))
        assert np.isfinite(one).all()
        assert_close(other, one, 1e-5, "logits, loss and gradients")
    alone = np.concatenate([logits_of(model, [text]) for text in texts])
    assert_close(alone, found[0][0], 1e-5, "rows")


def test_every_file_answers_the_same(learned, tmp_path):
    trained, texts, _ = learned
    texts = texts[:9]
    model = model_of(pooling="mean", stride=5)
    model.set_weights(trained.get_weights())
    expected = model.predict(texts, verbose=0)
    assert np.abs(expected - logits_of(trained, texts)).max() > 1e-3
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        assert type(again.preprocessor) is WindowPreprocessor
        assert (again.long_texts, again.window_pooling) == ("windows", "mean")
        assert again.preprocessor.stride == 5
        assert_close(logits_of(again, texts), expected, 1e-5, "logits")
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    found = served["serving_default"](text=tf.constant(texts))
    assert set(found) == set(SERVED)
    assert_close(found["scores"], keras.ops.softmax(expected), 1e-5, "scores")
    for index in (0, 5):
        one = served["serving_default"](text=tf.constant(texts[index : index + 1]))
        assert_close(one["scores"][0], found["scores"][index], 1e-5, "a row")
    packed = served["ids"](**model.preprocessor(texts))
    assert_close(packed["scores"], found["scores"], 1e-5, "scores of ids")


def test_two_texts_of_thousands_of_words(learned):
    model, _, _ = learned
    ends = {"good": 1, "dull": 0}
    texts = [f"{'a very film story ' * 625}{end}" for end in ends]
    packed = model.preprocessor(texts)
    assert packed["token_ids"].shape == (2, 357, LIMIT)  # (2501 - 10) / 7, and one
    found = model.predict(texts, verbose=0).argmax(axis=1)
    assert found.tolist() == list(ends.values())


@pytest.mark.slow
def test_texts_of_thousands_of_words_are_learned():
    texts, labels = [f"{'a very film story ' * 625}{end}" for end in LIKED[:2]], [0, 1]
    model = model_of()
    before = model.head.dense.kernel.numpy()
    model.fit(texts, labels, batch_size=2, verbose=0)
    assert np.abs(model.head.dense.kernel.numpy() - before).max() > 1e-6


@pytest.mark.slow
def test_other_heads_read_windows():
    texts, labels = long_reviews(6)
    regressor = model_of(task="regressor")
    assert regressor.predict(texts, verbose=0).shape == (6,)
    regressor.fit(texts, labels * 1.5, verbose=0)
    names = {"label_names": ["a", "b", "c"]}
    several = model_of(task="multilabel_classifier", window_pooling="max", **names)
    several.fit(texts, [["a"], [], ["c"]] * 2, verbose=0)
    assert several.predict(texts, verbose=0).shape == (6, 3)
    named = model_of(task={"tone": "classifier", "stars": "regressor"})
    named.fit(texts, {"tone": labels, "stars": labels * 2.0}, verbose=0)
    found = named.predict(texts, verbose=0)
    assert found["tone"].shape == (6, 2) and found["stars"].shape == (6,)


@pytest.mark.slow
def test_pairs_datasets_and_generators(learned):
    model, texts, labels = learned
    expected = model.predict(texts, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
    for batches in (dataset.batch(7), dataset):
        found = model.predict(batches.map(lambda text, _: text), verbose=0)
        assert_close(found, expected, 1e-5, "logits")
    loss = model.evaluate(texts, labels, verbose=0)
    assert model.evaluate(dataset.batch(7), verbose=0) == pytest.approx(loss, abs=1e-5)
    pairs = model_of()
    short, _ = reviews(len(texts))
    before = pairs.head.dense.kernel.numpy()
    rows = range(0, len(texts), 5)
    stream = (((short[i : i + 5], texts[i : i + 5]), labels[i : i + 5]) for i in rows)
    pairs.fit(stream, verbose=0)
    assert np.abs(pairs.head.dense.kernel.numpy() - before).max() > 1e-6
    assert pairs.fields == ("text", "text_pair")
    packed = pairs.preprocessor((short, texts))
    assert packed["token_ids"].shape[1] > 1
    assert pairs.predict((short, texts), verbose=0).shape == (len(texts), 2)


def test_weights_of_a_preset_read_windows(learned, tmp_path):
    """A model that truncates is the start of one that does not."""
    learned[0].save_preset(tmp_path / "preset")
    path = tmp_path / "preset"
    model = keras_recbert.build(
        "bert_tiny", task="classifier", weights=path, long_texts="windows", stride=4
    )
    assert model.preprocessor.stride == 4
    again = keras_recbert.build("bert_tiny", task="classifier", weights=path)
    assert again.long_texts == "truncate"
    assert type(again.preprocessor) is TextPreprocessor


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"long_texts": "window"}, "must be one of 'truncate', 'windows'. Received"),
        ({"window_pooling": "sum"}, "must be one of 'mean', 'max'. Received"),
        (
            {"long_texts": "truncate", "window_pooling": "max"},
            "Add long_texts='windows', or leave it out",
        ),
        ({"truncation": "only_first"}, "no argument 'truncation'"),
        ({"long_texts": "truncate", "stride": 3}, "no argument 'stride'"),
        ({"task": "multiple_choice"}, "preprocessor is a ChoicePreprocessor"),
        ({"task": "question_answering"}, "Received: task='question_answering'"),
        ({"task": "pretrainer"}, "long_texts"),
        ({"stride": 0}, "`stride` must be a whole number"),
        ({"vocabulary": None, "vocabulary_size": 30, "stride": 3}, "need a vocabulary"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        model_of(**arguments)


def test_a_packer_of_the_other_kind_is_refused():
    encoder = keras_recbert.build("bert_tiny", num_layers=1, vocabulary_size=64)
    for packer, kind in (
        (TextPreprocessor, {"long_texts": "windows"}),
        (WindowPreprocessor, {}),
    ):
        tokenizer = keras_recbert.text.WordPieceTokenizer(VOCABULARY)
        with pytest.raises(ValueError, match="belongs to a model with long_texts="):
            TextClassifier(encoder, packer(tokenizer), **kind)


def test_hugging_face_has_no_windows(tmp_path):
    with pytest.raises(ValueError, match="reads one row of a text"):
        model_of(pooling="first").save_huggingface(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
