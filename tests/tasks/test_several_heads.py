"""A model with several heads: what a user types, and its numbers."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference
from toy_texts import VOCABULARY, tiny_model
from two_heads import (
    HAS_STARS,
    HEADS,
    IDS,
    LABELS,
    LIKED,
    NAMES,
    QUIET,
    STARS,
    TEXTS,
    WEIGHTS,
    eager,
    make,
    named_model,
    scores,
    slices,
)

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.heads.reading import Reading


@pytest.fixture(scope="module")
def model():
    """Tests leave it as it is."""
    return named_model()


# What a user types ----------------------------------------------------------------


def test_fit_evaluate_and_predict_without_options():
    model = keras_recbert.build(
        "bert_tiny",
        task={"tone": "classifier", "stars": "regressor"},
        vocabulary=VOCABULARY,
        num_layers=1,
    )
    before = {name: one.dense.kernel.numpy() for name, one in model.heads.items()}
    history = model.fit(TEXTS, LABELS).history
    metrics = {"loss", "tone_loss", "tone_accuracy", "stars_loss", "stars_mse"}
    assert set(history) == metrics == set(scores(model, TEXTS, LABELS))
    for name, one in model.heads.items():
        assert largest_difference(one.dense.kernel, before[name]) > 1e-5
    assert model.heads["tone"].label_names == ["bad", "good"]  # found by `fit`
    logits = model.predict(TEXTS)
    assert {name: one.shape for name, one in logits.items()} == {
        "tone": (13, 2),
        "stars": (13,),
    }
    assert all(one.dtype == "float32" for one in logits.values())


def test_files_give_the_model_again(model, tmp_path):
    expected = model.predict(TEXTS, **QUIET)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    model.save_weights(tmp_path / "model.weights.h5")
    again = make({**HEADS, "tone": {**HEADS["tone"], "label_names": ["bad", "good"]}})
    again.load_weights(tmp_path / "model.weights.h5")
    loaded = [keras_recbert.load(tmp_path / name) for name in ("model.keras", "preset")]
    for one in (again, *loaded):
        assert list(one.heads) == ["tone", "stars"]
        assert one.get_config()["head"] == model.get_config()["head"]
        assert one.heads["tone"].label_names == ["bad", "good"]
        logits = one.predict(TEXTS, **QUIET)
        for name in ("tone", "stars"):
            assert_close(logits[name], expected[name], 1e-6, name)


@pytest.mark.slow
def test_a_file_opens_with_keras_in_another_process(model, tmp_path):
    model.save(tmp_path / "model.keras")
    code = (
        "import json, keras, keras_recbert\n"
        "model = keras.models.load_model('model.keras')\n"
        f"logits = model.predict({TEXTS[:2]!r}, verbose=0)\n"
        "print(json.dumps({name: one.tolist() for name, one in logits.items()}))"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for name, logits in model.predict(TEXTS[:2], **QUIET).items():
        assert_close(found[name], logits, 1e-5, name)


def test_a_savedmodel_has_a_signature_for_each_head(model, tmp_path, capsys):
    model.export_savedmodel(tmp_path / "served")
    signatures = tf.saved_model.load(str(tmp_path / "served")).signatures
    assert set(signatures) == {
        *("serving_default", "ids", "tokenize"),
        *("tone", "stars"),
    }
    logits = model.predict(TEXTS, **QUIET)
    texts = tf.constant(TEXTS)
    every = signatures["serving_default"](text=texts)
    of_ids = signatures["ids"](**model.preprocessor(TEXTS))
    keys = {"tone_scores", "tone_label_names", "tone_label", "stars_scores"}
    assert set(every) == set(of_ids) == keys
    for name in ("tone", "stars"):
        own = signatures[name](text=texts)
        expected = model.heads[name].answer(tf.constant(logits[name]))
        assert set(own) == set(expected)
        for key, value in expected.items():
            for found in (own[key], every[f"{name}_{key}"], of_ids[f"{name}_{key}"]):
                if value.dtype == tf.string:
                    assert np.array_equal(found, value)
                else:
                    assert_close(found, value, 1e-5, f"{name}_{key}")

    assert main(["predict", str(tmp_path / "served"), *TEXTS[:2]]) == 0
    lines = capsys.readouterr().out.splitlines()
    for line, text, score in zip(lines, TEXTS[:2], logits["stars"][:2], strict=True):
        assert f", stars: {score:.3f}  {text}" in line
        assert line.startswith(("tone: good ", "tone: bad "))

    rows = tmp_path / "rows.csv"
    rows.write_text("text\na good film\n")
    output = tmp_path / "out.csv"
    run = ["predict", str(tmp_path / "served"), "--input", str(rows), "--output"]
    assert main([*run, str(output)]) == 2
    assert "A file needs one head, which gives" in capsys.readouterr().err
    assert not output.exists()


# Every form of data ---------------------------------------------------------------


class Batches(keras.utils.PyDataset):
    """Texts with labels and weights, five at a time."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(5 * index, 5 * index + 5)
        labels, weights = (
            {name: one[rows] for name, one in part.items()}
            for part in (LABELS, WEIGHTS)
        )
        return TEXTS[rows], labels, weights


