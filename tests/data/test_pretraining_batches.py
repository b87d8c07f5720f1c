"""Batches of pre-training: epochs, validation, and what cannot serve."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_windows import (
    ALL,
    CLS,
    PAD,
    SEP,
    SPECIAL,
    assert_equal,
    epochs_of,
    make,
    make_corpus,
    restore,
    stack,
)

from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives


def test_an_epoch_has_each_example_once_in_an_order_of_its_own():
    examples = make({"next_sentence": {}})
    number = examples.num_examples
    orders = []
    x, _, _ = epochs_of(examples, 0, 4)
    for epoch, shuffled in enumerate(np.split(x["token_ids"], 4)):
        rows = [examples.example(epoch, index)[0] for index in range(number)]
        ids = {row["token_ids"].numpy().tobytes(): i for i, row in enumerate(rows)}
        assert len(ids) == number
        orders.append([ids[row.tobytes()] for row in shuffled])
        assert sorted(orders[-1]) == list(range(number))
    assert len({tuple(order) for order in [range(number), *orders]}) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sequence_length", "objective"),
    [(8, "next_sentence"), (24, "next_sentence"), (9, "causal_lm"), (512, "causal_lm")],
)
def test_each_piece_of_the_corpus_is_reached(sequence_length, objective):
    examples = make({objective: {}}, sequence_length)
    x, y, _ = epochs_of(examples, 0, 1500 // examples.num_examples)
    ids = x["token_ids"]
    if objective == "next_sentence":
        # By windows, not only by random second spans.
        keep = (x["segment_ids"] == 0) | (y["next_sentence"] == 0)[:, None]
        ids = np.where(keep, ids, PAD)
    assert set(np.unique(ids)) - {PAD, CLS, SEP} == set(make_corpus().token_ids)


def test_an_epoch_reads_a_long_document_nearly_once():
    corpus = make_corpus([[9, 11, 10] * 40])
    examples = make({"causal_lm": {}}, corpus=corpus)
    x, _, _ = epochs_of(examples, 0, 5)
    for ids in np.split(x["token_ids"], 5):
        counts = np.bincount(ids.ravel(), minlength=1205)[5:]
        assert (counts > 0).mean() > 0.85
        assert counts.max() <= 2


def test_weights_make_the_mean_of_keras_a_mean_over_predictions():
    batch_size, accumulation_steps = 12, 3
    examples = make()
    whole = next(examples.batches(batch_size, 2).as_numpy_iterator())
    parts = list(
        examples.batches(batch_size, 2, 1, accumulation_steps).as_numpy_iterator()
    )
    assert len(parts) == accumulation_steps
    assert_equal(stack(parts), whole)
    rng = np.random.default_rng(4)
    logits = rng.normal(size=[batch_size, 4, 200]).astype(np.float32)
    shift_logits = rng.normal(size=[batch_size, 24]).astype(np.float32)
    masked = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    plain = keras.losses.SparseCategoricalCrossentropy(True, reduction="none")
    rows = batch_size // accumulation_steps
    losses, shift_losses = [], []
    for part, (_, y, weights) in enumerate(parts):
        chunk = slice(part * rows, (part + 1) * rows)
        losses.append(masked(y["masked_lm"], logits[chunk], weights["masked_lm"]))
        # Keras's binary loss averages the last axis before it weighs; so one is added.
        shift_losses.append(
            keras.losses.BinaryCrossentropy(from_logits=True)(
                y["bigram_shift"][..., None],
                shift_logits[chunk][..., None],
                weights["bigram_shift"],
            )
        )
        assert (weights["next_sentence"] == 1).all()
    x, y, weights = whole
    each = plain(y["masked_lm"], logits).numpy()
    real = weights["masked_lm"] > 0
    np.testing.assert_allclose(np.mean(losses), each[real].mean(), rtol=1e-5)
    words = (restore(x, y, weights) >= 5).astype(bool)
    np.testing.assert_array_equal(weights["bigram_shift"] > 0, words)
    z, label = shift_logits[words], y["bigram_shift"][words]
    each = np.logaddexp(0, z) - label * z
    np.testing.assert_allclose(np.mean(shift_losses), each.mean(), rtol=1e-5)


def test_validation_is_the_same_each_time_and_spread_over_the_corpus():
    examples = make()
    number = examples.num_examples
    batches = examples.fixed_batches(4, 6)
    first, second = (stack(list(batches.as_numpy_iterator())) for _ in range(2))
    assert_equal(first, second)
    sizes = [len(x["token_ids"]) for x, _, _ in batches.as_numpy_iterator()]
    assert sizes == [4, 2] and batches.cardinality() == 2
    rows = [examples.example(0, index * number // 6) for index in range(6)]
    rows = tf.nest.map_structure(lambda *parts: np.stack(parts), *rows)
    assert_equal(first[:2], rows[:2])
    # Weights are scaled over all six together.
    for name, weights in first[2].items():
        real = rows[2][name]
        np.testing.assert_allclose(weights, real * real.size / real.sum(), rtol=1e-6)
    whole = examples.fixed_batches(4, 10**6)
    assert sum(len(y["next_sentence"]) for _, y, _ in whole) == number


@pytest.mark.slow
def test_evaluate_gives_the_mean_over_all_predictions():
    examples = make({"masked_lm": {}})
    (whole,) = examples.fixed_batches(11, 11).as_numpy_iterator()
    inputs = keras.Input([4], dtype="int32", name="mask_positions")
    table = keras.layers.Embedding(24, len(make_corpus().vocabulary), name="masked_lm")
    model = keras.Model(inputs, {"masked_lm": table(inputs)})
    model.compile(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    logits = model.predict(whole[0]["mask_positions"], verbose=0)["masked_lm"]
    each = keras.losses.SparseCategoricalCrossentropy(True, reduction="none")(
        whole[1]["masked_lm"], logits
    ).numpy()
    expected = each[whole[2]["masked_lm"] > 0].mean()
    # Of 4, 4 and 3 rows.
    batches = examples.fixed_batches(4, 11).map(
        lambda x, y, w: (x["mask_positions"], y, w)
    )
    loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def test_a_corpus_serves_several_lengths():
    corpus = make_corpus()
    short, long = (make(ALL, length, corpus) for length in (16, 64))
    assert short.num_examples > long.num_examples
    assert short.example(0, 0)[0]["token_ids"].shape == (16,)
    assert long.example(0, 0)[0]["token_ids"].shape == (64,)


def test_large_vocabularies_have_wide_ids():
    corpus = make_corpus([[30], [30]])
    pieces = tuple(f"q{number}" for number in range(70_000))
    corpus = dataclasses.replace(
        corpus,
        token_ids=corpus.token_ids.astype(np.int32) + 70_000,
        vocabulary=(*SPECIAL, *pieces, *corpus.vocabulary[5:]),
    )
    x, _, _ = make({"causal_lm": {}}, corpus=corpus).example(0, 0)
    assert (x["token_ids"].numpy()[1:-1] > 70_000).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"sequence_length": 7},
            ValueError,
            "`sequence_length` must be a whole number of at least 8. Received: "
            "sequence_length=7.",
        ),
        ({"sequence_length": 16.0}, ValueError, "Received: sequence_length=16.0."),
        ({"seed": -1}, ValueError, "`seed` must be a whole number of at least 0."),
        ({"seed": True}, ValueError, "Received: seed=True."),
        (
            {"objectives": {"masked_lm": {}}},
            TypeError,
            "`objectives` must be Objectives. Received: {'masked_lm': {}}. "
            "Try read_objectives",
        ),
        (
            {"corpus": make_corpus([])},
            ValueError,
            "The corpus some/corpus is empty: it holds no word pieces.",
        ),
        (
            {"corpus": make_corpus([[5, 5]])},
            ValueError,
            "next_sentence takes spans from other documents, so the corpus must have "
            "at least 2. some/corpus has 1. Separate documents by blank lines",
        ),
    ],
)
def test_what_cannot_serve_is_refused_before_work(change, error, message):
    arguments = {
        "corpus": make_corpus(),
        "objectives": read_objectives(ALL),
        "sequence_length": 24,
    }
    with pytest.raises(error) as raised:
        PretrainingExamples(**{**arguments, **change})
    assert message in str(raised.value)


def test_a_vocabulary_without_what_rows_need_is_refused():
    corpus = make_corpus()

    def without(token):
        pieces = tuple(f"[x{p}]" if p == token else p for p in corpus.vocabulary)
        return dataclasses.replace(corpus, vocabulary=pieces)

    with pytest.raises(ValueError) as raised:
        make(ALL, corpus=without("[MASK]"))
    assert str(raised.value) == (
        "masked_lm needs [MASK], which the vocabulary of some/corpus lacks. Add it as "
        "a piece of its own and prepare the corpus with that vocabulary, or train on "
        "causal_lm, which needs no [MASK]."
    )
    make({"causal_lm": {}}, corpus=without("[MASK]"))
    with pytest.raises(
        ValueError, match=r"The vocabulary of some/corpus lacks \[SEP\]"
    ):
        make({"causal_lm": {}}, corpus=without("[SEP]"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be a whole number of at least 1."),
        ({"batch_size": 4, "first_step": -1}, "Received: first_step=-1."),
        ({"batch_size": 4, "num_steps": 2.5}, "Received: num_steps=2.5."),
        (
            {"batch_size": 4, "accumulation_steps": 3},
            "`batch_size` must be a multiple of `accumulation_steps`. Received: "
            "batch_size=4, accumulation_steps=3.",
        ),
    ],
)
def test_batches_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError) as raised:
        make({"causal_lm": {}}).batches(**arguments)
    assert message in str(raised.value)


def test_validation_that_cannot_be_is_refused():
    examples = make({"causal_lm": {}})
    with pytest.raises(
        ValueError, match="`batch_size` must be a whole number of at least 1"
    ):
        examples.fixed_batches(0, 5)
    with pytest.raises(ValueError, match="Received: num_examples=0."):
        examples.fixed_batches(4, 0)
