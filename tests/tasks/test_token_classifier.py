"""Tags of words: what a user types, and what comes back."""

import csv
import json

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close
from toy_texts import DISLIKED, FILLERS, LIKED, tiny_model

import keras_recbert
from keras_recbert.data.conll import read_conll
from keras_recbert.metrics.tagging import entities_of, tagging_scores
from keras_recbert.tasks.text_model import TextModel

TAGS = ["O", "B-good", "I-good", "B-bad"]


def tagged(number=40, seed=0):
    """Sentences of 1 to 21 words; runs of liked words and disliked ones are marked."""
    rng = np.random.default_rng(seed)
    sentences, tags = [], []
    for index in range(number):
        words, own = [], []
        while len(words) <= (7 * index) % 19:
            kind = rng.integers(4)
            if kind == 0:
                run = list(rng.choice(LIKED, 1 + rng.integers(2)))
                words += run
                own += ["B-good", "I-good"][: len(run)]
                words, own = [*words, "films"], [*own, "O"]  # of two word pieces
            elif kind == 1:
                words.append(rng.choice(DISLIKED))
                own.append("B-bad")
            else:
                words.append(rng.choice([*FILLERS, "\u200b"]))
                own.append("O")
        sentences.append(list(map(str, words)))
        tags.append(own)
    return sentences, tags


def model_of(name="bert_tiny", **arguments):
    arguments = {"label_names": TAGS, "dropout": 0.0, **arguments}
    return tiny_model(name, task="token_classifier", **arguments)


@pytest.fixture(scope="module")
def learned():
    x, y = tagged()
    model = model_of("swish_tiny", hidden_dim=32, max_sequence_length=16)
    model.fit(x, y, epochs=10, batch_size=8, learning_rate=5e-3, verbose=0)
    return model, x, y


def test_a_frozen_encoder_under_a_blstm_decoder(eager_steps):
    """Features of an encoder that is not trained (Devlin et al. 2018, section 5.4)."""
    x, y = tagged(12)
    arguments = {"decoder": "blstm", "decoder_units": 5, "freeze": "encoder"}
    model = model_of(**arguments)
    decoder = [one for one in model.layers if one.name.startswith("decoder")]
    assert [layer.units for layer in decoder] == [5, 5]
    before = {weight.path: weight.numpy() for weight in model.weights}
    model.fit(x, y, epochs=1, batch_size=4, learning_rate=1e-2, verbose=0)
    encoder = {weight.path for weight in model.encoder.weights}
    assert len(encoder) < len(before)
    for weight in model.weights:
        moved = np.any(weight.numpy() != before[weight.path])
        assert moved == (weight.path not in encoder), weight.path
    config = model.get_config()["head"]
    assert (config["decoder"], config["decoder_units"]) == ("blstm", 5)
    packed = model.preprocessor(x)
    features = {name: packed[name][:2, :7].numpy() for name in model.input}
    longer = {name: np.pad(ids, [(0, 0), (0, 4)]) for name, ids in features.items()}
    assert_close(model(longer)[:, :7], model(features))


def test_a_wrong_decoder_is_told():
    with pytest.raises(ValueError, match="`decoder` must be one of 'linear', 'blstm'"):
        model_of(decoder="gru")
    with pytest.raises(ValueError, match="`decoder_units` must be a whole number of"):
        model_of(decoder="blstm", decoder_units=0)


