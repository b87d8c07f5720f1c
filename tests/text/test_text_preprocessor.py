"""Packing of texts and pairs: layout, truncation, padding, input kinds."""

import collections
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text

from keras_recbert.text import packer
from keras_recbert.text.text_preprocessor import TRUNCATIONS, TextPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.usefixtures("pack_op_by_op")

PIECES = ["pad", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "##x", "[PAD]"]
PAD = 10  # not 0, so that a forgotten pad value shows
FIELDS = ("token_ids", "segment_ids", "padding_mask")


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(PIECES)


def lists(packed):
    return [packed[field].numpy().tolist() for field in FIELDS]


def expected_keep(truncation, first, second, budget):
    """Numbers of tokens kept, one token at a time, from the definitions."""
    if truncation == "longest_first":
        first_was_longer = first > second
        while first + second > budget:
            # Equal halves: the token goes to the text that was longer at first, so
            # the other one is shortened.
            if first > second or (first == second and not first_was_longer):
                first -= 1
            else:
                second -= 1
    elif truncation == "round_robin":
        kept = [0, 0]
        while sum(kept) < min(budget, first + second):
            for index, length in enumerate((first, second)):
                if kept[index] < length and sum(kept) < budget:
                    kept[index] += 1
        first, second = kept
    elif truncation == "only_first":
        first = min(first, budget - second)
    elif truncation == "only_second":
        second = min(second, budget - first)
    else:
        first = min(first, budget)
        second = min(second, budget - first)
    return first, second


def test_single_texts_are_packed_and_padded(tokenizer):
    packed = TextPreprocessor(tokenizer)(["a bx", "", "c d e?"])
    assert lists(packed) == [
        [
            [2, 4, 5, 9, 3, PAD],
            [2, 3, PAD, PAD, PAD, PAD],
            [2, 6, 7, 8, 1, 3],
        ],
        [[0] * 6] * 3,
        [[1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 0, 0], [1] * 6],
    ]
    assert all(packed[field].dtype == tf.int32 for field in FIELDS)
    assert tuple(packed) == FIELDS


def test_pairs_are_packed_and_padded(tokenizer):
    packed = TextPreprocessor(tokenizer)((["a b", "", "c"], ["c", "d", ""]))
    assert lists(packed) == [
        [
            [2, 4, 5, 3, 6, 3],
            [2, 3, 7, 3, PAD, PAD],
            [2, 6, 3, 3, PAD, PAD],
        ],
        [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 0, 0]],
        [[1] * 6, [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0]],
    ]


def test_a_fixed_length_pads_and_cuts(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, sequence_length=5)
    packed = preprocessor(["a", "a b c d e"])
    assert lists(packed)[0] == [[2, 4, 3, PAD, PAD], [2, 4, 5, 6, 3]]


def test_a_dynamic_length_stops_at_the_maximum(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, max_sequence_length=5)
    assert preprocessor(["a"])["token_ids"].shape == (1, 3)
    assert lists(preprocessor(["a b c d e"]))[0] == [[2, 4, 5, 6, 3]]


def test_special_tokens_cannot_come_from_text(tokenizer):
    packed = TextPreprocessor(tokenizer)(["a [SEP] [PAD]"])
    ids = packed["token_ids"].numpy()[0]
    assert (ids == 3).sum() == 1 and PAD not in ids


@pytest.mark.parametrize("truncation", TRUNCATIONS)
@pytest.mark.parametrize("sequence_length", [5, 8, 9, 12])
def test_truncation_follows_its_definition(tokenizer, truncation, sequence_length):
    budget = sequence_length - 3
    lengths = [(i, j) for i in range(12) for j in range(12)]
    if truncation == "only_first":
        lengths = [(i, j) for i, j in lengths if j < budget]
    if truncation == "only_second":
        lengths = [(i, j) for i, j in lengths if i < budget]
    texts = (
        [" ".join("abcde"[k % 5] for k in range(i)) for i, _ in lengths],
        [" ".join("edcba"[k % 5] for k in range(j)) for _, j in lengths],
    )
    preprocessor = TextPreprocessor(
        tokenizer, sequence_length=sequence_length, truncation=truncation
    )
    packed = preprocessor.pack(*preprocessor.columns(texts))
    packed = {name: rows.numpy().tolist() for name, rows in packed.items()}
    for row, (i, j) in enumerate(lengths):
        first, second = expected_keep(truncation, i, j, budget)
        expected = [2, *(4 + k % 5 for k in range(first)), 3] + [
            *(8 - k % 5 for k in range(second)),
            3,
        ]
        padding = sequence_length - len(expected)
        segments = [0] * (first + 2) + [1] * (second + 1) + [0] * padding
        assert packed["token_ids"][row] == expected + [PAD] * padding
        assert packed["segment_ids"][row] == segments
        mask = [1] * len(expected) + [0] * padding
        assert packed["padding_mask"][row] == mask


