"""Which words a vocabulary has: those of texts, of a file of vectors, or of both."""

import dataclasses
import itertools

import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.text.split_words import split_words
from keras_recbert.text.vocabulary import SPECIAL_TOKENS, count_words
from keras_recbert.text.word_vectors import (
    WordVectors,
    read_word_vectors,
    words_of_vectors,
)
from keras_recbert.text.wordpiece_tokenizer import MAX_CHARACTERS_PER_WORD

MAX_WORDS, MIN_FREQUENCY = 30_000, 2
_BATCH = 4096


def learn_words(
    texts=None,
    vectors=None,
    max_words=MAX_WORDS,
    min_frequency=MIN_FREQUENCY,
    lowercase=True,
    strip_accents=None,
    report=print,
):
    """The vocabulary of a model of words, and the vectors of its words.

    Of texts: their most frequent words, of those that have a vector or occur
    `min_frequency` times. Without texts: the first words of the file of vectors, of
    those that the tokenizer can give (with `lowercase` no "Film", never "U.S.").

    Args:
        texts: iterable of str; None for the words of `vectors`.
        vectors: path of a file that `read_word_vectors` takes, or `WordVectors`.
        max_words: int. The most words, special tokens not counted.
        min_frequency: int. How often a word without a vector must occur in `texts`.
        lowercase, strip_accents: as for `WordTokenizer`.
        report: function of a str. Takes notes on the file, and how many words of the
            vocabulary have a vector.

    Returns:
        Tuple of the vocabulary, list of str that begins with the special tokens, and
        `WordVectors` of those of its words that have one; None without `vectors`.

    Raises:
        FileNotFoundError, ValueError: as `read_word_vectors`; if there is no word.
    """
    check_positive(max_words=max_words, min_frequency=min_frequency)
    if texts is None and vectors is None:
        raise ValueError(
            "The words of a vocabulary come from texts, or from a file of vectors. "
            "Received: neither `texts` nor `vectors`."
        )
    if texts is None:
        words = _words_of_file(vectors, max_words, lowercase, strip_accents)
        found = read_vectors_of(words, vectors, report)
        return [*SPECIAL_TOKENS, *words], found
    counts = count_words(texts, lowercase, strip_accents)
    found = None if vectors is None else read_vectors_of(counts, vectors, report)
    known = set() if found is None else set(found.words)
    words = [w for w, n in counts.items() if w in known or n >= min_frequency]
    words = sorted(words, key=lambda word: (-counts[word], word))[:max_words]
    words = [word for word in words if len(word) <= MAX_CHARACTERS_PER_WORD]
    if not words:
        raise ValueError(
            f"No word of `texts` occurs {min_frequency} times or has a vector. Pass "
            f"more text, or lower `min_frequency`. Received: {len(counts):,} words."
        )
    if found is not None:
        found = read_vectors_of(words, found, report)
        report(
            f"{len(found.words):,} of {len(words):,} words have a vector in "
            f"{found.source}."
        )
    return [*SPECIAL_TOKENS, *words], found


def read_vectors_of(words, vectors, report=print):
    """Vectors of words, of a file or of others.

    Args:
        words: iterable of str.
        vectors: path, or `WordVectors`.
        report: as for `read_word_vectors`.

    Returns:
        `WordVectors`.

    Raises:
        FileNotFoundError, ValueError: as `read_word_vectors`.
    """
    if not isinstance(vectors, WordVectors):
        return read_word_vectors(vectors, words, report=report)
    place = {word: index for index, word in enumerate(vectors.words)}
    kept = [word for word in words if word in place]
    if not kept:
        raise ValueError(f"{vectors.source} has a vector for none of the words.")
    rows = vectors.vectors[[place[word] for word in kept]]
    return dataclasses.replace(vectors, words=tuple(kept), vectors=rows)


def _words_of_file(vectors, max_words, lowercase, strip_accents):
    """The first words that the tokenizer can give, each once."""
    is_read = isinstance(vectors, WordVectors)
    words = iter(vectors.words if is_read else words_of_vectors(vectors))
    found = {}
    while batch := list(itertools.islice(words, _BATCH)):
        split = split_words(tf.constant(batch), lowercase, strip_accents).to_list()
        for word, parts in zip(batch, split, strict=True):
            if len(word) <= MAX_CHARACTERS_PER_WORD and parts == [word.encode()]:
                found[word] = None
        if len(found) >= max_words:
            break
    if not found:
        raise ValueError(
            f"{vectors} has no word that the tokenizer gives with lowercase="
            f"{lowercase}, strip_accents={strip_accents}."
        )
    return list(found)[:max_words]
