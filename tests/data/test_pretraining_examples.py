"""Examples of pre-training: pure, from the corpus, as the objectives say.

Each place of the corpora here has a word piece of its own, so that a row tells where
each of its pieces comes from.
"""

import dataclasses
import functools
import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.data.corpus import Corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, _, CLS, SEP, MASK = range(5)
ALL = {"masked_lm": {}, "next_sentence": {}, "bigram_shift": {}}
# Lengths of the sentences of each document.
DOCUMENTS = [[5, 9, 3, 14, 6, 1, 8], [1], [2, 2, 4], [40], [7, 1, 1, 30, 3, 12]]


def make_corpus(documents=DOCUMENTS, continues=lambda place: place % 3 == 2):
    """A corpus whose place `p` holds piece `5 + p`, "##" where it `continues`."""
    lengths = [length for document in documents for length in document]
    number = sum(lengths)
    pieces = [f"{'##' if continues(p) else ''}p{p}" for p in range(number)]
    return Corpus(
        token_ids=np.arange(5, number + 5).astype(np.uint16),
        sentence_starts=np.cumsum([0, *lengths]),
        document_starts=np.cumsum([0, *(len(document) for document in documents)]),
        vocabulary=(*SPECIAL, *pieces),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("some/corpus"),
    )


def make(objectives=None, sequence_length=24, corpus=None, seed=0):
    objectives = ALL if objectives is None else objectives
    if corpus is None:
        return _make_cached(json.dumps(objectives), sequence_length, seed)
    return PretrainingExamples(
        corpus, read_objectives(objectives), sequence_length, seed
    )


@functools.cache  # tracing takes longer than what is tested
def _make_cached(objectives, sequence_length, seed):
    return make(json.loads(objectives), sequence_length, make_corpus(), seed)


def epochs_of(examples, first, number):
    """Rows of whole epochs, as one batch of NumPy arrays; in shuffled order."""
    batches = examples.batches(examples.num_examples, first, number)
    return stack(list(batches.as_numpy_iterator()))


def stack(batches):
    return tf.nest.map_structure(lambda *parts: np.concatenate(parts), *batches)


def assert_equal(first, second):
    tf.nest.assert_same_structure(first, second)
    tf.nest.map_structure(np.testing.assert_array_equal, first, second)


def restore(x, y, weights):
    """Ids of rows with the masked pieces put back."""
    ids = x["token_ids"].copy()
    rows, slots = np.nonzero(weights["masked_lm"])
    ids[rows, x["mask_positions"][rows, slots]] = y["masked_lm"][rows, slots]
    return ids


def spans_of(ids, num_segments):
    """Places of the corpus in the spans of a row, whose frame it checks."""
    separators = np.flatnonzero(ids == SEP)
    assert ids[0] == CLS and len(separators) == num_segments
    assert (ids[separators[-1] + 1 :] == PAD).all()
    spans = np.split(ids[1 : separators[-1]], separators[:-1] - 1)
    spans = [span[span != SEP] - 5 for span in spans]
    assert all(len(span) and (span >= 0).all() for span in spans)
    return spans


def documents_of(corpus, places):
    bounds = corpus.sentence_starts[corpus.document_starts]
    return np.searchsorted(bounds, places, side="right") - 1


@pytest.fixture(scope="module")
def epochs():
    """All objectives, 40 epochs: the examples, and their rows."""
    examples = make()
    return examples, epochs_of(examples, 0, 40)