def test_round_robin_and_waterfall_equal_the_trimmers_of_tf_text(tokenizer):
    first, second = ["a " * n for n in (0, 1, 3, 9, 9, 4)], ["b " * 6] * 6
    segments = [tokenizer(first), tokenizer(second)]
    trimmers = {
        "round_robin": tf_text.RoundRobinTrimmer(7),
        "waterfall": tf_text.WaterfallTrimmer(7),
    }
    for truncation, trimmer in trimmers.items():
        preprocessor = TextPreprocessor(
            tokenizer, sequence_length=10, truncation=truncation
        )
        ids, _ = tf_text.combine_segments(trimmer.trim(segments), 2, 3)
        expected = ids.to_tensor(PAD, shape=(None, 10)).numpy().tolist()
        assert lists(preprocessor((first, second)))[0] == expected


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize(
    ("truncation", "texts", "message"),
    [
        ("only_first", ("a a", "b b b b b"), "the second text of a pair alone fills"),
        ("only_second", ("a a a a a a", "b"), "the first text of a pair alone fills"),
    ],
)
def test_a_pair_that_cannot_fit_is_an_error(tokenizer, truncation, texts, message):
    preprocessor = TextPreprocessor(tokenizer, sequence_length=8, truncation=truncation)
    for function in (preprocessor, tf.function(preprocessor)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            function(tuple(tf.constant([text]) for text in texts))


def test_one_very_long_pair_takes_seconds(tokenizer):
    # TF Text's ShrinkLongestTrimmer would take a step for each token dropped.
    preprocessor = TextPreprocessor(tokenizer, sequence_length=16)
    start = time.perf_counter()
    packed = preprocessor((["a " * 500_000], ["b " * 400_000]))
    assert time.perf_counter() - start < 15  # 0.6 s on a quiet machine
    assert lists(packed)[0] == [[2] + [4] * 7 + [3] + [5] * 6 + [3]]


@pytest.mark.parametrize(
    "texts",
    [
        ["a b", "c"],
        np.array(["a b", "c"]),
        np.array(["a b", "c"], dtype=object),
        tf.constant(["a b", "c"]),
        (["a b", "c"],),
    ],
    ids=["list", "array", "objects", "tensor", "tuple of one"],
)
def test_two_texts_in_a_list_or_array_are_two_rows(tokenizer, texts):
    packed = TextPreprocessor(tokenizer)(texts)
    assert lists(packed)[0] == [[2, 4, 5, 3], [2, 6, 3, PAD]]


def test_a_string_is_one_row_and_a_tuple_of_two_is_a_pair(tokenizer):
    preprocessor = TextPreprocessor(tokenizer)
    assert lists(preprocessor("a b"))[0] == [[2, 4, 5, 3]]
    assert lists(preprocessor(("a b", "c")))[0] == [[2, 4, 5, 3, 6, 3]]
    pair = (np.array(["a b"]), ["c"])
    assert lists(preprocessor(pair))[0] == [[2, 4, 5, 3, 6, 3]]


@pytest.mark.parametrize("texts", [[], ([], []), np.array([], dtype=object)])
def test_no_texts_give_no_rows(tokenizer, texts):
    packed = TextPreprocessor(tokenizer, sequence_length=6)(texts)
    assert all(packed[field].shape == (0, 6) for field in FIELDS)
    packed = TextPreprocessor(tokenizer)(texts)
    assert all(packed[field].shape[0] == 0 for field in FIELDS)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["a", None], TypeError, "`texts` .* None of type NoneType at index 1"),
        ((["a"], [None]), TypeError, r"`texts\[1\]` .* NoneType at index 0"),
        ([("a", "b")], TypeError, r"tuple at index 0.*\(first_texts, second_texts\)"),
        ([["a"], ["b"]], TypeError, "list at index 0"),
        (np.array([1, 2]), TypeError, "type int64 at index 0"),
        (tf.constant([1.0]), TypeError, "tensor of dtype float32"),
        (("a", "b", "c"), ValueError, "tuple of 3"),
        ((), ValueError, "tuple of 0"),
        ((["a"], ["b", "c"]), ValueError, "Received: 1 and 2 texts"),
        (tf.constant([["a"]]), ValueError, r"shape \(1, 1\)"),
    ],
)
def test_what_is_no_batch_of_texts_is_an_error(tokenizer, texts, error, message):
    with pytest.raises(error, match=message):
        TextPreprocessor(tokenizer)(texts)


