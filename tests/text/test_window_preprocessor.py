"""Windows of texts against a loop over words, each of them one word piece."""

import numpy as np
import pytest
import tensorflow as tf
from toy_texts import FILLERS, LIKED, VOCABULARY

from keras_recbert.text.window_preprocessor import WindowPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.usefixtures("pack_op_by_op")

TOKENIZER = WordPieceTokenizer(VOCABULARY)
PACKED = ("token_ids", "segment_ids")
WORDS = (*FILLERS, *LIKED)
LENGTHS = (0, 1, 5, 6, 7, 8, 12, 13, 29)
FIRST_LENGTHS = (3, 0, 9, 2, 1, 30, 4, 2, 7)


def texts_of(lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, length)) for length in lengths]


def windows_of(words, room, stride):
    """Windows of a list of words, one after the other."""
    windows = [words[:room]]
    begin = 0
    while begin + room < len(words):
        begin += min(stride, room)
        windows.append(words[begin : begin + room])
    return windows


def unpadded(packed, *place):
    """Ids and segments of the tokens of a row."""
    length = packed["padding_mask"].numpy()[place].sum()
    row = {name: ids.numpy()[place] for name, ids in packed.items()}
    assert row["padding_mask"].tolist() == [1] * length + [0] * (
        len(row["padding_mask"]) - length
    )
    assert (row["token_ids"][length:] == TOKENIZER.pad_id).all()
    assert not row["segment_ids"][length:].any()
    return [row[name][:length].tolist() for name in PACKED]


def row_of(*segments):
    """Ids and segments of a row of lists of words."""
    ids, numbers = [TOKENIZER.cls_id], [0]
    for number, words in enumerate(segments):
        ids += [*map(VOCABULARY.index, words), TOKENIZER.sep_id]
        numbers += [number] * (len(words) + 1)
    return [ids, numbers]


def assert_rows(packed, expected):
    """Rows of each example are these, and those behind them padding."""
    for index, rows in enumerate(expected):
        number = packed["token_ids"].shape[1]
        found = [unpadded(packed, index, place) for place in range(number)]
        assert found == rows + [[[], []]] * (number - len(rows)), index


@pytest.mark.parametrize(
    "limit, length, stride", [(8, None, None), (3, None, None), (8, 8, 50)]
)
def test_windows_are_those_of_a_loop(limit, length, stride):
    packer = WindowPreprocessor(TOKENIZER, length, limit, stride)
    texts, room = texts_of(LENGTHS), limit - 2
    stride = stride or max(1, 3 * room // 4)
    windows = [windows_of(text.split(), room, stride) for text in texts]
    packed = packer(texts)
    assert_rows(packed, [list(map(row_of, own)) for own in windows])
    assert packed["token_ids"].shape == (len(texts), max(map(len, windows)), limit)
    assert all(ids.dtype == tf.int32 for ids in packed.values())


def test_the_second_text_of_a_pair_is_cut():
    packer = WindowPreprocessor(TOKENIZER, max_sequence_length=13, stride=3)
    first, second = texts_of(FIRST_LENGTHS, 1), texts_of(LENGTHS)
    expected = []
    for a, b in zip(first, second, strict=True):
        a, b = a.split(), b.split()
        a = a[: max(5, 10 - len(b))]  # of 13, 3 of them special
        own = windows_of(b, 10 - len(a), 3) if b else [[]]
        expected.append([row_of(a, window) for window in own])
    assert_rows(packer((first, second)), expected)


def test_no_text():
    packed = WindowPreprocessor(TOKENIZER, max_sequence_length=8)([])
    assert packed["token_ids"].shape == (0, 0, 1)


@pytest.mark.parametrize(
    "arguments, x, error, message",
    [
        ({"stride": 0}, ["a"], ValueError, "`stride` must be a whole number"),
        ({"truncation": "only_first"}, ["a"], TypeError, "truncation"),
        ({}, (["a"], ["b"], ["c"]), ValueError, "Received: a tuple of 3"),
        ({"max_sequence_length": 4}, (["a"], ["b"]), ValueError, "at least 5 tokens"),
        ({}, ["a", 3], TypeError, "Received 3 of type int at index 1"),
    ],
)
def test_what_is_not_valid_is_refused(arguments, x, error, message):
    with pytest.raises((error, ValueError), match=message):
        WindowPreprocessor(TOKENIZER, **arguments)(x)
