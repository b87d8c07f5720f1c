import numpy as np
import pytest
import tensorflow as tf
from toy_texts import VOCABULARY, reviews

from keras_recbert.tasks.text_batches import bucketed_batches as make_buckets
from keras_recbert.tasks.text_batches import (
    columns,
    is_packed,
    ordered_batches,
    packed_dataset,
    padded_length,
)
from keras_recbert.text.text_preprocessor import TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


def bucketed_batches(*args, **kwargs):
    return make_buckets(*args, **kwargs).dataset


KEYS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module")
def preprocessor():
    return TextPreprocessor(WordPieceTokenizer(VOCABULARY), max_sequence_length=64)


def varied(num_texts, seed=3):
    """Texts of 0 to 40 words, and labels that say which is which."""
    rng = np.random.default_rng(seed)
    words = VOCABULARY[5:19]
    texts = [" ".join(rng.choice(words, rng.integers(0, 41))) for _ in range(num_texts)]
    return texts, np.arange(num_texts)


def real_rows(batches):
    """`{label: (ids, segments)}` of one epoch, and the ids cut off by the mask."""
    rows, sizes = {}, []
    for features, labels in batches:
        assert set(features) == set(KEYS)
        assert all(features[key].dtype == tf.int32 for key in KEYS)
        sizes.append(len(labels))
        for index, label in enumerate(labels.numpy().tolist()):
            ids, segments, mask = (features[key][index].numpy() for key in KEYS)
            length = mask.sum()
            assert mask[:length].all(), "a hole in the mask"
            assert not ids[length:].any() and not segments[length:].any()
            assert label not in rows, f"example {label} comes twice"
            rows[label] = (ids[:length].tolist(), segments[:length].tolist())
    return rows, sizes


def expected_rows(preprocessor, texts):
    packed = {key: value.numpy() for key, value in preprocessor(texts).items()}
    lengths = packed["padding_mask"].sum(axis=1)
    return {
        index: tuple(packed[key][index, :length].tolist() for key in KEYS[:2])
        for index, length in enumerate(lengths)
    }


@pytest.mark.parametrize(
    ("num_texts", "batch_size"), [(1, 8), (5, 8), (97, 8), (97, 1), (64, 100)]
)
def test_each_example_comes_once_with_its_own_label_and_ids(
    preprocessor, num_texts, batch_size
):
    texts, labels = varied(num_texts)
    batches = bucketed_batches(preprocessor, texts, (labels,), batch_size, seed=0)
    rows, sizes = real_rows(batches)
    assert rows == expected_rows(preprocessor, texts)
    assert max(sizes) <= batch_size
    assert int(batches.cardinality()) == len(sizes)


def test_pairs_keep_their_segments(preprocessor):
    first, labels = varied(23)
    second, _ = varied(23, seed=8)
    batches = bucketed_batches(preprocessor, (first, second), (labels,), 4, seed=0)
    rows, _ = real_rows(batches)
    assert rows == expected_rows(preprocessor, (first, second))
    assert {segment for _, segments in rows.values() for segment in segments} == {0, 1}


@pytest.mark.parametrize("num_words", [0, 1, 5, 6, 7, 14, 15, 200])
def test_equal_lengths_make_full_batches(preprocessor, num_words):
    # [CLS] and [SEP] added: around the ends of ranges of 8, and truncated.
    texts = ["film " * num_words] * 10
    batches = bucketed_batches(preprocessor, texts, (np.arange(10),), 4, seed=0)
    rows, sizes = real_rows(batches)
    assert sorted(sizes) == [2, 4, 4]
    assert int(batches.cardinality()) == 3
    assert len(rows[0][0]) == min(num_words + 2, 64)


def test_one_very_long_text_does_not_pad_the_others(preprocessor):
    texts = ["good film"] * 15 + ["film " * 5000]
    batches = bucketed_batches(preprocessor, texts, (np.arange(16),), 8, seed=0)
    widths = sorted(features["token_ids"].shape[1] for features, _ in batches)
    assert widths == [8, 64]
    assert int(batches.cardinality()) == 2


def test_lengths_are_few():
    lengths = np.arange(1, 513)
    padded = padded_length(lengths, 500).numpy()
    assert np.all(padded >= np.minimum(lengths, 500))
    assert np.all(padded[lengths > 8] < 1.25 * lengths[lengths > 8] + 8)
    assert len(set(padded.tolist())) == 20
    assert padded_length(9, 512) == 16
    assert padded_length(9, 12) == 12  # no row exceeds the limit