@pytest.mark.usefixtures("graphs")
def test_a_pair_of_unequal_batches_is_an_error_in_a_graph(tokenizer):
    preprocessor = TextPreprocessor(tokenizer)
    spec = tf.TensorSpec([None], tf.string)
    function = tf.function(lambda *texts: preprocessor(texts), [spec, spec])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="needs the same number of texts"
    ):
        function(tf.constant(["a"]), tf.constant(["b", "c"]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"truncation": "last"}, ValueError, "must be one of longest_first, .*='last'"),
        ({"sequence_length": 2}, ValueError, "`sequence_length` .* at least 3.*=2"),
        (
            {"sequence_length": 8.0},
            ValueError,
            "`sequence_length` must be a whole",
        ),
        (
            {"max_sequence_length": 0},
            ValueError,
            "`max_sequence_length` .* least 3.*=0",
        ),
        (
            {"sequence_length": 128, "max_sequence_length": 64},
            ValueError,
            "sequence_length=128, max_sequence_length=64",
        ),
        ({"tokenizer": "vocab.txt"}, TypeError, "Received: 'vocab.txt'. Try WordPiece"),
    ],
)
def test_arguments_that_cannot_work_are_errors(tokenizer, arguments, error, message):
    with pytest.raises(error, match=message):
        TextPreprocessor(**{"tokenizer": tokenizer, **arguments})


def test_a_length_that_fits_texts_but_no_pairs(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, sequence_length=4)
    assert lists(preprocessor(["a b c"]))[0] == [[2, 4, 5, 3]]
    with pytest.raises(ValueError, match="A pair needs at least 5 tokens.*limit of 4"):
        preprocessor((["a"], ["b"]))


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize("sequence_length", [None, 7])
def test_the_same_ids_come_out_of_tf_data(tokenizer, sequence_length):
    preprocessor = TextPreprocessor(tokenizer, sequence_length=sequence_length)
    first, second = ["a b c d", "é\0", ""], ["e", "bx ax", "d 🙂 d d d d"]
    texts = first if sequence_length is None else (first, second)
    dataset = tf.data.Dataset.from_tensor_slices((texts,)).batch(3).map(preprocessor)
    assert lists(next(iter(dataset))) == lists(preprocessor(texts))
    for field in FIELDS:
        spec = dataset.element_spec[field]
        assert spec.dtype == tf.int32
        assert spec.shape.as_list() == [None, sequence_length]


def test_a_batch_equals_its_rows(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, sequence_length=9)
    first, second = ["a b c d e", "", "ax"], ["e", "bx ax", "d d d d d d d"]
    batch = lists(preprocessor((first, second)))
    rows = [lists(preprocessor(pair)) for pair in zip(first, second, strict=True)]
    assert batch == [[row[field][0] for row in rows] for field in range(3)]


def test_config_round_trip_holds_the_tokenizer():
    preprocessor = TextPreprocessor(
        WordPieceTokenizer(PIECES, lowercase=False),
        sequence_length=6,
        max_sequence_length=20,
        truncation="waterfall",
        name="packer",
    )
    again = TextPreprocessor.from_config(preprocessor.get_config())
    assert again.get_config() == preprocessor.get_config()
    assert again.name == "packer" and again.tokenizer.lowercase is False
    text = "a A b"
    assert lists(again(text)) == lists(preprocessor(text))


@pytest.mark.usefixtures("graphs")
def test_a_keras_file_from_strings_to_ids(tokenizer, tmp_path):
    texts = keras.Input((), dtype="string")
    packed = TextPreprocessor(tokenizer, sequence_length=6)(texts)
    model = keras.Model(texts, packed)
    assert packed["token_ids"].shape == (None, 6)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    batch = tf.constant(["a b", "c d e a b c d"])
    assert lists(again(batch)) == lists(model(batch))


def test_mixed_precision_leaves_ids_alone(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, dtype="mixed_bfloat16")
    assert preprocessor(["a"])["token_ids"].dtype == tf.int32


@pytest.mark.usefixtures("graphs")
def test_equal_preprocessors_share_their_graph():
    one, same = (
        TextPreprocessor(WordPieceTokenizer(PIECES), sequence_length=9),
        TextPreprocessor(WordPieceTokenizer(PIECES), sequence_length=9),
    )
    other = TextPreprocessor(WordPieceTokenizer(PIECES), sequence_length=8)
    assert packer._traced(one, 1) is packer._traced(same, 1)
    assert packer._traced(one, 1) is not packer._traced(other, 1)
    assert packer._traced(one, 1) is not packer._traced(one, 2)
    for preprocessor, length in ((one, 9), (same, 9), (other, 8)):
        assert preprocessor(["a b"])["token_ids"].shape == (1, length)


@pytest.mark.usefixtures("graphs")
def test_few_graphs_are_kept(monkeypatch):
    monkeypatch.setattr(packer, "_MOST_TRACED", 2)
    monkeypatch.setattr(packer, "_TRACED", collections.OrderedDict())
    for length in range(10, 14):
        packer._traced(
            TextPreprocessor(WordPieceTokenizer(PIECES), sequence_length=length), 1
        )
    assert len(packer._TRACED) == 2
