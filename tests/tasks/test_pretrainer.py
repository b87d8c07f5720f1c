"""Heads at any block: what they read, what trains, freezing, files, numbers."""

import dataclasses
import math
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import (
    SHRUNK,
    VOCABULARY_SIZE,
    assert_close,
    assert_every_weight_learns,
    randomize,
    token_batch,
)
from toy_texts import VOCABULARY

import keras_recbert
from keras_recbert.heads.reading import Reading
from keras_recbert.models.backbone import RecBertBackbone
from keras_recbert.objectives import MaskedLM, NextSentence, Objectives, read_objectives
from keras_recbert.tasks.fine_tuning_optimizer import fine_tuning_optimizer
from keras_recbert.tasks.optimizers import AdamW
from keras_recbert.tasks.pretrainer import Pretrainer

LOW_SENTENCE = {
    "masked_lm": {"concatenate": "cls"},
    "next_sentence": {"layer": 1},
    "bigram_shift": {"layer": 2},
}
# The heads know nothing of blocks: two kinds in the fast suite.
BLOCKS = [
    pytest.param(
        block, marks=() if block in ("transformer", "swish_rnn") else pytest.mark.slow
    )
    for block in SHRUNK
]
ALL = [
    {"masked_lm": None, "next_sentence": None},
    {"masked_lm": None},
    {"next_sentence": None},
    {"bigram_shift": None},
    {"masked_lm": {"layer": 1}, "next_sentence": None},
    {"masked_lm": {"concatenate": "next_sentence"}, "next_sentence": {"layer": 1}},
    {"masked_lm": {"layer": 2, "concatenate": "cls"}, "next_sentence": None},
    LOW_SENTENCE,
]


def make(entries, block="transformer", **sizes):
    keras.utils.set_random_seed(0)
    sizes = {
        **SHRUNK[block],
        "num_layers": 3,
        "vocabulary_size": VOCABULARY_SIZE,
        "max_sequence_length": 24,
        **sizes,
    }
    model = Pretrainer(RecBertBackbone(block=block, **sizes), entries)
    randomize(model)
    return model


def examples(model, seed=0, lengths=(11, 7, 9)):
    """`(x, y, sample_weight)` as the corpus gives them, of odd sizes."""
    rng = np.random.default_rng(seed)
    x = token_batch(lengths, 11, seed)
    x["mask_positions"] = np.array([[5, 1, 8], [2, 6, 0], [3, 0, 0]], "int32")
    size = model.backbone.config["vocabulary_size"]
    x["token_ids"] %= size
    guessed = rng.integers(0, size, (3, 3)).astype("int32")
    y = {
        "masked_lm": guessed,
        "causal_lm": guessed,
        "next_sentence": np.array([0, 1, 1], "int32"),
        "bigram_shift": (rng.random((3, 11)) < 0.3).astype("float32"),
    }
    real = {
        "masked_lm": np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]], "float32"),
        "next_sentence": np.ones(3, "float32"),
        "bigram_shift": x["padding_mask"].astype("float32"),
    }
    real["causal_lm"] = real["masked_lm"]
    names = model.objectives.names()
    if "masked_lm" not in names and "causal_lm" not in names:
        del x["mask_positions"]
    weights = {name: real[name] * real[name].size / real[name].sum() for name in names}
    return x, {name: y[name] for name in names}, weights


def dataset(*batches):
    stacked = tf.nest.map_structure(lambda *arrays: np.stack(arrays), *batches)
    return tf.data.Dataset.from_tensor_slices(stacked)


def repeated(batch, steps):
    return tf.data.Dataset.from_tensors(batch).repeat(steps)


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


# What heads read ----------------------------------------------------------------


@pytest.mark.parametrize("entries", ALL, ids=str)
def test_every_weight_that_trains_gets_a_gradient(entries):
    model = make(entries)
    x, y, _ = examples(model)
    outputs = model(x)
    assert set(outputs) == set(y)
    for name, output in outputs.items():
        shape = (
            *y[name].shape,
            *{"masked_lm": (37,), "next_sentence": (2,)}.get(name, ()),
        )
        assert output.shape == shape
        assert output.dtype == "float32"
    assert_every_weight_learns(model, x)
    resting = {w.path.split("/")[0] for w in model.non_trainable_weights}
    assert resting == (set() if "next_sentence" in entries else {"pooler"})
    # The table is one weight; nothing is counted twice.
    assert len({w.path for w in model.weights}) == len(model.weights)
    tables = [w for w in model.weights if tuple(w.shape) == (VOCABULARY_SIZE, 12)]
    assert len(tables) == 1


