"""Examples of pre-training: pure, from the corpus, as the objectives say.

Each place of the corpora here has a word piece of its own, so that a row tells where
each of its pieces comes from.
"""

import numpy as np
import pytest
import tensorflow as tf
from toy_windows import (
    ALL,
    CLS,
    MASK,
    PAD,
    SEP,
    assert_equal,
    epochs_of,
    make,
    make_corpus,
    restore,
    stack,
)


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
