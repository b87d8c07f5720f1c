"""Texts with choices: what a user types, and what comes back."""

import csv
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference
from toy_texts import texts_with_choices, tiny_model, write_arc

import keras_recbert
from keras_recbert.tasks.text_model import TextModel
from keras_recbert.text.text_preprocessor import TextPreprocessor


def model_of(name="bert_tiny", seed=0, **arguments):
    arguments = {"max_sequence_length": 24, "dropout": 0.0, **arguments}
    return tiny_model(name, task="multiple_choice", seed=seed, **arguments)


def part(x, rows):
    return {name: column[rows] for name, column in x.items()}


@pytest.fixture(scope="module")
def learned():
    x, y = texts_with_choices()
    model = model_of()
    model.fit(x, y, epochs=6, batch_size=8, learning_rate=1e-2, verbose=0, seed=0)
    return model, x, y


def test_a_user_trains_and_asks(learned):
    model, x, y = learned
    assert type(model) is TextModel
    logits = model.predict(x, verbose=0)
    assert logits.shape == (20, 4) and logits.dtype == "float32"
    scores = model.head.scores(("accuracy",), np.array(y), logits)
    assert scores["accuracy"] > 0.8  # by chance 0.4
    loss, accuracy = model.evaluate(x, y, verbose=0)
    # Padding choices are no part of the softmax.
    losses = [
        -np.log(np.exp(row[label]) / np.exp(row[: len(choices)]).sum())
        for row, label, choices in zip(logits, y, x["choices"], strict=True)
    ]
    assert loss == pytest.approx(np.mean(losses), abs=1e-5)
    assert accuracy == pytest.approx(scores["accuracy"])


def test_numbers_are_those_of_single_pairs(learned):
    model, x, _ = learned
    packer = TextPreprocessor(model.preprocessor.tokenizer, max_sequence_length=24)
    for pooling in ("first", "mean"):
        other = model_of(pooling=pooling)
        logits = other.predict(x, verbose=0)
        kernel, bias = (weight.numpy() for weight in other.head.dense.weights)
        for index in (0, 1, 2, 19):
            for place, choice in enumerate(x["choices"][index]):
                row = other.encoder(packer(([x["text"][index]], [choice])))
                vector = row["pooled_output"]
                if pooling == "mean":
                    vector = keras.ops.mean(row["sequence_output"], axis=1)
                expected = vector.numpy()[0] @ kernel[:, 0] + bias[0]
                assert abs(logits[index, place] - expected) < 1e-5
            assert (logits[index, place + 1 :] == -1e9).all()


@pytest.mark.parametrize("name", ["bert_tiny", "swish_tiny", "trans_blstm_tiny"])
def test_padding_choices_change_nothing(name):
    """Neither logits nor gradients, of a whole row of padding either."""
    x, y = texts_with_choices(3)
    model = model_of(name)
    packed = model.preprocessor(x)
    padded = {
        name: tf.pad(ids, [[0, 0], [0, 2], [0, 3]]) for name, ids in packed.items()
    }
    found = []
    for ids in (packed, padded):
        with tf.GradientTape() as tape:
            logits = model(ids)
            loss = model.head.loss()(tf.constant(y), logits)
        weights = model.trainable_variables
        found.append((logits, [loss, *tape.gradient(loss, weights)]))
    assert_close(found[1][0][:, :4], found[0][0], 1e-5, "logits")
    assert (found[1][0][:, 4:].numpy() == -1e9).all()
    for one, other in zip(found[0][1], found[1][1], strict=True):
        one, other = map(tf.convert_to_tensor, (one, other))
        assert np.isfinite(one).all()
        assert_close(other, one, 1e-5, "loss and gradients")


def test_every_file_answers_the_same(learned, tmp_path):
    model, x, y = learned
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        assert again.fields == ("text", "choices")
        np.testing.assert_array_equal(again.predict(x, verbose=0), expected)
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(str(tmp_path / "served")).signatures
    choices = tf.ragged.constant(x["choices"])
    columns = {"text": tf.constant(x["text"]), "choices": choices.to_tensor("")}
    found = served["serving_default"](**columns)
    assert set(found) == {"label", "index", "scores"}
    index = expected.argmax(1)
    assert found["index"].numpy().tolist() == index.tolist()
    labels = [own[place] for own, place in zip(x["choices"], index, strict=True)]
    assert [one.decode() for one in found["label"].numpy()] == labels
    assert_close(found["scores"], keras.ops.softmax(expected), 1e-5, "scores")
    assert (found["scores"].numpy()[expected == -1e9] == 0).all()
    # Padding of a request beyond its longest list.
    wider = {**columns, "choices": choices.to_tensor("", shape=[None, 7])}
    scores = served["serving_default"](**wider)["scores"]
    assert scores.shape == (20, 7) and not np.any(scores[:, 4:])
    assert_close(scores[:, :4], found["scores"], 1e-6, "scores")
    packed = served["ids"](**model.preprocessor(x))
    assert_close(packed["scores"], found["scores"], 1e-5, "scores of ids")


