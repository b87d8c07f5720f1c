"""Windows of documents, and pairs of spans cut from them."""

import numpy as np
import tensorflow as tf


class CorpusWindows:
    """Windows of up to `budget` word pieces of one document each.

    A document of `n` pieces has `m = ceil(n / budget)` windows. Window `j` starts at
    `floor((j + u) n / m - budget / 2)`, clipped to `[0, n - budget]`, with `u` in
    [0, 1) for all windows of a document: an epoch reads most of a document once, and
    its ends at least every other time. It is moved to the nearest start of a sentence,
    or to the last start of a full window if that is nearer, but by less than half a
    budget. So each piece of the corpus is in some window.

    Starts and lengths are int64 `(rows,)`, in word pieces of the corpus; draws are
    float64 `(rows,)`, in [0, 1).

    Args:
        corpus: `keras_recbert.data.corpus.Corpus`.
        budget: int.

    Attributes:
        num_windows: int.
        num_documents: int. Documents that have a window.
    """

    def __init__(self, corpus, budget):
        self.budget = budget
        # In pieces, not in sentences: what every window asks for.
        bounds = np.asarray(corpus.sentence_starts)[np.asarray(corpus.document_starts)]
        numbers = -(-np.diff(bounds) // budget)
        self.num_windows = int(numbers.sum())
        self.num_documents = int(np.count_nonzero(numbers))
        # On the CPU, where tf.data reads them; as eager tensors, which functions
        # capture, because a graph holds no constants beyond 2 GB.
        with tf.device("CPU:0"):
            self._token_ids = tf.constant(corpus.token_ids)
            self._sentences = tf.constant(corpus.sentence_starts, tf.int64)
            self._documents = tf.constant(bounds, tf.int64)
            self._windows = tf.constant(np.cumsum([0, *numbers]), tf.int64)

    def token_ids(self, places):
        """Word pieces at places of the corpus, int32."""
        return tf.cast(tf.gather(self._token_ids, places), tf.int32)

    def documents(self, windows):
        """Numbers of the documents that windows belong to, int64 `(rows,)`."""
        return _search(self._windows, windows) - 1

    def find(self, windows, draws):
        """Finds windows.

        Args:
            windows: int64, `(rows,)`, from 0 and below `num_windows`.
            draws: `u`, one of each document.

        Returns:
            `(starts, lengths)`.
        """
        first, number, begin, end = self._bounds(windows)
        lengths = tf.minimum(tf.constant(self.budget, tf.int64), end - begin)
        last = end - lengths
        shares = (_double(windows - first) + draws) / _double(number)
        offsets = tf.floor(shares * _double(end - begin) - self.budget / 2)
        starts = tf.clip_by_value(begin + tf.cast(offsets, tf.int64), begin, last)
        sentences = _search(self._sentences, starts)
        before = tf.gather(self._sentences, sentences - 1)
        after = tf.minimum(tf.gather(self._sentences, sentences), last)
        nearest = tf.where(starts - before <= after - starts, before, after)
        is_near = tf.abs(starts - nearest) < (self.budget + 1) // 2
        return tf.where(is_near, nearest, starts), lengths

    def find_pairs(self, windows, draws, random_fraction):
        """Finds spans A and B: of each window, or with B from another document.

        A window is cut where one of its sentences begins, each alike, or anywhere if
        none does. A random B is as long as the B it replaces, where its document is,
        and begins with a sentence where that does: otherwise lengths and beginnings
        would tell it. A window of one piece, which cannot be cut, gets a random B as
        long as there is room.

        Args:
            windows: int64, `(rows,)`.
            draws: float64, `(rows, 5)`: `u`, the cut, whether B is random, and which.
            random_fraction: float. Part of the pairs with a random B.

        Returns:
            `(starts, lengths, is_random)`: starts and lengths of A and B, each a list
            of two; bool `(rows,)`.
        """
        start, length = self.find(windows, draws[:, 0])
        begins = _search(self._sentences, start)
        ends = _search(self._sentences, start + length - 1)
        has_sentence = begins < ends
        sentence = begins + _pick(draws[:, 1], ends - begins)
        cut = tf.where(
            has_sentence,
            tf.gather(self._sentences, sentence) - start,
            tf.minimum(1 + _pick(draws[:, 1], length - 1), length),
        )
        rest = length - cut
        is_random = (draws[:, 2] < random_fraction) | (rest == 0)
        room = tf.where(rest == 0, self.budget - cut, rest)
        other, other_length = self._find_elsewhere(
            windows, draws[:, 3], draws[:, 4], room, has_sentence
        )
        starts = [start, tf.where(is_random, other, start + cut)]
        lengths = [cut, tf.where(is_random, other_length, rest)]
        return starts, lengths, is_random

    def _find_elsewhere(self, windows, draws, draws_of_starts, room, at_sentence):
        """Spans of up to `room` pieces in other documents than the windows'.

        A window is drawn, and a start from its part of its document, each alike; moved
        back to the start of its sentence where `at_sentence`.
        """
        first, number, _, _ = self._bounds(windows)
        others = _pick(draws, self.num_windows - number)
        others = tf.where(others < first, others, others + number)
        first, number, begin, end = self._bounds(others)
        lengths = tf.minimum(room, end - begin)
        shares = (_double(others - first) + draws_of_starts) / _double(number)
        starts = begin + _pick(shares, end - begin - lengths + 1)
        before = tf.gather(self._sentences, _search(self._sentences, starts) - 1)
        goes_back = at_sentence & (starts - before < self.budget)
        return tf.where(goes_back, before, starts), lengths

    def _bounds(self, windows):
        """Of the documents of windows: first window, windows, first piece, end."""
        documents = self.documents(windows)
        first, begin = (
            tf.gather(bounds, documents) for bounds in (self._windows, self._documents)
        )
        after, end = (
            tf.gather(bounds, documents + 1)
            for bounds in (self._windows, self._documents)
        )
        return first, after - first, begin, end


def _search(sorted_numbers, values):
    """How many of the sorted numbers are not above each value, int64."""
    return tf.searchsorted(sorted_numbers, values, side="right", out_type=tf.int64)


def _pick(shares, numbers):
    """Integers from 0 and below `numbers`, from shares in [0, 1)."""
    picked = tf.cast(shares * _double(numbers), tf.int64)
    # The product may round up; and where there is nothing to pick, 0 is not used.
    return tf.maximum(tf.minimum(picked, numbers - 1), 0)


def _double(numbers):
    return tf.cast(numbers, tf.float64)
