"""Rows of words against a loop, the forms of a batch, words of raw texts."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from toy_texts import VOCABULARY

from keras_recbert.text.word_preprocessor import WordPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.usefixtures("pack_op_by_op")

TOKENIZER = WordPieceTokenizer(VOCABULARY)
# Of one, two and three word pieces, of none, and an unknown one.
WORDS = ("film", "films", "a b c", "\u200b", "good.", "zebra", "Mu\u0301sic", " ")
FEATURES = ("token_ids", "segment_ids", "word")


def sentences(number=9, seed=0):
    """Sentences of 0 to 40 words, in no order of length."""
    rng = np.random.default_rng(seed)
    return [list(map(str, rng.choice(WORDS, (17 * i) % 41))) for i in range(number)]


def rows_of_a_loop(words, limit, stride):
    """Rows of a sentence, window by window."""
    pieces, first_of = [], []
    for index, word in enumerate(words):
        ids = TOKENIZER([word]).to_list()[0] or [TOKENIZER.unk_id]
        pieces += ids
        first_of += [index] + [-1] * (len(ids) - 1)
    room = limit - 2
    starts = [0]
    while starts[-1] + room < len(pieces):
        starts.append(starts[-1] + min(stride, room))
    spans = [(start, min(start + room, len(pieces))) for start in starts]

    def context(place, span):
        start, end = span
        if not start <= place < end:
            return -1
        return min(place - start, end - 1 - place) + 0.01 * (end - start)

    rows = []
    for number, (start, end) in enumerate(spans):
        word = []
        for place in range(start, end):
            scores = [context(place, span) for span in spans]
            counts = scores.index(max(scores)) == number
            word.append(first_of[place] if counts else -1)
        ids = [TOKENIZER.cls_id, *pieces[start:end], TOKENIZER.sep_id]
        rows.append((ids, [0] * len(ids), [-1, *word, -1]))
    return rows


@pytest.mark.parametrize(
    "limit, stride", [(3, None), (9, 2), (16, 14), (20, 40), (512, None)]
)
def test_rows_are_those_of_a_loop(limit, stride):
    batch = sentences()
    packer = WordPreprocessor(TOKENIZER, max_sequence_length=limit, stride=stride)
    packed = {name: value.numpy() for name, value in packer(batch).items()}
    found = collections.defaultdict(list)
    counted = collections.Counter()
    for row, length in enumerate(packed["padding_mask"].sum(1)):
        example = packed["example"][row]
        features = [packed[name][row, :length].tolist() for name in FEATURES]
        found[example].append(tuple(features))
        assert (packed["word"][row, length:] == -1).all()
        counted.update((example, word) for word in features[2] if word >= 0)
    for index, words in enumerate(batch):
        step = stride or max(1, (limit - 2) // 2)
        assert found[index] == rows_of_a_loop(words, limit, step), index
    # Each word of each sentence counts once.
    assert counted == {(i, w): 1 for i, s in enumerate(batch) for w in range(len(s))}


def test_the_forms_of_a_batch_are_one():
    batch = [["films", "good."], [], ["a", "\u200b", "zebra"]]
    packer = WordPreprocessor(TOKENIZER, sequence_length=6)
    expected = packer(batch)
    assert expected["token_ids"].shape == (3, 6)
    padded = [words + [""] * (4 - len(words)) for words in batch]
    for form in (
        {"words": batch},
        (batch,),
        [tuple(words) for words in batch],
        tf.ragged.constant(batch),
        tf.constant(padded),
        np.array(padded),
        np.array(padded, object),
        [[word.encode() for word in words] for words in batch],
    ):
        for name, value in packer(form).items():
            assert np.array_equal(value, expected[name]), name


def test_no_sentences():
    packed = WordPreprocessor(TOKENIZER)(tf.zeros([0, 0], tf.string))
    assert all(value.shape[0] == 0 for value in packed.values())


@pytest.mark.parametrize(
    "batch, error, message",
    [
        (["a film"], TypeError, r"list of strings for each.*'a film'.*at index 0"),
        ("film", TypeError, "a list of strings for each example. Received: 'film'"),
        ([["a"], ["b", 3]], TypeError, "Received 3 of type int at index 1, at place 1"),
        ([["a", ""]], ValueError, "`words` must hold no empty string.*at index 0"),
        (tf.constant(["a"]), ValueError, r"two axes.*Received shape \(1,\)"),
        (tf.constant([[1]]), TypeError, "Received a tensor of dtype int32"),
        ({"text": ["a"]}, ValueError, "one field, 'words'"),
    ],
)
def test_what_is_no_sentence_of_words_is_refused(batch, error, message):
    with pytest.raises(error, match=message):
        WordPreprocessor(TOKENIZER)(batch)


def test_a_stride_that_is_none_is_refused():
    with pytest.raises(ValueError, match="`stride` must be a whole number"):
        WordPreprocessor(TOKENIZER, stride=0)


def test_words_of_raw_texts_are_their_bytes():
    texts = ["  Cafe\u0301 😀films, 한!", "", "\u200b a"]
    words, starts, ends = WordPreprocessor(TOKENIZER).split_text(texts)
    expected = [["Cafe\u0301", "😀films", ",", "한", "!"], [], ["a"]]
    found = [[w.decode() for w in row if w] for row in words.numpy().tolist()]
    assert found == expected
    for text, row, begin, end in zip(
        texts, expected, starts.numpy(), ends.numpy(), strict=True
    ):
        number = len(row)
        marked = [
            text.encode()[b:e].decode()
            for b, e in zip(begin[:number], end[:number], strict=True)
        ]
        assert marked == row
        assert (begin[number:] == -1).all() and (end[number:] == -1).all()