def test_logits_of_batches_are_joined(learned):
    """Whatever number of choices each batch has."""
    model, x, _ = learned
    expected = model.predict(x, verbose=0)
    ragged = {**x, "choices": tf.ragged.constant(x["choices"])}
    texts = tf.data.Dataset.from_tensor_slices(ragged).map(lambda one: one)
    pairs = texts.map(lambda texts: (texts["text"], texts["choices"]))
    for found in (
        model.predict(x, batch_size=1, verbose=0),
        model.predict((x["text"], ragged["choices"]), batch_size=3, verbose=0),
        model.predict(texts, batch_size=3, verbose=0),
        model.predict(pairs.ragged_batch(7), verbose=0),
        model.predict((part(x, slice(i, i + 4)) for i in range(0, 20, 4)), verbose=0),
    ):
        assert_close(found, expected, 1e-5, "logits")


def batches_of(x, y):
    yield from ((part(x, slice(i, i + 5)), y[i : i + 5]) for i in range(0, 20, 5))


@pytest.mark.parametrize("form", ["dataset", "examples", "generator", "held out"])
def test_training_on_every_form(eager_steps, form):
    x, y = texts_with_choices(20)
    ragged = {**x, "choices": tf.ragged.constant(x["choices"])}
    dataset = tf.data.Dataset.from_tensor_slices((ragged, y))
    model = model_of()
    before = model.head.dense.kernel.numpy()
    if form == "dataset":
        model.fit(dataset.batch(6), verbose=0)
    elif form == "examples":
        model.fit(dataset.map(lambda *element: element), batch_size=7, verbose=0)
    elif form == "generator":
        model.fit(batches_of(x, y), verbose=0)
    else:
        history = model.fit(x, y, validation_split=0.3, verbose=0).history
        assert np.isfinite(history["val_loss"]).all()
    assert largest_difference(model.head.dense.kernel, before) > 1e-6


def test_packed_ids(eager_steps):
    x, y = texts_with_choices(7)
    model = model_of()
    packed = {name: ids.numpy() for name, ids in model.preprocessor(x).items()}
    before = model.head.dense.kernel.numpy()
    model.fit(packed, y, verbose=0)
    assert largest_difference(model.head.dense.kernel, before) > 1e-5
    assert_close(
        model.predict(packed, verbose=0), model.predict(x, verbose=0), 1e-5, ""
    )


def test_forms_of_labels():
    head = model_of().head
    x, _ = texts_with_choices(3)
    texts = [own[place] for own, place in zip(x["choices"], (1, 2, 0), strict=True)]
    dense = tf.ragged.constant(x["choices"]).to_tensor("")
    for choices in (
        x["choices"],
        dense,
        dense.numpy(),
        tf.ragged.constant(x["choices"]),
    ):
        for labels in (
            [1, 2, 0],
            np.array([1.0, 2.0, 0.0]),
            texts,
            np.array(texts, "S"),
        ):
            found = head.read_labels({**x, "choices": choices}, labels)
            assert found.tolist() == [1, 2, 0] and found.dtype == "int32"


@pytest.mark.parametrize(
    "labels, message",
    [
        ([0, 3, 0], "from 0 to 2 at index 1, or their texts. Received: 3"),
        ([0, 0, -1], "at index 2, or their texts. Received: -1"),
        ([0.5, 0, 0], "at index 0, or their texts. Received: 0.5"),
        ([0, None, 0], "at index 1, or their texts. Received: None"),
        ([0, 0, "film"], "Received: 'film' at index 2, which is not among"),
        ([0, 0], "Received: 3 examples, 2 labels"),
    ],
)
def test_labels_that_are_no_choice_are_refused(labels, message):
    x, _ = texts_with_choices(3)
    with pytest.raises(ValueError, match=message):
        model_of().fit(x, labels, verbose=0)