@pytest.mark.parametrize("batch_size", [1, 4, 7, 300])
def test_every_epoch_has_as_many_batches_as_one_length_would_make(
    preprocessor, batch_size
):
    texts, labels = varied(97)
    made = make_buckets(preprocessor, texts, (labels,), batch_size, seed=0)
    for _ in range(2):
        shapes = [tuple(f["token_ids"].shape) for f, _ in made.dataset]
        assert len(shapes) == -(-97 // batch_size)
        assert sorted(length for _, length in shapes) == sorted(made.lengths)
        assert sum(rows < batch_size for rows, _ in shapes) == (97 % batch_size > 0)


def test_buckets_hold_less_padding_than_order(preprocessor):
    texts, labels = varied(256)

    def padding_share(batches):
        masks = [features["padding_mask"].numpy() for features, _ in batches]
        return 1 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)

    bucketed = padding_share(bucketed_batches(preprocessor, texts, (labels,), 16))
    ordered = padding_share(ordered_batches(preprocessor, texts, (labels,), 16))
    print(f"padding: {100 * bucketed:.1f} % in buckets, {100 * ordered:.1f} % in order")
    assert ordered > 0.4
    assert bucketed < 0.25


def epoch_order(batches):
    return [label for _, labels in batches for label in labels.numpy().tolist()]


def test_order_follows_the_seed_and_changes_with_the_epoch(preprocessor):
    texts, labels = varied(60)

    def two_epochs(seed):
        batches = bucketed_batches(preprocessor, texts, (labels,), 8, seed=seed)
        return epoch_order(batches), epoch_order(batches)

    first, second = two_epochs(seed=1)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(60))
    assert (first, second) == two_epochs(seed=1)
    assert first != two_epochs(seed=2)[0]


def test_weights_stay_with_their_labels(preprocessor):
    texts, labels = varied(20)
    targets = (labels, labels / 10)
    for batches in (
        bucketed_batches(preprocessor, texts, targets, 3, seed=0),
        ordered_batches(preprocessor, texts, targets, 3),
    ):
        for _, batch_labels, weights in batches:
            np.testing.assert_array_equal(batch_labels / 10, weights)


def test_more_texts_than_are_tokenized_at_a_time(preprocessor, monkeypatch):
    monkeypatch.setattr("keras_recbert.tasks.example_rows.PACK_CHUNK", 7)
    texts, labels = varied(30)
    batches = bucketed_batches(preprocessor, texts, (labels,), 8, seed=0)
    assert real_rows(batches)[0] == expected_rows(preprocessor, texts)


def test_ordered_batches_keep_the_order(preprocessor):
    texts, labels = varied(30)
    batches = ordered_batches(preprocessor, texts, (labels,), 8)
    assert epoch_order(batches) == list(range(30))
    assert int(batches.cardinality()) == 4
    assert real_rows(batches)[0] == expected_rows(preprocessor, texts)


def test_datasets_of_every_layout_are_packed(preprocessor):
    texts, labels = reviews(6)
    ids = preprocessor(texts)["token_ids"].numpy()
    pair_ids = preprocessor((texts, texts[::-1]))["token_ids"].numpy()
    weights = np.ones(6)
    layouts = [
        (texts, ids, 0),
        ((texts, labels), ids, 1),
        ((texts, texts[::-1]), pair_ids, 0),
        (((texts, texts[::-1]), labels, weights), pair_ids, 2),
        ((texts, np.eye(2)[labels]), ids, 1),  # labels with an axis of their own
    ]
    for layout, expected, num_targets in layouts:
        single = tf.data.Dataset.from_tensor_slices(layout)
        assert not is_packed(single)
        # Single examples are batched, batches stay as they are.
        for dataset in (single, single.batch(6))[: 2 if num_targets == 2 else 1]:
            packed = packed_dataset(preprocessor, dataset, 6)
            assert is_packed(packed)
            (batch,) = list(packed)
            features, *targets = batch if isinstance(batch, tuple) else (batch,)
            found, length = features["token_ids"].numpy(), expected.shape[1]
            np.testing.assert_array_equal(found[:, :length], expected)
            assert found.shape[1] == padded_length(length, 64)
            assert not found[:, length:].any()
            assert len(targets) == num_targets
            assert all(len(target) == 6 for target in targets)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ((["a"], ["b"], ["c"]), ValueError, "tuple of 3. A batch of single"),
        ((["a", "b"], ["c"]), ValueError, "Received: 2 and 1 texts"),
        ([], ValueError, "There is no text: every column needs at least one"),
        (["a", None], TypeError, r"NoneType at index 1. Replace missing values"),
        ((["a"], [3.5]), TypeError, r"`texts\[1\]` must hold strings only"),
    ],
)
def test_unusable_texts_are_refused(preprocessor, texts, error, message):
    with pytest.raises(error, match=message):
        columns(preprocessor, texts)


@pytest.mark.parametrize("make", [bucketed_batches, ordered_batches])
def test_numbers_of_texts_and_labels_must_match(preprocessor, make):
    with pytest.raises(ValueError, match="Received: 3 texts, 2 labels"):
        make(preprocessor, ["a", "film", "x"], (np.array([0, 1]),), 2)


def test_a_fixed_length_gives_every_batch_its_shape(preprocessor):
    texts, labels = varied(23)
    fixed = TextPreprocessor(preprocessor.tokenizer, sequence_length=50)
    batches = bucketed_batches(fixed, texts, (labels,), 4, seed=0)
    assert batches.element_spec[0]["token_ids"].shape.as_list() == [None, 50]
    rows, _ = real_rows(batches)
    assert rows == expected_rows(fixed, texts)
