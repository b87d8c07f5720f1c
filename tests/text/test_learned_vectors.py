"""Word vectors learned from texts."""

import numpy as np
import pytest
from harness import assert_close

from keras_recbert.text import WordVectors, learn_vectors, learn_words
from keras_recbert.text.vocabulary import SPECIAL_TOKENS

TEXTS = ["the good film", "the fine film", "a bore", "The good, fine film", "bad", ""]


def learned(texts=TEXTS, **options):
    words, _ = learn_words(texts, min_frequency=1)
    options = {"vector_dim": 4, "report": lambda note: None} | options
    return words, learn_vectors(iter(texts), words, **options)


def information(texts, words, window):
    """Positive pointwise mutual information by loops (Levy et al. 2015, section 2)."""
    size = len(words)
    counts = np.zeros((size, size))
    for text in texts:
        row = [words.index(word) for word in text.lower().replace(",", " ,").split()]
        for place, word in enumerate(row):
            for other in range(len(row)):
                distance = abs(other - place)
                if 0 < distance <= window:
                    counts[word, row[other]] += (window + 1 - distance) / window
    total, smoothed = counts.sum(), counts.sum(0) ** 0.75
    found = np.zeros((size, size))
    for one in range(size):
        for other in range(size):
            if counts[one, other]:
                joint = counts[one, other] / total
                chance = counts[one].sum() / total * smoothed[other] / smoothed.sum()
                found[one, other] = max(0.0, np.log(joint / chance))
    return found


@pytest.mark.parametrize("window", [1, 2, 5])
def test_vectors_are_a_factor_of_the_information(window):
    words, found = learned(vector_dim=20, window=window)
    expected = information(TEXTS, words, window)
    beside = [index for index in range(len(words)) if expected[index].any()]
    assert found.words == tuple(words[index] for index in beside)
    assert "bad" not in found.words  # it stands alone
    left, values, _ = np.linalg.svd(expected)
    factor = left[beside] * np.sqrt(values)
    scale = np.mean(found.vectors**2) / (np.sum(factor**2) / found.vectors.size)
    assert_close(found.vectors @ found.vectors.T, scale * factor @ factor.T, 1e-5)
    assert_close(np.mean(found.vectors**2), 0.25**2 / 3, 1e-5)  # as if drawn


def test_words_of_like_neighbours_are_alike():
    rng = np.random.default_rng(0)
    films, good, bad = (["film", "movie"], ["fine", "good"], ["bad", "poor"])
    texts = [f"{rng.choice(good)} {rng.choice(films)} won" for _ in range(200)] + [
        f"{rng.choice(bad)} {rng.choice(films)} lost" for _ in range(200)
    ]
    _, found = learned(texts)
    unit = found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)
    place = found.words.index

    def cosine(one, other):
        return unit[place(one)] @ unit[place(other)]

    assert cosine("film", "movie") > 0.9
    assert cosine("good", "fine") > 0.9 > cosine("good", "bad")


def test_unknown_words_and_ends_of_texts_part():
    words = [*SPECIAL_TOKENS, "a", "b", "c"]
    texts = ["a b", "zebra c", "c", "a zebra"]
    found = learn_vectors(texts, words, 2, report=lambda note: None)
    assert found.words == ("a", "b")


def test_the_seed_says_all_and_a_checksum_is_of_words():
    assert_close(learned(seed=3)[1].vectors, learned(seed=3)[1].vectors, 0)
    found = learned(vector_dim=2)[1]
    assert found.channels == "non_static" and WordVectors.channels == "multichannel"
    assert found.checksum() == learned(vector_dim=3)[1].checksum()
    assert found.checksum() != learned(TEXTS[:2])[1].checksum()


def test_what_cannot_be_learned_is_told():
    notes = []
    assert learned(["bad", "good"], report=notes.append)[1] is None
    assert notes == [
        "No word of the texts stands beside another: their vectors are random."
    ]
    with pytest.raises(ValueError, match="`vector_dim` must be"):
        learned(vector_dim=0)
    with pytest.raises(TypeError, match="Received one string"):
        learn_vectors("a text", [*SPECIAL_TOKENS, "a", "text"])
    with pytest.raises(ValueError, match="`seed` must be"):
        learned(seed=-1)
