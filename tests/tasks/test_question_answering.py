"""Questions on contexts: what a user types, and what comes back."""

import csv
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from toy_questions import quiz, write_quiz
from toy_texts import SIZES, VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.tasks.text_model import TextModel


def model_of(seed=0, **arguments):
    arguments = {"max_sequence_length": 24, "stride": 4, "dropout": 0.0, **arguments}
    return tiny_model(task="question_answering", seed=seed, **arguments)


@pytest.fixture(scope="module")
def learned():
    x, y = quiz()
    model = model_of(hidden_dim=32, max_sequence_length=40)
    model.fit(x, y, epochs=12, batch_size=8, learning_rate=3e-3, verbose=0)
    return model, x, y


def test_examples_are_columns():
    with pytest.raises(ValueError, match="a list. Give columns: {'question': "):
        model_of().predict([{"question": "a", "context": "b"}])


def test_a_user_trains_and_asks(learned):
    model, x, y = learned
    assert type(model) is TextModel
    found = model.predict(x, verbose=0)
    scores = model.head.scores(("exact_match", "f1"), y, found)
    assert scores["exact_match"] > 0.5  # by chance 0.1
    for context, text, start, end, score in zip(
        x["context"],
        *(found[key] for key in ("answer", "start", "end", "score")),
        strict=True,
    ):
        assert context.encode()[start:end] == text
        assert 0 < score <= 1
    one = model.predict({k: v[:1] for k, v in x.items()}, verbose=0)
    assert one["answer"][0] == found["answer"][0]
    loss, accuracy = model.evaluate(x, y, verbose=0)
    assert np.isfinite(loss) and 0 <= accuracy <= 1


def test_every_file_answers_the_same(learned, tmp_path):
    model, x, _ = learned
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        assert again.fields == ("question", "context")
        found = again.predict(x, verbose=0)
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value)
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    found = served["serving_default"](
        question=tf.constant(x["question"]), context=tf.constant(x["context"])
    )
    assert set(found) == set(expected)
    for key, value in expected.items():
        if value.dtype.kind == "f":
            assert_close(found[key], value, 1e-5, key)
        else:
            assert np.array_equal(found[key].numpy(), value), key
    # A context far beyond the row, and one without a word, beside others.
    long = " ".join(["story"] * 300) + " film fine"
    found = served["serving_default"](
        question=tf.constant(["film!", "film!"]), context=tf.constant([long, ""])
    )
    start, end = int(found["start"][0]), int(found["end"][0])
    assert long.encode()[start:end] == found["answer"][0].numpy()
    assert (
        found["answer"][1] == b"" and found["score"][1] == 0 and found["start"][1] < 0
    )