@pytest.mark.parametrize("block", BLOCKS)
def test_heads_do_not_depend_on_blocks_above_them(block):
    model = make(LOW_SENTENCE, block)
    x, _, _ = examples(model)
    assert_every_weight_learns(model, x)
    layers = {"next_sentence": 1, "bigram_shift": 2, "masked_lm": 3}
    for changed in (3, 2, 1):
        before = {name: output.numpy() for name, output in model(x).items()}
        weight = model.backbone.blocks[changed - 1].weights[-1]
        weight.assign(weight.numpy() + 0.5)
        after = model(x)
        for name, layer in layers.items():
            same = np.array_equal(before[name], after[name])
            assert same == (layer < changed), (name, changed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "dtype"),
    [(ALL[5], "float32"), (LOW_SENTENCE, "mixed_bfloat16")],
    ids=str,
)
@pytest.mark.parametrize("block", SHRUNK)
def test_every_kind_of_block_trains_with_every_head(block, entries, dtype):
    model = make(entries, block, dtype=dtype)
    batch = examples(model)
    assert_every_weight_learns(model, batch[0])
    model.compile_for_pretraining(AdamW(0.003))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Gradients do not exist")
        history = model.fit(repeated(batch, 20), epochs=3, verbose=0).history
    assert history["loss"][2] < history["loss"][0]
    # What may train has moved, the rest not.
    before = [w.numpy() for w in model.weights]
    model.fit(repeated(batch, 1), verbose=0)
    for old, weight in zip(before, model.weights, strict=True):
        assert np.any(old != weight.numpy()) == weight.trainable, weight.path


def test_causal_head_guesses_from_the_left():
    model = make({"causal_lm": None}, causal=True)
    x, _, _ = examples(model)
    x["mask_positions"] = np.tile(np.arange(10, dtype="int32"), (3, 1))
    before = model(x)["causal_lm"].numpy()
    x["token_ids"][:, 6] = (x["token_ids"][:, 6] + 1) % VOCABULARY_SIZE
    after = model(x)["causal_lm"].numpy()
    assert_close(before[:, :6], after[:, :6], 1e-6)
    assert np.abs(before[0, 6:] - after[0, 6:]).max() > 1e-3


def test_bfloat16_gives_float32_logits():
    model = make(LOW_SENTENCE, dtype="mixed_bfloat16")
    x, _, _ = examples(model)
    for output in model(x).values():
        assert output.dtype == "float32"
    assert {output.dtype for output in model.outputs} == {"float32"}


# Losses and metrics -------------------------------------------------------------


def expected_numbers(model, batches):
    """Mean losses over all real elements, from logits, in float64."""
    terms, right = {}, {}
    for x, y, weights in batches:
        for name, logits in model(x).items():
            logits, labels = logits.numpy().astype("float64"), y[name]
            real = weights[name] > 0
            if name == "bigram_shift":
                term = np.log1p(np.exp(np.where(labels == 1, -logits, logits)))
                hit = (logits > 0) == (labels == 1)
            else:
                term = -np.take_along_axis(log_softmax(logits), labels[..., None], -1)
                term, hit = term[..., 0], logits.argmax(-1) == labels
            terms.setdefault(name, []).append(term[real])
            right.setdefault(name, []).append(hit[real])
    return terms, {name: np.concatenate(hits).mean() for name, hits in right.items()}


def test_losses_and_metrics_are_means_over_real_elements():
    entries = {**LOW_SENTENCE, "next_sentence": {"layer": 1, "loss_weight": 0.5}}
    model = make(entries)
    model.compile_for_pretraining(AdamW(0.001))
    first, second = examples(model), examples(model, seed=1, lengths=(4, 11, 2))
    # One guess less: batches of unlike numbers of real elements.
    weight = second[2]["masked_lm"] > 0
    weight[0, 2] = False
    second[2]["masked_lm"] = (weight * 9 / weight.sum()).astype("float32")
    found = model.evaluate(dataset(first, second), verbose=0, return_dict=True)
    terms, accuracies = expected_numbers(model, [first, second])
    assert set(found) == {
        "loss",
        *(f"{name}_loss" for name in terms),
        *(f"{name}_accuracy" for name in terms),
        *(f"{name}_cross_entropy" for name in terms),
        "bigram_shift_auc",
    }
    for name, accuracy in accuracies.items():
        assert found[f"{name}_accuracy"] == pytest.approx(accuracy, abs=1e-6)
        means = [one.mean() for one in terms[name]]  # of each batch
        assert found[f"{name}_loss"] == pytest.approx(np.mean(means), abs=1e-5)
    total = sum(
        (0.5 if name == "next_sentence" else 1.0) * found[f"{name}_loss"]
        for name in terms
    )
    assert found["loss"] == pytest.approx(total, abs=1e-5)
    # Over all guesses of both batches, each counted once.
    assert len(np.concatenate(terms["masked_lm"])) == 11
    for name, guesses in terms.items():
        mean = np.concatenate([one.ravel() for one in guesses]).mean()
        assert found[f"{name}_cross_entropy"] == pytest.approx(mean, rel=1e-5)


