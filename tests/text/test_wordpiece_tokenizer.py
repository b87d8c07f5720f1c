"""WordPiece ids: by definition, and on awkward text."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from toy_word_pieces import AWKWARD, INVALID_UTF8, PIECES, words_of

from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(PIECES)


def pieces_of(tokenizer, text):
    return [tokenizer.id_to_token(index) for index in tokenizer([text])[0].numpy()]


def test_the_longest_piece_is_taken_first(tokenizer):
    assert pieces_of(tokenizer, "The windmills turned.") == (
        ["the", "wind", "##mill", "##s", "turn", "##ed", "."]
    )


def test_a_word_with_an_unknown_part_is_unknown_as_a_whole(tokenizer):
    assert pieces_of(tokenizer, "windx wind") == ["[UNK]", "wind"]


def test_special_tokens_in_a_text_are_plain_words(tokenizer):
    assert pieces_of(tokenizer, "[SEP]") == ["[", "sep", "]"]


@pytest.mark.parametrize(("text", "uncased", "cased"), AWKWARD)
def test_words_follow_the_definition(text, uncased, cased):
    assert words_of([text]) == [uncased]
    assert words_of([text], lowercase=False) == [cased]


def test_case_and_accents_can_be_set_apart():
    text = "ÉTÉ"
    assert words_of([text], lowercase=True, strip_accents=False) == [["été"]]
    assert words_of([text], lowercase=False, strip_accents=True) == [["ETE"]]


@pytest.mark.parametrize(("text", "expected"), INVALID_UTF8)
def test_invalid_utf8_is_dropped(text, expected):
    for lowercase in (True, False):
        assert words_of([text], lowercase=lowercase) == [expected]
    decoded = text.decode("utf-8", "replace")
    assert words_of([decoded]) == [expected]


def test_half_a_surrogate_pair_is_dropped(tokenizer):
    assert tokenizer(["the\ud83d wind"]).to_list() == [[5, 6]]


def test_a_word_of_100_characters_is_the_longest():
    # Characters, not bytes: 100 of these take 200 bytes.
    tokenizer = WordPieceTokenizer([*PIECES, "ß", "##ß"])
    long_enough, too_long = tokenizer(["ß" * 100, "ß" * 101]).to_list()
    assert long_enough == [tokenizer.token_to_id("ß")] + 99 * [
        tokenizer.token_to_id("##ß")
    ]
    assert too_long == [tokenizer.unk_id]
    # Counted after normalisation, as everywhere.
    assert len(tokenizer(["ß\u0301" * 100])[0]) == 100


@pytest.mark.parametrize(
    ("text", "expected_length"),
    [
        ("x" * 1_000_000, 1),
        ("é" * 500_000, 1),
        ("the wind! " * 100_000, 300_000),
        ("你" * 333_333, 333_333),
        ("\u0301" * 500_000, 0),
        ("." * 1_000_000, 1_000_000),
    ],
    ids=["word", "accents", "text", "ideographs", "marks", "punctuation"],
)
def test_a_megabyte_takes_seconds(tokenizer, text, expected_length):
    start = time.perf_counter()
    ids = tokenizer([text])
    seconds = time.perf_counter() - start
    assert ids.row_lengths().numpy().tolist() == [expected_length]
    assert seconds < 10  # 0.02 to 0.5 s on a quiet machine


@pytest.mark.parametrize(
    "texts",
    [
        ["the wind", "", "turned!"],
        [b"the wind", "", np.str_("turned!")],
        np.array(["the wind", "", "turned!"]),
        np.array(["the wind", b"", "turned!"], dtype=object),
        tf.constant(["the wind", "", "turned!"]),
        [tf.constant("the wind"), tf.constant(""), tf.constant("turned!")],
    ],
    ids=["list", "mixed", "array", "objects", "tensor", "tensors"],
)
def test_any_batch_of_strings_is_taken(tokenizer, texts):
    ids = tokenizer(texts)
    assert isinstance(ids, tf.RaggedTensor)
    assert ids.dtype == tf.int32 and ids.shape.as_list() == [3, None]
    assert ids.to_list() == [[5, 6], [], [9, 10, 13]]


@pytest.mark.parametrize("text", ["the wind", b"the wind", tf.constant("the wind")])
def test_one_string_is_a_batch_of_one(tokenizer, text):
    assert tokenizer(text).to_list() == [[5, 6]]


def test_no_texts_give_no_rows(tokenizer):
    assert tokenizer([]).shape.as_list() == [0, None]


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (["a", None], TypeError, "None of type NoneType at index 1"),
        (["a", "b", float("nan")], TypeError, "nan of type float at index 2"),
        (np.array([1.5]), TypeError, "type float64 at index 0"),
        ([("a", "b")], TypeError, "tuple at index 0.*tuple of two batches"),
        (tf.constant([1]), TypeError, "tensor of dtype int32"),
        (3, TypeError, "3 of type int"),
        ({"a": 1}, TypeError, "of type dict"),
        (np.array([["a"]]), ValueError, r"one axis.*shape \(1, 1\)"),
        (tf.constant([["a"]]), ValueError, r"one axis.*shape \(1, 1\)"),
        (tf.ragged.constant([["a"]]), ValueError, "one axis"),
    ],
)
def test_what_is_no_batch_of_strings_is_an_error(tokenizer, texts, error, message):
    with pytest.raises(error, match=message):
        tokenizer(texts)


def test_ids_and_tokens_map_to_each_other(tokenizer):
    special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    assert special == (0, 1, 2, 3) and tokenizer.mask_id == 4
    assert tokenizer.vocabulary_size == len(PIECES)
    for index, piece in enumerate(PIECES):
        assert tokenizer.token_to_id(piece) == index
        assert tokenizer.id_to_token(index) == piece
    assert WordPieceTokenizer(PIECES[:4]).mask_id is None
    with pytest.raises(KeyError, match="'zebra' is not in the vocabulary of 32"):
        tokenizer.token_to_id("zebra")
    with pytest.raises(IndexError, match="from 0 to 31. Received: -1"):
        tokenizer.id_to_token(-1)


def test_detokenize_joins_pieces(tokenizer):
    ids = tokenizer(["The windmills turned.", ""])
    assert tokenizer.detokenize(ids).numpy().tolist() == [
        b"the windmills turned .",
        b"",
    ]
    dense = tf.constant([[2, 5, 3, 0]])
    assert tokenizer.detokenize(dense).numpy().tolist() == [b"[CLS] the [SEP] [PAD]"]
    assert tokenizer.detokenize([[5, 6], [9]]).numpy().tolist() == [
        b"the wind",
        b"turn",
    ]


@pytest.mark.parametrize("bad", [-1, len(PIECES), 2**30])
def test_detokenize_refuses_ids_outside_the_vocabulary(tokenizer, bad):
    # Unchecked, TF Text's operation crashes the process.
    for function in (tokenizer.detokenize, tf.function(tokenizer.detokenize)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="from 0 to 31"):
            function(tf.constant([[5, bad]]))


@pytest.mark.parametrize(
    ("vocabulary", "error", "message"),
    [
        ([], ValueError, "`vocabulary` is empty"),
        (["[PAD]", "[UNK]", "[CLS]"], ValueError, r"`vocabulary` lacks \[SEP\]"),
        ([*PIECES, "wind"], ValueError, "index 32: 'wind' is there already"),
        ([*PIECES, 7], TypeError, "index 32: word pieces must be str.*7 of type int"),
        ([*PIECES, "\ud800"], ValueError, "index 32: .* at most 256 bytes of UTF-8"),
        ("/no/such/vocab.txt", FileNotFoundError, "No vocabulary file at /no/such"),
    ],
)
def test_unusable_vocabularies_are_errors(vocabulary, error, message):
    with pytest.raises(error, match=message):
        WordPieceTokenizer(vocabulary)


def test_the_same_ids_come_out_of_tf_data(tokenizer):
    texts = [text for text, _, _ in AWKWARD]
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(7).map(tokenizer)
    rows = [row for batch in dataset for row in batch.to_list()]
    assert rows == tokenizer(texts).to_list()


def test_a_keras_file_needs_no_vocabulary_file(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    tokenizer = WordPieceTokenizer(path, lowercase=False, strip_accents=True)
    texts = keras.Input((), dtype="string")
    keras.Model(texts, tokenizer(texts)).save(tmp_path / "model.keras")
    path.unlink()
    again = keras.saving.load_model(tmp_path / "model.keras").layers[1]
    assert again.get_config() == tokenizer.get_config()
    text = "ÉTÉ the wind"
    assert pieces_of(again, text) == pieces_of(tokenizer, text)


def test_masks_are_read_if_asked_for():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "[", "]"]
    texts = ["a [MASK] film", "[MASK]film [mask]"]
    plain = WordPieceTokenizer(pieces)
    assert plain(texts).to_list() == [[5, 7, 1, 8, 6], [7, 1, 8, 6, 7, 1, 8]]
    reading = WordPieceTokenizer(pieces, read_masks=True)
    assert reading(texts).to_list() == [[5, 4, 6], [4, 6, 7, 1, 8]]
    again = WordPieceTokenizer.from_config(reading.get_config())
    assert again(texts).to_list() == reading(texts).to_list()
    without = [piece for piece in pieces if piece != "[MASK]"]
    assert WordPieceTokenizer(without, read_masks=True)(texts[:1]).to_list() == [
        [4, 1, 5]
    ]
