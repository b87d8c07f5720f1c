"""Word vectors of texts, by the words that stand beside each other."""

import numpy as np

from keras_recbert.core.checks import check_positive, check_seed
from keras_recbert.core.extras import check_installed
from keras_recbert.text.vocabulary import batches_of_texts
from keras_recbert.text.word_tokenizer import WordTokenizer
from keras_recbert.text.word_vectors import WordVectors

# Levy et al. 2015, section 3: contexts by their counts to this power.
SMOOTHING = 0.75
# Root of the mean square of vectors that are drawn from [-0.25, 0.25] (Kim 2014).
SCALE = 0.25 / np.sqrt(3.0)
# Texts and characters of a batch: its pairs take some 100 MB, however long a text is.
_BATCH = 16_384, 1 << 22


class LearnedVectors(WordVectors):
    """`WordVectors` that `learn_vectors` made of texts: where they begin, no more."""

    channels = "non_static"

    def checksum(self):
        """That of the words: the last bits of a number depend on the processor."""
        return WordVectors(self.words, np.zeros((0, 0))).checksum()


def learn_vectors(
    texts,
    vocabulary,
    vector_dim=300,
    window=5,
    lowercase=True,
    strip_accents=None,
    seed=0,
    report=print,
):
    """Vectors of words from texts without labels.

    The first factor of the positive pointwise mutual information of words and those
    beside them, times the root of the singular values (Levy et al. 2015, "Improving
    distributional similarity with lessons learned from word embeddings", sections 2 and
    3; contexts smoothed, near ones count more, as in word2vec). Of texts as few as a
    training set it needs seconds.

    Args:
        texts: iterable of str, or a `tf.data.Dataset` of strings.
        vocabulary: list of str, as of `learn_words`.
        vector_dim: int. Width of a vector. Of fewer words the last numbers are 0.
        window: int. Words on each side that stand beside a word.
        lowercase, strip_accents: as for `WordTokenizer`.
        seed: int.
        report: function of a str. Takes a note on what was learned.

    Returns:
        `LearnedVectors` of the words that stand beside another; None if there are none.

    Raises:
        ValueError: if a size is not positive; as `WordTokenizer`.
        TypeError: if `texts` is one string.
        ImportError: without SciPy and scikit-learn.
    """
    check_installed("`learn_vectors`", "train", "sklearn", "scipy")
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    check_positive(vector_dim=vector_dim, window=window)
    check_seed(seed)
    tokenizer = WordTokenizer(vocabulary, lowercase, strip_accents)
    size, num_texts = len(vocabulary), 0
    counts = sparse.csr_array((size, size))
    for batch in batches_of_texts(texts, *_BATCH):
        num_texts += len(batch)
        ids = tokenizer(batch)
        rows = ids.value_rowids().numpy(), ids.flat_values.numpy()
        counts += _count_pairs(*rows, tokenizer.unk_id, window, size)
    information = _positive_information(counts + counts.T)
    has_vector = np.flatnonzero(np.diff(information.indptr))
    if not len(has_vector):
        report("No word of the texts stands beside another: their vectors are random.")
        return None
    width = min(vector_dim, size)
    factor, values, _ = randomized_svd(information, width, n_iter=4, random_state=seed)
    vectors = np.zeros((len(has_vector), vector_dim), "float32")
    vectors[:, :width] = factor[has_vector] * np.sqrt(values)
    vectors *= SCALE / np.sqrt(np.mean(vectors**2))
    report(f"Vectors of {len(has_vector):,} words learned from {num_texts:,} texts.")
    words = tuple(vocabulary[index] for index in has_vector)
    return LearnedVectors(words, vectors, "the texts")


def _count_pairs(rows, ids, unknown, window, size):
    """How often a word stands before another, `(size, size)`: near ones count more.

    Args:
        rows, ids: int arrays `(num_words,)`, the text and the id of each word.
        unknown: int. The id of words that are not counted.
        window: int.
        size: int. Number of ids.
    """
    from scipy import sparse

    found = []
    for distance in range(1, window + 1):
        left, right = ids[:-distance], ids[distance:]
        beside = rows[:-distance] == rows[distance:]
        beside &= (left != unknown) & (right != unknown)
        weights = np.full(beside.sum(), (window + 1 - distance) / window)
        found.append((left[beside], right[beside], weights))
    left, right, weights = map(np.concatenate, zip(*found, strict=True))
    return sparse.coo_array((weights, (left, right)), shape=(size, size)).tocsr()


def _positive_information(counts):
    """Positive pointwise mutual information of pairs, a sparse array as `counts`."""
    from scipy import sparse

    counts = counts.tocoo()
    of_words = np.bincount(counts.row, counts.data, counts.shape[0])
    smoothed = of_words**SMOOTHING
    expected = of_words[counts.row] * smoothed[counts.col] / smoothed.sum()
    information = np.log(counts.data / expected)
    is_positive = information > 0
    places = counts.row[is_positive], counts.col[is_positive]
    return sparse.csr_array((information[is_positive], places), counts.shape)