def test_rows_hold_spans_of_the_corpus(epochs):
    examples, (x, y, weights) = epochs
    corpus = make_corpus()
    bounds = corpus.sentence_starts[corpus.document_starts]
    labels, cuts = [], 0
    for row, ids in enumerate(restore(x, y, weights)):
        a, b = spans_of(ids, 2)
        shifted = y["bigram_shift"][row].copy()
        for span, begin in ((a, 1), (b, len(a) + 2)):
            # Undo the swaps: pieces in ascending order are where they were.
            original = np.arange(span.min(), span.min() + len(span))
            assert (np.sort(span) == original).all()
            assert len(set(documents_of(corpus, original))) == 1
            moved = shifted[begin : begin + len(span)]
            assert (moved == (span != original)).all()
            shifted[begin : begin + len(span)] = 0
            span.sort()
        assert not shifted.any()  # elsewhere nothing is out of place

        document, other = documents_of(corpus, [a[0], b[0]])
        label = y["next_sentence"][row]
        if label == 0:
            assert b[0] == a[-1] + 1 and document == other
        else:
            assert document != other
        length = len(a) + len(b)
        in_document = bounds[document + 1] - bounds[document]
        if label == 0 or in_document == 1:
            assert length == 21 or in_document < 21
        labels.append(label if in_document > 1 else -1)
        # A window is cut at a sentence, if there is one to be cut at.
        inside = np.intersect1d(
            corpus.sentence_starts, np.arange(a[0] + 1, a[0] + min(in_document, 21))
        )
        if len(inside) and in_document > 1:
            assert a[-1] + 1 in inside
            cuts += 1
        begins = corpus.sentence_starts
        if label == 1 and len(inside):
            assert b[0] in begins or b[0] - begins[begins <= b[0]].max() >= 21

        frame = np.arange(24)
        assert (x["padding_mask"][row] == (frame < length + 3)).all()
        segments = (frame >= len(a) + 2) & (frame < length + 3)
        assert (x["segment_ids"][row] == segments).all()
    labels = np.array(labels)
    assert 0.4 < (labels[labels >= 0] == 1).mean() < 0.6 and cuts > 100


def test_random_second_spans_are_as_long_as_those_they_replace():
    # Documents of 15 pieces: otherwise a longer row would tell that B is random.
    corpus = make_corpus([[5, 4, 6], [7, 8], [3, 3, 3, 3, 3], [15]])
    x, y, _ = epochs_of(make(corpus=corpus), 0, 30)
    assert (x["padding_mask"].sum(axis=1) == 18).all()
    assert 0.3 < y["next_sentence"].mean() < 0.7


def test_a_document_of_one_piece_always_gets_a_random_second_span(epochs):
    corpus = make_corpus()
    (single,) = np.flatnonzero(np.diff(corpus.document_starts) == 1)[:1]
    place = corpus.sentence_starts[corpus.document_starts[single]]
    _, (x, y, weights) = epochs
    ids = restore(x, y, weights)
    rows = (ids[:, 1] == place + 5) & (ids[:, 2] == SEP)
    assert rows.sum() == 40  # once an epoch
    assert (y["next_sentence"][rows] == 1).all()
    assert (x["padding_mask"][rows].sum(axis=1) > 10).all()


def test_masks_are_where_words_are_and_as_many_as_the_rate_says(epochs):
    examples, (x, y, weights) = epochs
    assert examples.mask_length == 4  # round(0.15 * 24)
    ids = restore(x, y, weights)
    real = weights["masked_lm"] > 0
    for row in range(len(ids)):
        number = real[row].sum()
        words = (ids[row] >= 5).sum()
        assert number == min(max(1, round(0.15 * words)), 4)
        assert real[row, :number].all()
        positions = x["mask_positions"][row]
        assert (np.diff(positions[:number]) > 0).all()
        assert (ids[row, positions[:number]] >= 5).all()
        assert (positions[number:] == 0).all()
        assert (y["masked_lm"][row, number:] == 0).all()
    # Of the pieces chosen, most become [MASK]; others never become special ones.
    rows, slots = np.nonzero(real)
    now = x["token_ids"][rows, x["mask_positions"][rows, slots]]
    was = y["masked_lm"][rows, slots]
    assert 0.75 < (now == MASK).mean() < 0.85
    assert 0.06 < (now == was).mean() < 0.14
    assert set(np.unique(now)) <= {MASK, *range(5, len(make_corpus().vocabulary))}
    assert (x["token_ids"] == MASK).sum() == (now == MASK).sum()