def test_labels_of_a_dataset_that_are_padding_are_refused(eager_steps):
    x = {"text": ["a", "film"], "choices": [["good", "bad"], ["good", "bad", "dull"]]}
    ragged = {**x, "choices": tf.ragged.constant(x["choices"])}
    batches = tf.data.Dataset.from_tensor_slices((ragged, [2, 1])).batch(2)
    model = model_of()
    for call in (model.fit, model.evaluate):
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match="from 0 to 1 at index 0.*Received: 2 for the choices.*'good', 'bad'",
        ):
            call(batches, verbose=0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)  # a loss of the user's, who knows what it takes
    assert model.evaluate(batches, verbose=0, return_dict=True)["loss"] > 1e8
    words = tf.data.Dataset.from_tensor_slices((ragged, ["bad", "bad"])).batch(2)
    with pytest.raises(ValueError, match="with the positions of the right choices"):
        model.fit(words)


@pytest.mark.parametrize("empty", [[], np.array([])])
def test_no_examples_are_refused(empty):
    model, x = model_of(), {"text": empty, "choices": empty}
    none = tf.zeros([0], tf.string), tf.zeros([0, 2], tf.string)
    for call in (
        lambda: model.predict(x),
        lambda: model.fit(x, []),
        lambda: model.predict(tf.data.Dataset.from_tensor_slices(none).batch(2)),
    ):
        with pytest.raises(ValueError, match="There is no text"):
            call()


def test_wrong_input_is_refused():
    model = model_of()
    x, y = texts_with_choices(3)
    twice = {**x, "choices": [["good", "good"], *x["choices"][1:]]}
    with pytest.raises(ValueError, match="'good' at index 0, which is twice or more"):
        model.fit(twice, ["good", *y[1:]], verbose=0)
    few = {**x, "choices": [*x["choices"][:2], ["good"]]}
    for call in (lambda: model.fit(few, y), lambda: model.predict(few)):
        with pytest.raises(ValueError, match="at least two choices.*at index 2"):
            call()
    packed = model.preprocessor(x)
    with pytest.raises(
        ValueError, match="positions of the right choices.*-1 at index 1"
    ):
        model.fit(packed, [0, -1, 0], verbose=0)
    with pytest.raises(ValueError, match="num_choices"):
        model_of(num_choices=4)
    with pytest.raises(ValueError, match="only one of its model"):
        tiny_model(task={"right": "multiple_choice"})


@pytest.mark.slow
def test_the_command(eager_steps, tmp_path, capsys):
    """A data set of choices: train, serve, ask, and predict a file."""
    from keras_recbert.cli import main

    write_arc(tmp_path)
    run = tmp_path / "run"
    line = f"finetune --task arc_challenge --data-dir {tmp_path} --model bert_tiny"
    line += f" --output-dir {run} --vocabulary-size 60 --epochs 1"
    main(f"{line} --overrides num_layers 1 hidden_dim 18 num_heads 2".split())
    results = json.loads((run / "results.json").read_text())
    x, labels = texts_with_choices(13, seed=13)
    model = keras_recbert.load(run / "preset")
    index = model.predict(x, verbose=0).argmax(1)
    assert results["scores"]["validation_accuracy"] == pytest.approx(
        np.mean(index == labels)
    )
    with (run / "predictions.csv").open(encoding="utf-8", newline="") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    assert predicted == [own[i] for own, i in zip(x["choices"], index, strict=True)]

    served = str(run / "savedmodel")
    capsys.readouterr()
    main(["predict", served, x["text"][1], *x["choices"][1]])
    line = capsys.readouterr().out
    chosen = [own[place] for own, place in zip(x["choices"], index, strict=True)]
    assert line.split("%")[0].strip().startswith(chosen[1])
    assert line.endswith(f"  {' | '.join([x['text'][1], *x['choices'][1]])}\n")
    assert main(["predict", served, "film", "good", "--pairs"])
    assert "any number of texts. Leave --pairs out" in capsys.readouterr().err

    asked = tmp_path / "asked.jsonl"
    rows = zip(*x.values(), strict=True)
    asked.write_text("\n".join(json.dumps(dict(zip(x, r, strict=True))) for r in rows))
    paths = ["--input", str(asked), "--output", str(tmp_path / "o.jsonl")]
    for source in (served, str(run / "preset")):
        main(["predict", source, *paths, "--overwrite"])
        rows = (tmp_path / "o.jsonl").read_text().splitlines()
        rows = [json.loads(row) for row in rows]
        assert [row["prediction"] for row in rows] == chosen
        assert all(0.2 < row["score"] <= 1 for row in rows)
