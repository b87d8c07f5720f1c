"""Which words a vocabulary has."""

import numpy as np
import pytest
from word_vector_files import VECTORS, text, write

from keras_recbert.text import WordTokenizer, WordVectors, learn_words
from keras_recbert.text.vocabulary import SPECIAL_TOKENS

TEXTS = ["A film, a FILM!", "the film is rare", "the Café"]


@pytest.fixture
def vectors(tmp_path):
    words = ["the", "Film", "cafe", "U.S.", ". .", "zebra"]
    return write(tmp_path / "glove.txt", text(words))


def test_words_of_texts_are_the_most_frequent():
    words, vectors = learn_words(TEXTS)
    assert vectors is None
    # By count, then by the alphabet; two and more.
    assert words == [*SPECIAL_TOKENS, "film", "a", "the"]
    words, _ = learn_words(iter(TEXTS), min_frequency=1, max_words=5)
    assert words[5:] == ["film", "a", "the", "!", ","]
    words, _ = learn_words(TEXTS, lowercase=False, min_frequency=1)
    assert {"FILM", "Café", "film"} < set(words)


def test_a_word_with_a_vector_needs_to_occur_once(vectors):
    notes = []
    words, found = learn_words(TEXTS, vectors, report=notes.append)
    assert words == [*SPECIAL_TOKENS, "film", "a", "the", "cafe"]
    assert set(found.words) == {"the", "cafe"}
    for word, row in zip(found.words, found.vectors, strict=True):
        expected = VECTORS[["the", "Film", "cafe"].index(word)]
        np.testing.assert_array_equal(row, expected)
    assert notes == [f"2 of 4 words have a vector in {vectors}."]
    words, found = learn_words(TEXTS, vectors, lowercase=False)
    assert found.words == ("the",)


def test_words_of_a_file_are_those_that_the_tokenizer_gives(vectors):
    words, found = learn_words(vectors=vectors)
    assert words == [*SPECIAL_TOKENS, "the", "cafe", "zebra"]
    assert found.words == ("the", "cafe", "zebra")
    np.testing.assert_array_equal(found.vectors, VECTORS[[0, 2, 5]])
    ids = WordTokenizer(words)(["The zebra of the U.S."])
    assert ids.to_list() == [[5, 7, 1, 5, 1, 1, 1, 1]]
    words, _ = learn_words(vectors=vectors, lowercase=False, max_words=2)
    assert words[5:] == ["the", "Film"]
    held = WordVectors(("a", "b"), VECTORS[:2])
    assert learn_words(vectors=held)[0][5:] == ["a", "b"]


def test_what_has_no_words_is_told(vectors):
    with pytest.raises(ValueError, match="neither `texts` nor `vectors`"):
        learn_words()
    with pytest.raises(ValueError, match="No word of `texts` occurs 3 times"):
        learn_words(["a b"], min_frequency=3)
    with pytest.raises(ValueError, match="a vector for none of the 1 words"):
        learn_words(["unheard"], vectors)
    held = WordVectors(("U.S.",), VECTORS[:1])
    with pytest.raises(ValueError, match="no word that the tokenizer gives"):
        learn_words(vectors=held)
    with pytest.raises(ValueError, match="memory has a vector for none"):
        learn_words(["a a"], held)
    with pytest.raises(ValueError, match="`max_words` must be"):
        learn_words(TEXTS, max_words=0)