def assert_answers_equal(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        one = found[name].numpy() if tf.is_tensor(found[name]) else found[name]
        if value.dtype.kind == "f":
            assert_close(one, value, 1e-5, name)
        else:
            assert np.array_equal(one, value), name


def test_a_user_trains_and_asks(learned):
    model, x, y = learned
    assert type(model) is TextModel
    packed = model.preprocessor(x)
    assert len(packed["example"]) > len(x)  # some sentences have several rows
    found = model.predict(x, verbose=0)
    longest = max(map(len, x))
    assert found["tags"].shape == found["scores"].shape == (len(x), longest)
    scores = model.head.scores(("accuracy", "entity_f1"), y, found)
    assert scores["accuracy"] > 0.95 and scores["entity_f1"] > 0.9
    for index, words in enumerate(x):
        tags = [tag.decode() for tag in found["tags"][index]]
        assert all(tags[: len(words)]) and not any(tags[len(words) :])
        assert (found["scores"][index, : len(words)] > 0.25).all()
        assert not found["scores"][index, len(words) :].any()
        labels = [label.decode() for label in found["entity_labels"][index] if label]
        starts, ends = found["entity_starts"][index], found["entity_ends"][index]
        entities = list(zip(labels, starts, ends, strict=False))
        assert entities == entities_of(tags[: len(words)])
    ids = [[TAGS.index(tag) for tag in tags] for tags in y]
    assert (
        model.head.scores(("accuracy",), ids, found)["accuracy"] == scores["accuracy"]
    )


def test_loss_and_accuracy_are_those_of_first_word_pieces(learned):
    model, x, y = learned
    loss, accuracy = model.evaluate(x, y, batch_size=len(x), verbose=0)
    found = model.predict(x, verbose=0)
    # The probability of a right tag is its score, of a wrong one it is not known.
    assert accuracy == pytest.approx(
        tagging_scores(
            ("accuracy",),
            y,
            [list(map(bytes.decode, filter(None, t))) for t in found["tags"]],
        )["accuracy"],
        abs=1e-6,
    )
    packed = model.preprocessor(x)
    logits = model({name: packed[name] for name in model.input})
    of_rows = [[] for _ in packed["example"]]
    for row, word in np.argwhere(packed["word"].numpy() >= 0):
        example, index = packed["example"][row], packed["word"][row, word]
        tag = TAGS.index(y[int(example)][int(index)])
        of_rows[row].append(-tf.nn.log_softmax(logits[row, word])[tag])
    assert sum(map(len, of_rows)) == sum(map(len, x))
    means = [float(np.mean(losses)) if losses else 0.0 for losses in of_rows]
    assert loss == pytest.approx(np.mean(means), abs=1e-4)


@pytest.fixture(scope="module")
def served(learned, tmp_path_factory):
    """Signatures of the model that learned."""
    path = tmp_path_factory.mktemp("tagger") / "served"
    learned[0].export_savedmodel(path)
    return tf.saved_model.load(str(path)).signatures


def test_every_file_answers_the_same(learned, served, tmp_path):
    model, x, _ = learned
    expected = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        assert again.fields == ("words",)
        assert again.head.get_config() == {
            "label_names": TAGS,
            "decoder": "linear",
            "decoder_units": 768,
        }
        assert_answers_equal(again.predict(x, verbose=0), expected)
    words = tf.ragged.constant(x).to_tensor("")
    assert_answers_equal(served["words"](words=words), expected)
    # Wider than the words: as a server pads.
    wider = served["words"](words=tf.pad(words, [[0, 0], [0, 3]]))
    assert np.array_equal(wider["tags"][:, :-3].numpy(), expected["tags"])


def test_raw_texts_are_answered_in_their_bytes(learned, served):
    model, _, _ = learned
    texts = ["A  góod fine fílms. Dull 😀!", "", "\u200b", "warm " * 40]
    found = served["serving_default"](text=texts)
    found = {name: value.numpy() for name, value in found.items()}
    words = [[word for word in row if word] for row in found["words"]]
    assert [word.decode() for word in words[0]] == (
        ["A", "góod", "fine", "fílms", ".", "Dull", "😀", "!"]
    )
    assert not words[1] and not words[2] and len(words[3]) == 40
    by_words = model.predict([[w.decode() for w in row] for row in words], verbose=0)
    assert np.array_equal(found["tags"], by_words["tags"])
    assert_close(found["scores"], by_words["scores"], 1e-5, "scores")
    assert np.array_equal(found["entity_labels"], by_words["entity_labels"])
    assert found["entity_starts"][0, 0] == len("A  ")
    for index, text in enumerate(texts):
        for name in ("word", "entity"):
            texts_of = found["words" if name == "word" else "entities"][index]
            starts, ends = found[f"{name}_starts"][index], found[f"{name}_ends"][index]
            for part, start, end in zip(texts_of, starts, ends, strict=True):
                if part:
                    assert text.encode()[start:end] == part
                else:
                    assert start == end == -1


def test_batches_of_words(learned):
    model, x, y = learned
    expected = model.predict(x, verbose=0)
    words = tf.ragged.constant(x)
    batches = tf.data.Dataset.from_tensor_slices(words).batch(7)
    # Batches are as wide as their longest sentence, answers as the longest of all.
    assert_answers_equal(model.predict(batches), expected)
    assert_answers_equal(model.predict(words, batch_size=4, verbose=0), expected)
    targets = model.head.read_labels({"words": x}, y)
    labelled = tf.data.Dataset.from_tensor_slices((words, targets)).batch(40)
    loss = model.evaluate(x, y, batch_size=40, verbose=0)
    assert model.evaluate(labelled, verbose=0) == pytest.approx(loss, abs=1e-5)
    single = labelled.unbatch()
    assert model.evaluate(single, batch_size=40, verbose=0) == pytest.approx(
        loss, abs=1e-5
    )


@pytest.mark.parametrize(
    "tags", [[[1, 0, 1], [0, -1, -1]], [[1], [0]], [[1, 0], [7, -1]]]
)
def test_tags_of_a_dataset_are_those_of_its_words(tags, eager_steps):
    words = tf.constant([["a", "b"], ["a", ""]])
    batches = tf.data.Dataset.from_tensors((words, tf.constant(tags)))
    with pytest.raises((ValueError, tf.errors.OpError), match="`y` must|ids of tags"):
        model_of(max_sequence_length=12).fit(batches, verbose=0)


def test_a_run_of_batches_trains(eager_steps):
    x, y = tagged(12)
    model = model_of(max_sequence_length=12)
    ids = [[TAGS.index(tag) for tag in tags] for tags in y]

    def stream():
        for start in range(0, 12, 5):
            yield {"words": x[start : start + 5]}, ids[start : start + 5]

    before = model.head.dense.kernel.numpy()
    model.fit(stream(), verbose=0)
    assert np.abs(model.head.dense.kernel.numpy() - before).max() > 1e-6
    history = model.fit(x, y, validation_split=0.25, epochs=1, verbose=0).history
    assert 0 <= history["val_accuracy"][0] <= 1


@pytest.mark.parametrize(
    "y, message",
    [
        ([["O"]], "2 examples of words, 1 of tags"),
        ([["O", "O"], ["O", "O"]], "2 words and 2 tags|1 words and 2 tags at index 1"),
        (
            [["O", "B-god"], ["O"]],
            "'B-god' for word 1 at index 0. Did you mean 'B-good'",
        ),
        ([["O", 4], ["O"]], "ids, 0 to 3. Received: 4 for word 1 at index 0"),
        (np.array([[0, 1], [7, -1]]), "Received: 7 for word 0 at index 1"),
        (np.array([[0, 1], [0, 1]]), "1 words and 2 tags at index 1"),
        (np.array([[0.5, 1], [0, 1]]), "dtype float64"),
    ],
)
def test_tags_that_do_not_fit_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        model_of().fit([["a", "film"], ["good"]], y, verbose=0)


@pytest.mark.parametrize("names", [[], ["O"], ["O", "O"], ["O", ""], ["O", 3]], ids=str)
def test_tags_that_are_no_names_are_refused(names):
    with pytest.raises(ValueError, match="`label_names` must be two different tags"):
        model_of(label_names=names)


def test_plain_tags_have_no_entities():
    model = model_of(label_names=["NOUN", "VERB", "O"])
    found = model.predict([["film", "good"], ["a"]], verbose=0)
    assert set(found) == {"tags", "scores"}
    check = type(model.head).check_metrics
    check(("accuracy",), model.head.get_config())
    with pytest.raises(ValueError, match="entity_f1 need tags of entities"):
        check(("entity_f1",), model.head.get_config())
    with pytest.raises(ValueError, match="has no metric 'f1'"):
        check(("f1",), model.head.get_config())


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    """A data set in columns: train, files of predictions, a served model."""
    from keras_recbert.cli import main

    names = {"good": "group", "bad": "product"}
    (tmp_path / "wnut17").mkdir()
    for split, seed in (("train", 0), ("dev", 1)):
        lines = []
        for words, tags in zip(*tagged(16, seed), strict=True):
            for word, tag in zip(words, tags, strict=True):
                prefix, _, label = tag.partition("-")
                lines.append(f"{word}\t{f'{prefix}-{names[label]}' if label else tag}")
            lines.append("")
        path = tmp_path / "wnut17" / f"{split}.conll"
        path.write_text("\n".join(lines), encoding="utf-8")
    run = tmp_path / "run"
    line = f"finetune --task wnut17 --data-dir {tmp_path} --model bert_tiny"
    line += f" --output-dir {run} --vocabulary-size 60 --epochs 1"
    line += " --max-sequence-length 16 --learning-rate 5e-3"
    line += " --overrides num_layers 1 hidden_dim 18 num_heads 2 stride 3"
    main(line.split())
    results = json.loads((run / "results.json").read_text())
    written = (run / "predictions.conll").read_text(encoding="utf-8")
    sentences = [block.splitlines() for block in written.split("\n\n")[:-1]]
    rows = [[line.split(" ") for line in lines] for lines in sentences]
    validation = read_conll(tmp_path / "wnut17" / "dev.conll", "validation")
    words = [[row[0] for row in sentence] for sentence in rows]
    gold = [[row[1] for row in sentence] for sentence in rows]
    found = [[row[2] for row in sentence] for sentence in rows]
    assert words == validation.fields["words"] and gold == validation.targets["tags"]
    scores = tagging_scores(("entity_f1", "accuracy"), gold, found)
    for name, score in scores.items():
        assert results["scores"][f"validation_{name}"] == pytest.approx(score)

    capsys.readouterr()
    served = str(run / "savedmodel")
    main(["predict", served, "good fine films"])
    assert capsys.readouterr().out.endswith("  good fine films\n")
    with (tmp_path / "asked.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", "text"], ["1", "dull film"], ["2", ""]])
    for model in (served, str(run / "preset")):
        output = str(tmp_path / "answered.csv")
        files = ["--input", str(tmp_path / "asked.csv"), "--output", output]
        main(["predict", model, *files, "--overwrite"])
        with open(output, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [row["id"] for row in rows] == ["1", "2"]
        assert rows[1]["prediction"] == "" and float(rows[1]["score"]) == 1
        assert 0 < float(rows[0]["score"]) <= 1