def test_always_masking_masks_always():
    objectives = {"masked_lm": {"mask_fraction": 1.0, "random_fraction": 0.0}}
    x, _, weights = epochs_of(make(objectives), 0, 2)
    rows, slots = np.nonzero(weights["masked_lm"])
    assert (x["token_ids"][rows, x["mask_positions"][rows, slots]] == MASK).all()
    assert (x["token_ids"] == MASK).sum() == len(rows)


@pytest.mark.parametrize(
    ("unit", "others", "longest"),
    [("whole_word", {}, 2), ("ngram", {"next_sentence": {}, "bigram_shift": {}}, 3)],
)
def test_words_are_masked_whole(unit, others, longest):
    masked_lm = {"unit": unit, "mask_rate": 0.4, "max_ngram": 2}
    continues = np.char.startswith(np.array(make_corpus().vocabulary), "##")
    x, y, weights = epochs_of(make({"masked_lm": masked_lm, **others}), 0, 15)
    ids = restore(x, y, weights)
    runs = []
    for row in range(len(ids)):
        real = weights["masked_lm"][row] > 0
        masked = np.zeros(24, bool)
        masked[x["mask_positions"][row][real]] = True
        # A piece that goes on with a word shares its fate, unless the word began
        # before the span did: then a swap may bring it behind another word.
        goes_on = continues[ids[row]] & (ids[row] == np.roll(ids[row], 1) + 1)
        assert (masked[goes_on] == np.roll(masked, 1)[goes_on]).all()
        runs += np.diff(np.flatnonzero(np.diff(np.pad(masked, 1)))).tolist()[::2]
    assert max(runs) >= longest


def test_a_word_longer_than_the_budget_is_not_masked():
    # One word of 12 pieces, of which 2 may be masked; and a row without any masks
    # weighs nothing.
    corpus = make_corpus([[12]], continues=lambda place: place > 0)
    examples = make({"masked_lm": {"unit": "whole_word"}}, corpus=corpus)
    x, y, weights = examples.example(0, 0)
    assert not weights["masked_lm"].numpy().any() and not y["masked_lm"].numpy().any()
    assert x["token_ids"].numpy()[1:13].tolist() == list(range(5, 17))
    ((_, _, weights),) = examples.batches(2, num_steps=1)
    assert not weights["masked_lm"].numpy().any()  # and is not NaN


def test_a_language_model_predicts_what_comes_next():
    x, y, weights = epochs_of(make({"causal_lm": {}}), 0, 3)
    examples = make({"causal_lm": {}})
    assert examples.mask_length == 23
    assert sorted(x) == [
        *("mask_positions", "padding_mask", "segment_ids", "token_ids")
    ]
    assert (x["mask_positions"] == np.arange(23)).all()
    assert (y["causal_lm"] == x["token_ids"][:, 1:]).all()
    assert ((weights["causal_lm"] > 0) == (x["padding_mask"][:, 1:] > 0)).all()
    for ids in x["token_ids"]:
        (places,) = spans_of(ids, 1)
        assert (np.diff(places) == 1).all()
    # [SEP] is predicted, nothing behind it.
    short = x["padding_mask"].sum(axis=1).argmin()
    assert y["causal_lm"][short][weights["causal_lm"][short] > 0][-1] == SEP


def test_only_what_is_asked_for_is_made():
    x, y, weights = make({"next_sentence": {}}).example(0, 0)
    assert sorted(x) == ["padding_mask", "segment_ids", "token_ids"]
    assert list(y) == list(weights) == ["next_sentence"]
    assert make({"next_sentence": {}}).mask_length == 0
    x, y, weights = make({"bigram_shift": {}}).example(0, 0)
    assert list(y) == ["bigram_shift"] and y["bigram_shift"].shape == (24,)


def test_other_objectives_leave_the_windows_as_they_are():
    plain = make({"masked_lm": {}, "next_sentence": {}})
    mixed = make(
        {"masked_lm": {"unit": "ngram"}, "next_sentence": {}, "bigram_shift": {}}
    )
    for index in range(plain.num_examples):
        rows = [examples.example(3, index) for examples in (plain, mixed)]
        batches = [stack([tf.nest.map_structure(lambda v: v[None], r)]) for r in rows]
        ids = [np.sort(restore(*batch)) for batch in batches]
        np.testing.assert_array_equal(*ids)
        assert_equal(rows[0][0]["segment_ids"], rows[1][0]["segment_ids"])


