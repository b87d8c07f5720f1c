"""Pre-training from a prepared corpus, small but whole."""

import csv
import dataclasses
import itertools
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_texts import write_corpus

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.config import PretrainingConfig
from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives
from keras_recbert.tasks.pretraining_optimizer import pretraining_optimizer
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.precision import choose_precision
from keras_recbert.train.pretraining_callbacks import evaluate
from keras_recbert.train.pretraining_run import build_pretrainer, pretrain

SIZES = {"num_layers": 2, "hidden_dim": 18, "num_heads": 2}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def config(corpus, tmp_path):
    return PretrainingConfig(
        model="bert_tiny",
        corpus=corpus,
        validation={"toy": corpus},
        output_dir=str(tmp_path / "run"),
        objectives={"masked_lm": None, "next_sentence": {"layer": 1}},
        steps=6,
        checkpoint_every=2,
        batch_size=4,
        sequence_length=16,
        warmup_steps=1,
        learning_rate=1e-2,
        validation_examples=5,
        overrides=SIZES,
    )


def weights_of(config):
    model = keras_recbert.load(f"{config.output_dir}/model.keras")
    return {weight.path: weight.numpy() for weight in model.weights}


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_a_run_goes_on_where_it_was_bit_for_bit(config, tmp_path, monkeypatch, capsys):
    """With accumulation, an average, AMSGrad, long examples and freezing."""
    config = dataclasses.replace(
        config,
        accumulation_steps=2,
        ema_momentum=0.9,
        amsgrad=True,
        long_sequence_length=32,
        long_fraction=0.34,
        objectives={
            "masked_lm": {"unit": "whole_word", "concatenate": "cls"},
            "next_sentence": {"layer": 1, "freeze_at_step": 3},
            "bigram_shift": None,
        },
    )
    _, whole = pretrain(config)
    assert whole["frozen_at"] == 3

    parts = dataclasses.replace(config, output_dir=str(tmp_path / "parts"))
    save, calls = Checkpoints.save, []

    def save_then_stop(self, model, step, state):
        save(self, model, step, state)
        calls.append(step)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", save_then_stop)
    for step in (2, 4, 6):
        with pytest.raises(KeyboardInterrupt):
            pretrain(parts)
        assert calls[-1] == step
    monkeypatch.setattr(Checkpoints, "save", save)
    _, again = pretrain(parts)
    assert "Resuming after step 6." in capsys.readouterr().out

    expected, found = weights_of(config), weights_of(parts)
    for path, value in expected.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)
    assert again["scores"] == whole["scores"]
    timed = ("seconds", "tokens_per_second", "seconds_per_step")
    for key, values in whole["history"].items():
        if key not in timed:
            assert again["history"][key] == values, key
    with open(tmp_path / "parts" / "history.csv", newline="") as file:
        assert len(list(csv.DictReader(file))) == 3