def test_weights_of_a_head_act_in_every_form_of_data(model):
    logits = model.predict(TEXTS, **QUIET)
    tone = np.log(np.exp(logits["tone"]).sum(1)) - logits["tone"][range(13), LIKED]
    error = (logits["stars"] - STARS) ** 2
    expected = {
        "tone_accuracy": np.mean(logits["tone"].argmax(1) == LIKED),
        # Metrics are means over weights, losses over examples, as Keras has them.
        "stars_mse": np.average(error, weights=HAS_STARS),
        "loss": np.mean(tone) + np.mean(error * HAS_STARS),
    }
    ids = {key: value.numpy() for key, value in model.preprocessor(TEXTS).items()}
    forms = {
        "arrays": (TEXTS, LABELS, WEIGHTS),
        "ids": (ids, LABELS, WEIGHTS),
        "dataset of examples": (slices(TEXTS, IDS, WEIGHTS), None, None),
        "dataset of ids": (slices(ids, IDS, WEIGHTS).batch(13), None, None),
        "PyDataset": (Batches(), None, None),
        "generator": ((Batches()[index] for index in range(3)), None, None),
    }
    for form, (x, y, weights) in forms.items():
        found = scores(model, x, y, sample_weight=weights)
        assert {key: found[key] for key in expected} == pytest.approx(
            expected, rel=1e-4
        ), form
    found = scores(model, TEXTS, LABELS, sample_weight=HAS_STARS)  # of all heads
    assert found["stars_mse"] == pytest.approx(expected["stars_mse"], rel=1e-4)
    assert found["loss"] == pytest.approx(np.mean((tone + error) * HAS_STARS), rel=1e-4)


def test_fit_takes_every_form_of_data():
    weights = {}
    for form, data in {
        "arrays": {"x": TEXTS, "y": LABELS, "sample_weight": WEIGHTS},
        "dataset": {"x": slices(TEXTS, IDS, WEIGHTS).batch(5)},
        "generator": {"x": (Batches()[index] for index in range(3))},
    }.items():
        model = eager(make(dropout=0.0), 3, learning_rate=1e-2)
        model.fit(**data, batch_size=5, shuffle=False, **QUIET)
        weights[form] = model.heads["stars"].dense.kernel.numpy()
    assert_close(weights["dataset"], weights["arrays"], 1e-5)
    assert_close(weights["generator"], weights["arrays"], 1e-5)


def test_validation_data_and_split_take_labels_by_head():
    model = eager(make(dropout=0.0), 2)
    data = {"y": LABELS, "sample_weight": WEIGHTS}
    split = model.fit(TEXTS, **data, validation_split=0.3, **QUIET).history
    last = [{name: one[9:] for name, one in part.items()} for part in (LABELS, WEIGHTS)]
    expected = scores(model, TEXTS[9:], last[0], sample_weight=last[1])
    for key, value in expected.items():
        assert split[f"val_{key}"] == pytest.approx([value], rel=1e-4)
    given = model.fit(TEXTS, **data, validation_data=(TEXTS[9:], *last), **QUIET)
    expected = scores(model, TEXTS[9:], last[0], sample_weight=last[1])
    assert given.history["val_loss"] == pytest.approx([expected["loss"]], rel=1e-4)


# Numbers --------------------------------------------------------------------------


def test_each_head_computes_as_it_does_alone(model):
    logits = model.predict(TEXTS, **QUIET)
    losses = {}
    for name, pooling in (("tone", "first"), ("stars", "mean")):
        alone = eager(tiny_model(task=model.head.task[name], pooling=pooling))
        alone.encoder.set_weights(model.encoder.get_weights())
        alone.head.dense.set_weights(model.heads[name].dense.get_weights())
        assert_close(alone.predict(TEXTS, **QUIET), logits[name], 1e-6, name)
        losses[name] = scores(alone, TEXTS, IDS[name])["loss"]
    together = scores(model, TEXTS, IDS)
    for name, loss in losses.items():
        assert together[f"{name}_loss"] == pytest.approx(loss, rel=1e-5)
    assert together["loss"] == pytest.approx(sum(losses.values()), rel=1e-5)


def test_a_weight_of_0_leaves_a_head_as_it_was():
    model = eager(make(), 3, weight_decay=0.0)
    before = [model.heads[name].dense.kernel.numpy() for name in HEADS]
    weights = {"tone": np.ones(13), "stars": np.zeros(13)}
    model.fit(TEXTS, LABELS, sample_weight=weights, batch_size=5, **QUIET)
    assert largest_difference(model.heads["tone"].dense.kernel, before[0]) > 1e-5
    assert_close(model.heads["stars"].dense.kernel, before[1], 0.0)