class Pages(keras.utils.PyDataset):
    """Batches of 4; behind the last one there are empty ones, not an IndexError."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return -(-len(self.y) // 4)

    def __getitem__(self, index):
        rows = slice(4 * index, 4 * index + 4)
        return {name: column[rows] for name, column in self.x.items()}, self.y[rows]


def test_windows_are_joined(eager_steps):
    """Answers to contexts of several rows are those of the spans of all rows."""
    x, y = quiz(9)
    model = model_of(max_sequence_length=12)
    packed = model.preprocessor((x["question"], x["context"]))
    assert len(packed["example"]) > 2 * len(y)
    found = model.predict(x, verbose=0, batch_size=4)
    columns = tuple(map(tf.constant, (x["question"], x["context"])))
    expected = model.answer_texts(columns)
    for key, value in expected.items():
        if value.dtype.is_floating:
            assert_close(found[key], value, 1e-5, key)
        else:
            assert np.array_equal(found[key], value.numpy())
    batches = tf.data.Dataset.from_tensor_slices(x).batch(4)
    assert np.array_equal(model.predict(batches)["answer"], found["answer"])
    pages = Pages(x, y)
    assert np.array_equal(model.predict(pages)["answer"], found["answer"])
    with pytest.raises(ValueError, match="`steps` would leave out rows.*steps=1"):
        model.predict(x, steps=1)
    targets = model.head.read_labels(x, y)
    model.fit(tf.data.Dataset.from_tensor_slices((x, targets)).batch(4), verbose=0)


def test_an_answer_is_learned_where_it_has_most_context(eager_steps):
    x, y = quiz(5)
    model = model_of(max_sequence_length=14, training_windows="most_context")
    model.fit(x, y, epochs=1, batch_size=8, verbose=0)
    assert model.head.get_config()["training_windows"] == "most_context"
    packed = model.preprocessor((x["question"], x["context"]))
    targets = model.head.row_targets(packed, model.head.read_labels(x, y)).numpy()
    counts = targets[:, 0] >= 0
    assert 0 < (targets[:, 0] > 0).sum() <= len(y) and not counts.all()
    logits = model({name: packed[name] for name in model.input}).numpy()
    losses = keras.ops.sparse_categorical_crossentropy(
        np.maximum(targets, 0), logits, from_logits=True
    ).numpy()
    loss, accuracy = model.evaluate(x, y, verbose=0)
    # A row that does not count has the loss 0, and the accuracy is of the others.
    assert loss == pytest.approx((losses.mean(1) * counts).mean(), abs=1e-5)
    right = logits.argmax(-1) == targets
    assert accuracy == pytest.approx(right[counts].mean(), abs=1e-6)


def test_forms_of_answers():
    model = model_of()
    x = {"question": ["film", "film"], "context": ["é film good", "a film bad a"]}
    expected = [[8, 12], [7, 10]]
    for y in (
        ["good", "bad"],
        [{"text": "good", "answer_start": 7}, {"text": ["bad", "a"]}],
        [[{"text": "good", "answer_start": 7}], {"text": ["bad"], "answer_start": [7]}],
        [[{"text": b"good", "answer_start": np.int64(7)}], [b"bad"]],
        np.array([{"text": np.array(["good"]), "answer_start": np.array([7])}, "bad"]),
        np.array(expected),
    ):
        assert model.head.read_labels(x, y).tolist() == expected
        columns = {name: tf.constant(column) for name, column in x.items()}
        assert model.head.read_labels(columns, y).tolist() == expected


FORMS = "must hold an answer for each example: .*int array"
BYTES = "from 0 to {} at index {}, neither inside a character.*Received: "


@pytest.mark.parametrize(
    "y, message",
    [
        (["dull", "bad"], "must be in its context, .*'dull' at index 0"),
        (["good", "a"], "must be in its context once, .*'a' at index 1"),
        (["good", None], "needs an answer. Received none at index 1.*no_answer=True"),
        (
            ["good", {"text": "bad", "answer_start": 3}],
            "at its `answer_start`.*'bad' at 3, where there is 'ilm', at index 1",
        ),
        (["good"], "2 contexts, 1 answers"),
        (np.array([3, 4]), r"Received: shape \(2,\)"),
        (np.array([[3, 4], [-1, -1]]), "Received none at index 1"),
        ([{"answer": "good"}, "bad"], FORMS + r".*\{'answer': 'good'\} at index 0"),
        (["good", float("nan")], FORMS + ".*Received: nan at index 1"),
        ([(8, 12), (7, 10)], FORMS + r".*Received: \(8, 12\) at index 0"),
        ([{"text": "good", "answer_start": 7.0}, "bad"], FORMS + ".*7.0} at index 0"),
        (["good", {"text": "bad", "answer_start": "x"}], FORMS + ".*'x'} at index 1"),
        (
            ["good", {"text": ["bad", "a"], "answer_start": [7]}],
            FORMS + r".*'answer_start': \[7\]\} at index 1",
        ),
        (
            [{"text": "good", "answer_start": -4}, "bad"],
            "Received: 'good' at -4, where there is '', at index 0",
        ),
        (np.array([[3, 4], [100, 200]]), BYTES.format(12, 1) + r"\[100, 200\]"),
        (np.array([[3, 4], [5, 3]]), BYTES.format(12, 1) + r"\[5, 3\]"),
        (np.array([[3, 4], [-1, 3]]), BYTES.format(12, 1) + r"\[-1, 3\]"),
        (np.array([[1, 3], [0, 1]]), BYTES.format(12, 0) + r"\[1, 3\]"),  # inside é
        (np.array([[0, 1], [0, 1]]), BYTES.format(12, 0) + r"\[0, 1\]"),
    ],
)
def test_answers_that_are_none_are_refused(y, message):
    model = model_of()
    x = {"question": ["film", "film"], "context": ["é film good", "a film bad a"]}
    with pytest.raises(ValueError, match=message):
        model.fit(x, y, verbose=0)


@pytest.mark.parametrize("y", [["good", "bad"], [8, 7], [[8.0, 12.0], [7.0, 10.0]]])
def test_a_dataset_without_bytes_is_refused(y):
    x = {"question": ["film", "film"], "context": ["é film good", "a film bad a"]}
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(2)
    with pytest.raises(
        ValueError, match=r"context\), label.*int \(n, 2\).*read_labels"
    ):
        model_of().fit(batches)


def test_bytes_of_a_dataset_are_checked(eager_steps):
    x = {"question": ["film", "film"], "context": ["é film good", "a film bad a"]}
    batches = tf.data.Dataset.from_tensor_slices((x, [[8, 12], [10, 7]])).batch(2)
    message = BYTES.format(12, 1) + r"\[10, 7\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        model_of().fit(batches, verbose=0)


def test_no_examples_are_refused():
    model, x = model_of(), {"question": [], "context": []}
    none = {name: tf.zeros([0], tf.string) for name in x}
    for call in (
        lambda: model.predict(x),
        lambda: model.fit(x, []),
        lambda: model.evaluate(x, []),
        lambda: model.predict(tf.data.Dataset.from_tensor_slices(none).batch(2)),
    ):
        with pytest.raises(ValueError, match="There is no text"):
            call()
    missing = {"question": ["film"], "context": [None]}
    with pytest.raises(TypeError, match="must hold strings only.*None.*at index 0"):
        model.fit(missing, ["film"])


def test_no_answer(eager_steps):
    x, y = quiz(24)
    y = [None if index % 3 == 0 else one for index, one in enumerate(y)]
    model = model_of(no_answer=True, hidden_dim=32, max_sequence_length=40)
    model.fit(x, y, epochs=4, learning_rate=3e-3, verbose=0)
    found = model.predict(x, verbose=0)
    none = found["no_answer_score"] > 0
    assert np.array_equal(none, found["answer"] == b"")
    model.head.tune(y, found)
    tuned = model.predict(x, verbose=0)
    none = tuned["no_answer_score"] > model.head.no_answer_threshold
    assert np.array_equal(none, tuned["answer"] == b"")
    # The scores are those of the answers that a tuned model gives.
    from keras_recbert.metrics.squad import squad_scores

    gold = [[] if one is None else one["text"] for one in y]
    answers = [answer.decode() for answer in tuned["answer"]]
    assert model.head.scores(("f1",), y, found) == squad_scores(("f1",), gold, answers)
    # No answer is among the best, once; and they are in order behind the first.
    assert ((tuned["best_answers"] == b"").sum(1) >= 1).all()
    assert (np.diff(tuned["best_scores"][:, 1:]) <= 1e-6).all()


def test_the_decoder_of_huang():
    model = model_of(decoder="blstm")
    # Huang et al. 2020, section 3.3: two; each direction is as wide as the encoder.
    decoder = [one for one in model.layers if one.name.startswith("decoder")]
    assert [layer.units for layer in decoder] == [SIZES["hidden_dim"]] * 2


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"decoder": "gru"}, "`decoder` must be one of 'linear', 'blstm'"),
        ({"pooling": "mean"}, "reads every token, so there is no pooling"),
        ({"num_best": 0}, "`num_best` must be a whole number"),
        ({"training_windows": "best"}, "must be one of 'all', 'most_context'"),
        ({"stride": -1}, "`stride` must be a whole number"),
        ({"truncation": "waterfall"}, "truncation"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        keras_recbert.build(
            "bert_tiny",
            task="question_answering",
            vocabulary=VOCABULARY,
            **{**SIZES, **arguments},
        )


def test_padding_changes_nothing():
    x, _ = quiz(3)
    for decoder in ("linear", "blstm"):
        model = model_of(decoder=decoder, max_sequence_length=48)
        packed = model.preprocessor((x["question"], x["context"]))
        ids = {name: packed[name] for name in model.input}
        longer = {name: tf.pad(value, [[0, 0], [0, 5]]) for name, value in ids.items()}
        logits, other = model(ids), model(longer)
        assert_close(other[:, :, : logits.shape[2]], logits, 1e-5, decoder)
        assert (keras.ops.max(other[:, :, logits.shape[2] :]) < -1e8).numpy()


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    """A data set in SQuAD's form: train, files of answers, a served model."""
    from keras_recbert.cli import main

    write_quiz(tmp_path)
    run = tmp_path / "run"
    line = f"finetune --task squad1 --data-dir {tmp_path} --model bert_tiny"
    line += f" --output-dir {run} --vocabulary-size 60 --epochs 1"
    line += " --overrides num_layers 1 hidden_dim 18 num_heads 2 num_best 3"
    line += " training_windows most_context"
    main(line.split())
    results = json.loads((run / "results.json").read_text())
    assert (
        0
        <= results["scores"]["validation_exact_match"]
        <= results["scores"]["validation_f1"]
    )
    predictions = json.loads((run / "predictions.json").read_text())
    assert list(predictions) == [f"dev{index}" for index in range(16)]
    best = json.loads((run / "nbest.json").read_text())
    x, _ = quiz(16, 1)
    model = keras_recbert.load(run / "preset")
    assert model.head.num_best == 3
    assert model.head.training_windows == "most_context"
    answers = model.predict(x, verbose=0)["answer"]
    for (id, text), answer in zip(predictions.items(), answers, strict=True):
        assert best[id][0]["text"] == text == answer.decode() and len(best[id]) <= 3
    served = tf.saved_model.load(str(run / "savedmodel")).signatures["serving_default"]
    found = served(**{name: tf.constant(column) for name, column in x.items()})
    assert np.array_equal(found["answer"].numpy(), answers)

    capsys.readouterr()
    served = str(run / "savedmodel")
    main(["predict", served, "film!", x["context"][0], "--pairs"])
    line = capsys.readouterr().out
    assert line.endswith(f"  film! | {x['context'][0]}\n") and " %, bytes " in line
    with (tmp_path / "asked.csv").open("w", newline="", encoding="utf-8") as file:
        rows = zip("abc", *x.values(), strict=False)
        csv.writer(file).writerows([("id", *x), *rows])
    paths = [
        "--input",
        str(tmp_path / "asked.csv"),
        "--output",
        str(tmp_path / "o.csv"),
    ]
    main(["predict", served, *paths])
    with (tmp_path / "o.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"].encode() for row in rows] == answers[:3].tolist()
    assert all(0 < float(row["score"]) <= 1 for row in rows)