@pytest.mark.slow
def test_what_a_run_leaves(config, tmp_path):
    model, results = keras_recbert.pretrain(**dataclasses.asdict(config))
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "checkpoints",
        "history.csv",
        "model.keras",
        "preset",
        "pretraining_curves.png",
        "results.json",
        "tensorboard",
    }
    assert results == json.loads((tmp_path / "run" / "results.json").read_text())
    history = results["history"]
    for key in (
        "loss",
        "masked_lm_loss",
        "next_sentence_loss",
        "tokens_per_second",
        "val_toy_masked_lm_perplexity",
        "val_toy_next_sentence_accuracy",
    ):
        assert len(history[key]) == 3, key
    cross_entropy = results["scores"]["val_toy_masked_lm_cross_entropy"]
    perplexity = results["scores"]["val_toy_masked_lm_perplexity"]
    assert perplexity == pytest.approx(np.exp(cross_entropy))
    assert results["tokens"] == 6 * 4 * 16
    sha256 = load_corpus(config.corpus).sha256
    assert results["checksums"] == {"corpus": sha256, "validation": {"toy": sha256}}
    # Who fine-tunes the preset reads sentences where they were learned.
    classifier = keras_recbert.build(
        "bert_tiny",
        task="classifier",
        num_classes=2,
        weights=tmp_path / "run" / "preset",
    )
    assert classifier.encoder.pretrained_heads["next_sentence"]["layer"] == 1
    for mine, theirs in zip(
        classifier.encoder.weights, model.encoder.weights, strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpus": None}, "Pre-training needs text. Pass corpus=DIR"),
        ({"corpus": "nowhere"}, "nowhere"),
        (
            {"objectives": {"masked_lm": {"layer": 13}}},
            "must be a block of the encoder, from 1 to 2. Received: layer=13",
        ),
        (
            {"overrides": {**SIZES, "max_sequence_length": 8}},
            "longer than the table of positions. Received: 16 word pieces",
        ),
        (
            {
                "validation": {},
                "objectives": {
                    "masked_lm": None,
                    "next_sentence": {"layer": 1, "freeze_patience": 1},
                },
            },
            "freeze_patience watches the validation loss",
        ),
        ({"model": "bert_tinny"}, "Did you mean 'bert_tiny'"),
    ],
)
def test_wrong_options_leave_nothing_behind(config, tmp_path, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        pretrain(dataclasses.replace(config, **changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_ten_steps_need_no_other_option(corpus, tmp_path):
    run = tmp_path / "ten"
    sizes = itertools.chain(*((name, str(value)) for name, value in SIZES.items()))
    status = main(
        ["pretrain", "--corpus", corpus, "--model", "bert_tiny", "--steps", "10"]
        + ["--sequence-length", "16", "--output-dir", str(run), "--overrides", *sizes]
    )
    assert status == 0
    results = json.loads((run / "results.json").read_text())
    assert results["config"]["warmup_steps"] == 1
    assert results["config"]["checkpoint_every"] == 10


def test_an_encoder_that_goes_on_keeps_its_positions(config, corpus, tmp_path):
    sizes = {**SIZES, "max_sequence_length": 40}
    config = dataclasses.replace(config, overrides=sizes)
    loaded = load_corpus(corpus)
    objectives = read_objectives(config.objectives)
    precision = choose_precision("float32")
    first = build_pretrainer(config, loaded, objectives, precision)
    first.encoder.save_preset(tmp_path / "preset")
    config = dataclasses.replace(config, weights=str(tmp_path / "preset"))
    model = build_pretrainer(config, loaded, objectives, precision)
    assert model.encoder.config["max_sequence_length"] == 40
    assert model.encoder.weights_report is not None
    config = dataclasses.replace(config, overrides=SIZES, sequence_length=40)
    model = build_pretrainer(config, loaded, objectives, precision)
    assert model.encoder.config["max_sequence_length"] == 40
    config = dataclasses.replace(config, sequence_length=41)
    with pytest.raises(ValueError, match="41 word p.* max_sequence_length=40"):
        build_pretrainer(config, loaded, objectives, precision)


@pytest.mark.slow
@pytest.mark.usefixtures("eager_steps")
def test_validation_does_not_depend_on_the_size_of_batches(corpus):
    config = PretrainingConfig(
        model="bert_tiny",
        corpus=corpus,
        objectives={"masked_lm": None, "next_sentence": None, "bigram_shift": None},
        sequence_length=16,
        overrides=SIZES,
    )
    loaded, objectives = load_corpus(corpus), read_objectives(config.objectives)
    keras.utils.set_random_seed(0)
    model = build_pretrainer(config, loaded, objectives, choose_precision("float32"))
    model.compile_for_pretraining("adam")
    examples = PretrainingExamples(loaded, objectives, 16, 0)
    scores = [
        evaluate(model, {"toy": examples.fixed_batches(size, 13)})
        for size in (13, 1, 5)
    ]
    assert "val_toy_next_sentence_cross_entropy" in scores[0]
    for name in scores[0].keys() - {"val_toy_bigram_shift_auc"}:  # of binned logits
        values = [one[name] for one in scores]
        np.testing.assert_allclose(values, values[0], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "`seed` must be from 0 to"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be above 0 and fin"),
        ({"overrides": {"dropout": 0.3}}, "`dropout` is an option of its own"),
        ({"objectives": {"masked_ml": None}}, "Did you mean 'masked_lm'"),
        ({"objectives": {"masked_lm": {"mask_rate": 1.5}}}, "Received: mask_rate=1.5"),
        ({"steps": 5}, "multiple of `checkpoint_every`.*Try steps=6"),
        ({"accumulation_steps": 3}, "`accumulation_steps` must divide the batches"),
        ({"long_sequence_length": 16}, "above sequence_length=16"),
        ({"long_batch_size": 4}, "needs a `long_sequence_length`"),
        ({"ema_momentum": 1.0}, "above 0 and below 1"),
        ({"warmup_steps": 7}, "from 0 to steps=6"),
        ({"optimizer": "sgd"}, "adamw or adadelta"),
    ],
)
def test_impossible_configs(config, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **changes)


def test_long_examples_take_the_last_part_of_the_steps():
    config = PretrainingConfig(
        steps=1000, batch_size=256, long_sequence_length=512, checkpoint_every=100
    )
    assert config.phases() == [(128, 256, 900), (512, 64, 100)]
    config = dataclasses.replace(config, long_batch_size=1)
    assert config.phases()[1] == (512, 1, 100)


def test_accumulation_and_average_are_those_of_a_whole_batch():
    """Quadratic loss: the mean gradient of the parts is that of the batch."""
    found = []
    for accumulation_steps in (1, 4):
        config = PretrainingConfig(
            steps=3,
            batch_size=4,
            accumulation_steps=accumulation_steps,
            ema_momentum=0.8,
            warmup_steps=1,
            learning_rate=0.1,
            weight_decay=0.1,
        )
        weight = keras.Variable(np.array([[1.0, -2.0]], "float32"), name="kernel")
        optimizer = pretraining_optimizer(config)
        optimizer.build([weight])
        for step in range(3):
            rows = np.arange(8.0, dtype="float32").reshape(4, 2) - step
            for part in np.split(rows, accumulation_steps):
                gradient = tf.constant(part.mean(0, keepdims=True)) * weight.value
                optimizer.apply([gradient], [weight])
        assert int(optimizer.iterations) == 3
        before = weight.numpy()
        optimizer.finalize_variable_values([weight])
        found.append((before, weight.numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert not np.allclose(*found[0])