def test_losses_of_ones_own_are_weighed_and_saved(tmp_path):
    model = make(dropout=0.0)
    model.compile(
        keras.optimizers.SGD(0.0),
        loss={
            "tone": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "stars": "mae",
        },
        loss_weights={"tone": 1.0, "stars": 0.25},
        metrics={"stars": ["mse"]},
        run_eagerly=True,
    )
    history = {k: v[0] for k, v in model.fit(TEXTS, IDS, **QUIET).history.items()}
    assert set(history) == {"loss", "tone_loss", "stars_loss", "stars_mse"}
    total = history["tone_loss"] + 0.25 * history["stars_loss"]
    assert history["loss"] == pytest.approx(total, rel=1e-5)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert scores(again, TEXTS, IDS) == pytest.approx(scores(model, TEXTS, IDS))


# What belongs to the whole model ----------------------------------------------------


def test_each_head_reads_where_it_says(tmp_path):
    heads = {
        "low": {"task": "classifier", "layer": 1},
        "mid": {"task": "regressor", "layer": 2, "pooling": "mean"},
        "wide": {"task": "regressor", "layer": 2, "concatenate": "cls"},
    }
    model = make(heads, num_layers=3, pooling="mean")
    readings = [one.reading for one in model.heads.values()]
    expected = [Reading("mean", 1), Reading("mean", 2), Reading("mean", 2, "cls")]
    assert readings == expected
    del heads["wide"]  # alone in reading [CLS] of the highest block
    lower = make(heads, num_layers=3, pooling="mean").encoder.blocks
    assert [block.trainable for block in lower] == [True, True, False]
    assert [block.trainable for block in model.encoder.blocks] == [True] * 3
    eager(model).fit(TEXTS, {"low": LIKED, "mid": STARS, "wide": STARS}, **QUIET)
    model.save_preset(tmp_path / "preset")
    again = keras_recbert.load(tmp_path / "preset")
    assert [one.reading for one in again.heads.values()] == expected
    expected = model.predict(TEXTS, **QUIET)
    for name, logits in again.predict(TEXTS, **QUIET).items():
        assert_close(logits, expected[name], 1e-6, name)


@pytest.mark.parametrize(
    "arguments",
    [{"freeze": "encoder"}, {"lora_rank": 2}, {"layerwise_decay": 0.5}],
    ids=lambda arguments: next(iter(arguments)),
)
def test_partial_training_is_of_the_encoder(arguments):
    model = eager(make(**arguments), learning_rate=0.1)
    table = model.encoder.embeddings.weights[0]
    before = table.numpy(), *(one.dense.kernel.numpy() for one in model.heads.values())
    model.fit(TEXTS, LABELS, batch_size=13, **QUIET)
    kernels = [one.dense.kernel for one in model.heads.values()]
    after = list(map(largest_difference, (table, *kernels), before))
    assert min(after[1:]) > 0.05
    if "layerwise_decay" in arguments:
        assert 0 < after[0] < 0.05  # two levels below the heads: a quarter of the rate
    else:
        assert after[0] == 0


def test_one_head_in_a_dict_has_a_name_too():
    model = eager(make({"tone": "classifier"}))
    history = model.fit(TEXTS, {"tone": NAMES}, **QUIET).history
    assert set(history) == {"loss", "accuracy"}  # Keras names several outputs only
    assert set(model.predict(TEXTS, **QUIET)) == {"tone"}


def test_the_rule_that_is_printed_names_each_pooling(capsys):
    eager(make()).fit(TEXTS, LABELS, verbose=2)
    assert "rising and falling; first and mean pooling" in capsys.readouterr().out


def test_each_head_reads_the_fields_of_its_examples():
    heads = {
        "tone": {"task": "classifier", "fields": ("text",)},
        "same": {"task": "classifier", "fields": ("text", "text_pair")},
    }
    model = make(heads)
    others = TEXTS[::-1]
    logits = model.predict((TEXTS, others), batch_size=4, **QUIET)
    assert_close(logits["tone"], model.head_view("tone").predict(TEXTS, **QUIET))
    assert_close(
        logits["same"], model.head_view("same").predict((TEXTS, others), **QUIET)
    )
    of_texts = model.predict(TEXTS, **QUIET)
    assert set(of_texts) == {"tone"}
    assert_close(of_texts["tone"], logits["tone"])
    labels = {"tone": NAMES, "same": NAMES}
    pairs = {"text": TEXTS, "text_pair": others}
    for ask in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="head tone reads text; same reads text"):
            ask(pairs, labels)
    with pytest.raises(ValueError, match="give `predict` lists of texts"):
        model.predict(slices((TEXTS, others)).batch(4))