def test_shapes_are_static_and_types_are_those_of_keras():
    examples = make({**ALL, "masked_lm": {"mask_rate": 0.3}})
    x, y, weights = examples.batches(6).element_spec
    for name in ("token_ids", "segment_ids", "padding_mask"):
        assert x[name] == tf.TensorSpec([6, 24], tf.int32)
    assert x["mask_positions"] == y["masked_lm"] == tf.TensorSpec([6, 7], tf.int32)
    assert y["next_sentence"] == tf.TensorSpec([6], tf.int32)
    assert y["bigram_shift"] == tf.TensorSpec([6, 24], tf.float32)
    for name, spec in weights.items():
        assert spec == tf.TensorSpec(y[name].shape, tf.float32)
    spec = examples.batches(6, accumulation_steps=3).element_spec
    assert spec[0]["token_ids"].shape == (2, 24)
    assert make({"causal_lm": {}}).batches(6).element_spec[1]["causal_lm"] == (
        tf.TensorSpec([6, 23], tf.int32)
    )


def test_an_example_depends_on_seed_epoch_and_index_alone(epochs):
    examples, (x, y, weights) = epochs
    number = examples.num_examples
    flat = (x, y, tf.nest.map_structure(np.sign, weights))
    # Whatever the batch size, and wherever one begins.
    for batch_size, first_step, num_steps in ((7, 0, 9), (5, 4, 3), (number + 3, 1, 2)):
        batches = examples.batches(batch_size, first_step, num_steps)
        found = stack(list(batches.as_numpy_iterator()))
        found = (*found[:2], tf.nest.map_structure(np.sign, found[2]))
        begin, end = batch_size * first_step, batch_size * (first_step + num_steps)
        assert_equal(found, tf.nest.map_structure(lambda v: v[begin:end], flat))  # noqa: B023
    # Alone, in a graph or not; and by other objects.
    again = make(corpus=make_corpus())
    rows = [again.example(1, index) for index in range(number)]
    rows += [tf.function(examples.example)(tf.constant(1), tf.constant(0))]
    found = {row[0]["token_ids"].numpy().tobytes() for row in rows}
    epoch = x["token_ids"][number : 2 * number]
    assert found == {row.tobytes() for row in epoch}
    other = make(seed=1)
    assert other.example(1, 0)[0]["token_ids"].numpy().tobytes() not in found


def test_a_stream_begins_anywhere_at_once():
    examples = make()
    step = 10**12
    one, two = examples.batches(4, step, 2).as_numpy_iterator()
    (again,) = examples.batches(4, step + 1, 1).as_numpy_iterator()
    assert_equal(two, again)
    assert (one[0]["token_ids"] != two[0]["token_ids"]).any()
    assert examples.batches(4).cardinality() == tf.data.INFINITE_CARDINALITY
    assert examples.batches(4, 2, 5).cardinality() == 5
    assert examples.batches(4, 2, 5, 2).cardinality() == 10


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


def test_epochs_differ_in_windows_masks_and_swaps(epochs):
    examples, (x, y, weights) = epochs
    first, second = (
        tf.nest.map_structure(np.array, examples.example(e, 1)) for e in (0, 1)
    )
    assert (first[0]["token_ids"] != second[0]["token_ids"]).any()
    # Also within the document of one sentence, longer than a row.
    begins = np.unique(restore(x, y, weights)[:, 1]) - 5
    assert np.isin(begins, np.arange(56, 96)).sum() >= 3
    # The same window is masked at other places in other epochs.
    short = make({"masked_lm": {}, "bigram_shift": {}}, corpus=make_corpus([[9]]))
    x, y, _ = epochs_of(short, 0, 30)
    assert len(np.unique(x["mask_positions"], axis=0)) > 5
    assert len(np.unique(y["bigram_shift"], axis=0)) > 5


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
