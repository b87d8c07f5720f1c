"""Whole words to ids: every word of the reference is looked up in a dict."""

import pytest
import tensorflow as tf
from toy_word_pieces import AWKWARD, INVALID_UTF8, words_of

from keras_recbert.text import TextPreprocessor, WordTokenizer
from keras_recbert.text.vocabulary import SPECIAL_TOKENS
from keras_recbert.text.word_tokenizer import get_tokenizer

WORDS = [*SPECIAL_TOKENS, "wind", "windmill", "mill", "it", "It", "'", "s", "你", "éte"]
WORDS += ["ete", "abcd", "#", "[", "sep", "a\u2e43b", "шалом", "שלום"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_ids_are_those_of_a_dict(lowercase):
    tokenizer = WordTokenizer(WORDS, lowercase)
    ids = {word: index for index, word in enumerate(WORDS)}
    texts = [text for text, _, _ in AWKWARD] + [text for text, _ in INVALID_UTF8]
    texts += ["windmills WINDMILL mill windmill ##mill wind mill", "a" * 101, "x " * 9]
    expected = [
        [ids.get(word, 1) for word in words]
        for words in words_of(texts, lowercase=lowercase)
    ]
    assert tokenizer(texts).to_list() == expected
    found, begins, ends = tokenizer.tokenize_with_offsets(texts)
    assert found.to_list() == expected
    text = "the Wind's windmills"
    _, begins, ends = tokenizer.tokenize_with_offsets([text])
    spans = zip(begins.to_list()[0], ends.to_list()[0], strict=True)
    assert [text[a:b] for a, b in spans] == ["the", "Wind", "'", "s", "windmills"]


def test_it_is_a_tokenizer_for_every_packer():
    packer = TextPreprocessor(WordTokenizer(WORDS), max_sequence_length=6)
    packed = packer(["windmill unheard it wind mill"])
    assert packed["token_ids"].numpy().tolist() == [[2, 6, 1, 8, 5, 3]]
    again = TextPreprocessor.from_config(packer.get_config())
    assert type(again.tokenizer) is WordTokenizer
    assert again.tokenizer.vocabulary == tuple(WORDS)
    # Equal packers share a graph; that of other tokenizers is another one.
    pieces = get_tokenizer("WordPieceTokenizer")(WORDS)
    pieces = TextPreprocessor(pieces, max_sequence_length=6)
    buckets = WordTokenizer(WORDS, num_oov_buckets=1)
    buckets = TextPreprocessor(buckets, max_sequence_length=6)
    for one in (again, pieces, buckets):
        one(["wind"])
        assert (one._equal_to == packer._equal_to) is (one is again)


def test_unknown_words_have_buckets_by_their_hash():
    tokenizer = WordTokenizer(WORDS, num_oov_buckets=7)
    assert tokenizer.vocabulary_size == len(WORDS) + 7
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(WORDS), tf.range(len(WORDS), dtype=tf.int64)
        ),
        num_oov_buckets=7,
    )
    texts = [text for text, _, _ in AWKWARD] + ["windmills wind", "a" * 101, ""]
    expected = [
        table.lookup(tf.constant(words, tf.string)).numpy().tolist()
        for words in words_of(texts, lowercase=True)
    ]
    ids = tokenizer(texts).to_list()
    assert ids == expected
    assert tokenizer.tokenize_with_offsets(texts)[0].to_list() == expected
    assert len({i for row in ids for i in row if i >= len(WORDS)}) == 7
    again = WordTokenizer.from_config(tokenizer.get_config())
    assert again(texts).to_list() == expected
    last = tokenizer.vocabulary_size - 1
    assert tokenizer.id_to_token(last) == "[UNK]" and tokenizer.id_to_token(5) == "wind"
    assert tokenizer.detokenize([[5, last]]).numpy() == [b"wind [UNK]"]
    for ids in ([[last + 1]], [[-1]]):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"from 0 to {last}"):
            tokenizer.detokenize(ids)
    with pytest.raises(IndexError, match=f"from 0 to {last}"):
        tokenizer.id_to_token(last + 1)
    for wrong in (-1, 2.5, True):
        with pytest.raises(ValueError, match="`num_oov_buckets` must be a whole numb"):
            WordTokenizer(WORDS, num_oov_buckets=wrong)


def test_what_is_no_vocabulary_of_words_is_told():
    with pytest.raises(ValueError, match="has no word pieces. Received: 1 that"):
        WordTokenizer([*WORDS, "##s"])
    with pytest.raises(ValueError, match="No tokenizer is called 'Mine'. Valid: Word"):
        get_tokenizer("Mine")


def test_a_saved_graph_holds_the_words(tmp_path):
    tokenizer = WordTokenizer(WORDS, num_oov_buckets=2)
    module, spec = tf.Module(), tf.TensorSpec([None], tf.string)

    @tf.function(input_signature=[spec])
    def ids(texts):
        return tokenizer(texts).to_tensor(0)

    module.ids = ids
    tf.saved_model.save(module, tmp_path / "saved")
    loaded = tf.saved_model.load(tmp_path / "saved")
    found = loaded.ids(tf.constant(["It's a windmill"]))
    unknown = tokenizer(["a"]).numpy().item()
    assert unknown >= len(WORDS)
    assert found.numpy().tolist() == [[8, 10, 11, unknown, 6]]
