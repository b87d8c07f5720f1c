"""A model with several heads: what a user types, wrong input, and its numbers."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, largest_difference, randomize
from toy_texts import VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.heads import Head, NamedHeads, head, register_head
from keras_recbert.heads.reading import Reading
from keras_recbert.text.packers import get_packer

TEXTS, LIKED = reviews(13)
NAMES = np.array(["bad", "good"])[LIKED]
STARS = (np.arange(13) % 4 + 0.5).astype("float32")
LABELS = {"tone": NAMES, "stars": STARS}
IDS = {"tone": LIKED, "stars": STARS}
HAS_STARS = (np.arange(13) % 3 > 0).astype("float32")
WEIGHTS = {"tone": np.ones(13, "float32"), "stars": HAS_STARS}
HEADS = {"tone": {"task": "classifier", "pooling": "first"}, "stars": "regressor"}
QUIET = {"verbose": 0}


def make(heads=HEADS, **arguments):
    return tiny_model(task=heads, **arguments)


@pytest.fixture(scope="module")
def model():
    """Random weights, classes named; tests leave it as it is."""
    made = make({**HEADS, "tone": {**HEADS["tone"], "label_names": ["bad", "good"]}})
    randomize(made)
    return eager(made)


def eager(model, steps=1, **arguments):
    """Compiled by the recipe, without tracing, which costs more than a few steps."""
    model.compile_for_fine_tuning(steps, **arguments)
    model.run_eagerly = True
    return model


def scores(model, *args, **kwargs):
    return model.evaluate(*args, return_dict=True, **QUIET, **kwargs)


def slices(*parts):
    return tf.data.Dataset.from_tensor_slices(parts)


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
    assert set(signatures) == {"serving_default", "ids", "tone", "stars"}
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
    assert "A file needs a model of one head" in capsys.readouterr().err
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


# Wrong input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({}, "A model needs a head. Received: an empty dict"),
        ({"tone": "clasifier"}, "'clasifier'. Did you mean 'classifier'"),
        ({"tone": "pretrainer"}, "No task is called 'pretrainer'"),
        ({"tone": 2}, "Head 'tone' must be the name of a task.*Received: 2"),
        ({"tone": {"label_names": ["a", "b"]}}, "Head 'tone' must be .*`task`"),
        (
            {"tone": {"task": "classifier", "label_name": ["a"]}},
            "'label_name'.*Did you mean 'label_names'",
        ),
        ({"tone": {"task": "multilabel_classifier"}}, "needs other arguments"),
        ({"tone": {"task": "classifier", "pooling": "max"}}, "`pooling` must be one"),
        (
            {"tone": {"task": "classifier", "layer": 2}},
            "or .all.. Received: layer=2",
        ),
        *(
            ({name: "regressor"}, f"must be an identifier.*Received: {name!r}")
            for name in ("a b", "1st", "", "_x", "gr\u00fcn", 3, "val", "val_tone")
        ),
        *(
            ({name: "regressor"}, f"none of .*{name}.*Received: {name!r}")
            for name in ("ids", "serving_default", "task")
        ),
    ],
)
def test_impossible_heads_are_refused(heads, message):
    with pytest.raises(ValueError, match=message):
        make(heads)


def test_arguments_of_a_head_stand_with_the_head():
    message = r"TextModel \(beside `task`, its heads\) takes no argument 'num_classes'"
    with pytest.raises(ValueError, match=message):
        make(num_classes=3)


def test_heads_share_one_packer(monkeypatch):
    monkeypatch.setattr(head, "_HEADS", dict(head._HEADS))

    @register_head
    class Questions(Head):
        task, packer = "questions", "QuestionPacker"

        def __init__(self):
            super().__init__(2)

    message = "share one packer. Received: tone: TextPreprocessor, asked: Question"
    with pytest.raises(ValueError, match=message):
        make({"tone": "classifier", "asked": "questions"})
    assert get_packer(NamedHeads(HEADS).packer).__name__ == "TextPreprocessor"


def test_one_head_has_one_name():
    shared = head.make_head("regressor", {})
    with pytest.raises(ValueError, match="a head of its own.*names a, b"):
        NamedHeads({"a": shared, "b": shared})


LACKING = {"tone": NAMES}


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [
        (NAMES, None, "`y` must be a dict by the names of the heads, tone, stars"),
        ([NAMES, STARS], None, "must be a dict.*Received: a list"),
        (None, None, "a dict of them by head. Received: None"),
        (LACKING, None, "Missing: stars.*weight 0 in `sample_weight`"),
        ({**LABELS, "stars": None}, None, "Missing: stars"),
        ({**LABELS, "star": STARS}, None, "no head.*'star'. Did you mean 'stars'"),
        ({**LABELS, "stars": STARS[:5]}, None, "same number.*tone: 13, stars: 5"),
        ({"tone": NAMES[:5], "stars": STARS[:5]}, None, "13 texts, 5 labels"),
        ({**LABELS, "stars": STARS * np.nan}, None, "Labels of the head 'stars'.*nan"),
        ({**LABELS, "tone": ["poor"] * 13}, None, "Labels of the head 'tone'.*'poor'"),
        (LABELS, {"stars": HAS_STARS}, "`sample_weight` must have.*Missing: tone"),
        (LABELS, {**WEIGHTS, "tone": [1.0]}, "13 texts, 1 labels"),
    ],
)
def test_labels_and_weights_of_each_head_are_checked(model, labels, weights, message):
    with pytest.raises(ValueError, match=message):
        model.fit(TEXTS, labels, sample_weight=weights, **QUIET)


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ((TEXTS, STARS), "`y` must be a dict by the names"),
        ((TEXTS, {"stars": STARS}), "`y` must have an entry.*Missing: tone"),
        ((TEXTS, IDS, {"stars": HAS_STARS}), "`sample_weight` must.*Missing: tone"),
        ((TEXTS, LABELS), "with numbers as labels"),
    ],
)
def test_datasets_must_have_labels_of_each_head(model, elements, message):
    for call in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match=message):
            call(slices(*elements), **QUIET)


def test_answers_of_one_name_are_refused(tmp_path):
    several = {"task": "multilabel_classifier", "label_names": ["long"]}
    model = make({"is": several, "is_has": "classifier"})  # is_has_label of both
    with pytest.raises(ValueError, match="two of the heads is, is_has give is_has_l"):
        model.export_savedmodel(tmp_path / "served")
    assert not list(tmp_path.iterdir())


def test_hugging_face_has_no_such_model(model, tmp_path):
    with pytest.raises(ValueError, match="task={'tone': 'classifier', 'stars'"):
        model.save_huggingface(tmp_path / "folder")


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
