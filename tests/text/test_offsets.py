"""Offsets of word pieces against what a reader would mark in the text."""

import json

import numpy as np
import pytest
import tensorflow as tf
from toy_texts import VOCABULARY

from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

LETTERS = [*"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *(f"##{c}" for c in LETTERS)]
PIECES += ["cafe", "i", "##\u0307", "\u1112", "##\u1161", "##\u11ab", "σ", "##σ"]
# Text, and what each of its uncased pieces stands for.
MARKED = {
    "accents": ("Café cafe\u0301s!", ["Café", "cafe\u0301", "s", "!"]),
    "an accent of its own": ("\u0301 a", ["a"]),
    "emoji": (
        "a \U0001f469\u200d\U0001f4bb b",
        ["a", "\U0001f469\u200d\U0001f4bb", "b"],
    ),
    "selector": ("9\ufe0f\u20e3 b", ["9\ufe0f\u20e3", "b"]),
    "syllable": ("한", ["한", "한", "한"]),
    "dropped between": ("a\u200bb c", ["a", "b", "c"]),
    "long word": ("x" * 101 + " a", ["x" * 101, "a"]),
    "sigma": ("ΣΣ", ["Σ", "Σ"]),
    "wide letters": ("İi", ["İ", "i"]),
    "spaces": ("\u3000 a\u00a0\tb ", ["a", "b"]),
    "nothing": ("", []),
}


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(list(dict.fromkeys(PIECES)))


def marked(tokenizer, texts):
    """Bytes of each piece of each text; checks that the ids are those of a call."""
    ids, begins, ends = tokenizer.tokenize_with_offsets(texts)
    assert ids.to_list() == tokenizer(texts).to_list()
    texts = [text if isinstance(text, bytes) else text.encode() for text in texts]
    return [
        [text[first:last] for first, last in zip(*span, strict=True)]
        for text, *span in zip(texts, begins.to_list(), ends.to_list(), strict=True)
    ]


def test_each_piece_is_marked_in_the_original_text(tokenizer):
    texts = [text for text, _ in MARKED.values()]
    found = marked(tokenizer, texts)
    for name, pieces in zip(MARKED, found, strict=True):
        assert [piece.decode() for piece in pieces] == MARKED[name][1], name


def test_a_text_is_marked_as_it_is_alone(tokenizer):
    texts = [text for text, _ in MARKED.values()]
    assert marked(tokenizer, texts) == [marked(tokenizer, [t])[0] for t in texts]


def test_bytes_that_are_no_text(tokenizer):
    found = marked(tokenizer, [b"a\xff b\xe4\xbd", b"\xff", b"c \xf0\x9f\x98 d"])
    assert found == [[b"a", b"b"], [], [b"c", b"d"]]


def test_a_cased_text_keeps_its_accents():
    tokenizer = WordPieceTokenizer(
        [*PIECES[:4], "Caf", "##é", "##e", "##\u0301"], lowercase=False
    )
    found = marked(tokenizer, ["Café Cafe\u0301"])
    assert [p.decode() for p in found[0]] == ["Caf", "é", "Caf", "e", "\u0301"]


def test_only_the_first_words_are_read():
    tokenizer = WordPieceTokenizer(VOCABULARY)
    texts = ["a film " * 10, "Films"]
    ids, begins, ends = tokenizer.tokenize_with_offsets(texts, max_words=3)
    assert ids.row_lengths().numpy().tolist() == [3, 2]
    assert begins.to_list() == [[0, 2, 7], [0, 4]]
    assert ends.to_list() == [[1, 6, 8], [4, 5]]


def test_in_a_graph_of_a_batch_without_texts(tokenizer):
    graph = tf.function(tokenizer.tokenize_with_offsets)
    assert [part.nrows().numpy() for part in graph(tf.zeros([0], tf.string))] == [0] * 3


@pytest.mark.slow
def test_pieces_of_real_texts_are_those_of_the_marked_bytes(data_dir):
    """The bytes that a piece stands for give the piece again."""
    data = json.loads((data_dir / "squad" / "dev-v1.1.json").read_text())
    texts = [p["context"] for a in data["data"] for p in a["paragraphs"]][::4]
    for name, lowercase in (("uncased", True), ("cased", False)):
        path = data_dir / "vocab" / f"bert-base-{name}-vocab.txt"
        tokenizer = WordPieceTokenizer(path, lowercase)
        ids, begins, ends = tokenizer.tokenize_with_offsets(texts)
        rows = ids.value_rowids().numpy()
        encoded = [text.encode() for text in texts]
        flat = begins.flat_values.numpy(), ends.flat_values.numpy()
        spans = zip(rows, *flat, strict=True)
        bytes_of = [encoded[row][first:last] for row, first, last in spans]
        pieces = np.array(tokenizer.vocabulary)[ids.flat_values.numpy()]
        inside = np.char.startswith(pieces, "##")
        whole = ~inside & (pieces != "[UNK]")
        again = tokenizer(np.array(bytes_of, object)[whole])
        # A piece that begins a word is the begin of what its bytes give.
        assert (
            again[:, :1].flat_values == ids.flat_values[whole]
        ).numpy().mean() > 0.99
        # Nothing of a text but space and dropped characters is between two pieces.
        text, left = encoded[0], list(encoded[0])
        for first, last in zip(begins[0].numpy(), ends[0].numpy(), strict=True):
            left[first:last] = [32] * (last - first)
        assert not bytes(left).strip(), text