def test_area_under_the_curve_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    model = make({"bigram_shift": None})
    model.compile_for_pretraining(AdamW(0.001))
    x, y, weights = examples(model)
    found = model.evaluate(dataset((x, y, weights)), verbose=0, return_dict=True)
    real = weights["bigram_shift"] > 0
    logits = model(x)["bigram_shift"].numpy()
    expected = roc_auc_score(y["bigram_shift"][real], logits[real])
    assert found["bigram_shift_auc"] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", ["masked_lm", "next_sentence", "bigram_shift"])
def test_logs_of_one_objective_have_the_names_they_have_beside_others(name):
    model = make({name: None}, num_layers=1)
    model.compile_for_pretraining(AdamW(0.001))
    found = model.evaluate(dataset(examples(model)), verbose=0, return_dict=True)
    names = {"loss", f"{name}_accuracy", f"{name}_cross_entropy"}
    if name == "bigram_shift":
        names.add("bigram_shift_auc")
    assert set(found) == names
    assert found[f"{name}_cross_entropy"] == pytest.approx(found["loss"], rel=1e-5)


# Freezing -----------------------------------------------------------------------


class FreezeAt(keras.callbacks.Callback):
    """Freezes inside `fit`, and keeps all weights of that moment."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.step:
            self.model.freeze_next_sentence()
            self.weights = {w.path: w.numpy() for w in self.model.weights}
            self.slots = slots(self.model)


def slots(model):
    optimizer = model.optimizer
    return {v.path: v.numpy() for v in optimizer.variables if v.ndim}


def is_frozen(path, level=1):
    below = [f"block_{index}/" for index in range(level)]
    parts = ("embeddings/", *below, "pooler/", "next_sentence")
    return path.startswith(tuple(parts))


@pytest.mark.slow
@pytest.mark.parametrize("entries", [ALL[5], LOW_SENTENCE], ids=str)
def test_freezing_inside_fit(entries):
    model = make(entries, dropout=0.0, num_layers=len(entries))
    optimizer = fine_tuning_optimizer(200, learning_rate=0.01, warmup_fraction=0.0)
    model.compile_for_pretraining(optimizer)
    batch = examples(model)
    freeze = FreezeAt(10)
    model.fit(repeated(batch, 60), verbose=0, callbacks=[freeze])
    assert model.next_sentence_frozen
    assert int(optimizer.iterations) == 60
    moved = []
    for weight in model.weights:
        same = np.array_equal(weight.numpy(), freeze.weights[weight.path])
        assert same == is_frozen(weight.path), weight.path
        assert weight.trainable != is_frozen(weight.path), weight.path
        moved.append(not same)
    assert any(moved)
    # No slot is lost or new, and those of frozen weights rest.
    after = slots(model)
    assert list(after) == list(freeze.slots)
    for weight in model.weights:
        own = [path for path in after if weight.path.replace("/", "_") in path]
        assert len(own) == 2, weight.path
        for path in own:
            same = np.array_equal(after[path], freeze.slots[path])
            assert same == is_frozen(weight.path), path
    model.freeze_next_sentence()  # again: nothing to do


@pytest.mark.slow
def test_momentum_goes_on_through_the_freeze():
    """The step after it equals one by hand from the slots of before."""
    model = make(ALL[5], dropout=0.0, num_layers=2)
    optimizer = AdamW(0.01, weight_decay=0.0, global_clipnorm=0.5, epsilon=1e-6)
    model.compile_for_pretraining(optimizer)
    x, y, weights = examples(model)
    model.fit(repeated((x, y, weights), 3), verbose=0)
    model.freeze_next_sentence()
    trained = model.trainable_weights
    assert 0 < len(trained) < len(model.weights)
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y, model(x, training=True), weights)
    gradients = tape.gradient(loss, [weight.value for weight in trained])
    gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
    # Clipped by the norm of what trains, and of nothing else.
    norm = math.sqrt(sum(np.sum(np.square(g, dtype="float64")) for g in gradients))
    assert norm > 0.5
    before = slots(model)
    old = [weight.numpy() for weight in trained]
    resting = [(w, w.numpy()) for w in model.weights if is_frozen(w.path)]
    model.fit(repeated((x, y, weights), 1), verbose=0)
    assert len(trained) + len(resting) == len(model.weights)
    for weight, value in resting:
        np.testing.assert_array_equal(weight.numpy(), value, weight.path)
    step = 4  # of the optimizer: its count goes on too
    for weight, value, gradient in zip(trained, old, gradients, strict=True):
        gradient = gradient * 0.5 / norm
        name = weight.path.replace("/", "_")
        m, v = (next(before[p] for p in before if f"{name}_{s}" in p) for s in SLOTS)
        assert np.any(m != 0.0)
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        rate = 0.01 * math.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        assert_close(weight, value - rate * m / (np.sqrt(v) + 1e-6), 1e-4, weight.path)


SLOTS = ("momentum", "velocity")


@pytest.mark.slow
def test_masked_lm_goes_on_learning_after_the_freeze():
    model = make({"masked_lm": None, "next_sentence": {"layer": 1}}, dropout=0.0)
    model.compile_for_pretraining(AdamW(0.01))
    batch = examples(model)
    model.fit(repeated(batch, 5), verbose=0)
    model.freeze_next_sentence()
    before = model.evaluate(repeated(batch, 1), verbose=0, return_dict=True)
    model.fit(repeated(batch, 40), verbose=0)
    after = model.evaluate(repeated(batch, 1), verbose=0, return_dict=True)
    assert after["masked_lm_loss"] < 0.7 * before["masked_lm_loss"]
    assert after["next_sentence_loss"] == before["next_sentence_loss"]


def test_frozen_model_stays_frozen_in_a_file(tmp_path):
    model = make(LOW_SENTENCE)
    model.compile_for_pretraining(AdamW(0.01))
    model.freeze_next_sentence()  # before the first step: slots for all weights
    assert len(slots(model)) == 2 * len(model.weights)
    for variable in model.optimizer.variables:
        variable.assign(variable + np.ones(variable.shape, variable.dtype))
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # Keras: "Skipping ... optimizer"
        loaded = keras_recbert.load(tmp_path / "model.keras")
    assert loaded.next_sentence_frozen
    assert [w.path for w in loaded.trainable_weights] == [
        w.path for w in model.trainable_weights
    ]
    for one, other in zip(
        loaded.optimizer.variables, model.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.slow
def test_frozen_model_goes_on_from_a_file_as_if_nothing_had_happened(tmp_path):
    model = make(LOW_SENTENCE, dropout=0.0)
    model.compile_for_pretraining(AdamW(0.01))
    batch = examples(model)
    model.fit(repeated(batch, 2), verbose=0)
    model.freeze_next_sentence()
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    for one in (model, loaded):
        one.fit(repeated(batch, 3), verbose=0)
    for weight, other in zip(loaded.weights, model.weights, strict=True):
        assert_close(weight, other, 1e-6, weight.path)


@pytest.mark.slow
def test_freezing_before_the_first_step():
    model = make(LOW_SENTENCE)
    model.compile_for_pretraining(AdamW(0.01))
    model.freeze_next_sentence()
    before = {w.path: w.numpy() for w in model.weights}
    model.fit(repeated(examples(model), 1), verbose=0)
    for weight in model.weights:
        same = np.array_equal(before[weight.path], weight.numpy())
        assert same == is_frozen(weight.path), weight.path


# Files --------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [ALL[5], LOW_SENTENCE], ids=str)
def test_saved_and_loaded(entries, tmp_path):
    model = make(entries)
    x, _, _ = examples(model)
    model.save(tmp_path / "model.keras")
    loaded = keras_recbert.load(tmp_path / "model.keras")
    assert type(loaded) is Pretrainer
    assert loaded.objectives == model.objectives == read_objectives(entries)
    assert loaded.count_params() == model.count_params()
    table = loaded.backbone.embeddings.token_embedding
    assert loaded.heads["masked_lm"].layer.token_embedding is table
    for name, output in loaded(x).items():
        assert_close(output, model(x)[name], 0.0, name)
    assert_every_weight_learns(loaded, x)


def test_encoder_takes_what_it_was_trained_with_along(tmp_path):
    model = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives=LOW_SENTENCE,
        vocabulary=VOCABULARY,
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    randomize(model)
    model.backbone.save_preset(tmp_path / "preset")
    encoder = keras_recbert.load(tmp_path / "preset")
    assert encoder.config == model.backbone.config
    assert encoder.preprocessor.tokenizer.vocabulary == tuple(VOCABULARY)
    classifier = keras_recbert.build(
        "swish_tiny",
        task="classifier",
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    assert classifier.head.reading == Reading("mean", None, "cls", 1)
    x = token_batch()
    x["token_ids"] %= len(VOCABULARY)
    expected = model.backbone(x)
    for one in (encoder, classifier.backbone):
        outputs = one(x)
        for key in ("pooled_output", "sequence_output"):
            assert_close(outputs[key], expected[key], 0.0, key)
    # And goes on with the same objectives, or with others at other levels.
    same = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives=LOW_SENTENCE,
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    new = same.backbone.weights_report.new
    heads = {"masked_lm", "next_sentence", "bigram_shift_head"}
    assert {path.split("/")[0] for path in new} == heads
    again = keras_recbert.build(
        "swish_tiny",
        task="pretrainer",
        objectives={"masked_lm": None},
        weights=tmp_path / "preset",
        num_layers=3,
        hidden_dim=12,
        num_heads=3,
    )
    noted = {"masked_lm": {"layer": None, "concatenate": None}}
    assert again.backbone.pretrained_heads == noted
    hidden, wanted = again.backbone(x), expected["encoder_outputs"][2]
    assert_close(hidden["sequence_output"], wanted, 0.0)
    new = again.backbone.weights_report.new
    assert {path.split("/")[0] for path in new} == {"masked_lm"}


# Errors -------------------------------------------------------------------------


def error(entries, message, **sizes):
    with pytest.raises(ValueError, match=message):
        make(entries, **sizes)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            {"masked_lm": {"layer": 13}},
            "`layer` of masked_lm must be a block of the encoder, from 1 to 3. "
            "Received: layer=13.",
        ),
        (
            {"masked_lm": {"layer": 2}, "next_sentence": {"layer": 1}},
            "No objective reads the blocks above 2, so nothing trains them. Received: "
            "3 blocks. Build the encoder with num_layers=2, or put an objective at "
            "block 3.",
        ),
        (
            {"causal_lm": None},
            "causal_lm needs an encoder that reads from left to right.*'transformer' "
            "blocks, causal=False. Build a 'transformer' encoder",
        ),
        (
            {"masked_lm": None, "next_sentence": {"freeze_at_step": 3}},
            "Freezing next_sentence at the last block would leave no block to train. "
            "Received: layer=3 of 3 blocks. Put next_sentence at a lower block, or do "
            "not freeze it.",
        ),
        (
            {"masked_lm": None, "next_sentence": {"layer": 3, "freeze_patience": 2}},
            "Freezing next_sentence at the last block",
        ),
    ],
)
def test_impossible_objectives(entries, message):
    error(entries, message)


def test_backbone_is_an_encoder():
    with pytest.raises(ValueError, match="`backbone` must be a RecBertBackbone.*str"):
        Pretrainer("bert_tiny", {"masked_lm": None})


def test_left_to_right_encoder_shows_no_token_the_sentence():
    error(
        {"masked_lm": {"concatenate": "cls"}, "next_sentence": None},
        "would show each of them what follows. Received: concatenate='cls', causal",
        causal=True,
    )


def test_last_block_by_its_number_is_the_last_block():
    encoder = RecBertBackbone(**SHRUNK["transformer"], vocabulary_size=37)
    model = Pretrainer(encoder, Objectives(MaskedLM(layer=2), NextSentence(layer=2)))
    assert dataclasses.asdict(model.objectives)["masked_lm"]["layer"] == 2
    assert encoder.pretrained_heads["masked_lm"]["layer"] is None


def test_nothing_to_freeze():
    with pytest.raises(ValueError, match="no next_sentence to freeze.*: masked_lm."):
        make({"masked_lm": None}, num_layers=1).freeze_next_sentence()
    model = make({"masked_lm": None, "next_sentence": None}, num_layers=1)
    with pytest.raises(ValueError, match="would leave no block to train"):
        model.freeze_next_sentence()
    assert not model.next_sentence_frozen
