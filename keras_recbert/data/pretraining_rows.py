"""Rows of pre-training examples: windows cut, packed, shifted and masked."""

import functools

import tensorflow as tf

from keras_recbert.data.corpus_windows import CorpusWindows
from keras_recbert.text.bigram_shift import shift_bigrams
from keras_recbert.text.masking import (
    choose_units,
    find_units,
    find_word_starts,
    replace_pieces,
)
from keras_recbert.text.vocabulary import SPECIAL_TOKENS

MAX_INDEX = 2**40


class PretrainingRows:
    """Makes rows, each a pure function of seed, epoch and index.

    Graph operations on the arrays of the corpus; see `PretrainingExamples`, which says
    what a row is and checks the arguments.

    Args:
        corpus: `keras_recbert.data.corpus.Corpus`.
        objectives: `keras_recbert.objectives.Objectives`.
        sequence_length: int. Word pieces of a row, special tokens included.
        seed: int.

    Attributes:
        num_windows: int. Windows of the corpus, which the indices count.
        mask_length: int. Predictions of masked_lm or causal_lm that a row has room for.

    Raises:
        ValueError: if the corpus has too few documents, or too many windows.
    """

    def __init__(self, corpus, objectives, sequence_length, seed):
        self.objectives = objectives
        self.sequence_length = sequence_length
        self.seed = seed

        vocabulary = list(corpus.vocabulary)
        self._pad_id, self._cls_id, self._sep_id = (
            vocabulary.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")
        )
        special = 3 if objectives.next_sentence else 2
        self._windows = CorpusWindows(corpus, sequence_length - special)
        self.num_windows = self._windows.num_windows
        if objectives.next_sentence and self._windows.num_documents < 2:
            raise ValueError(
                "next_sentence takes spans from other documents, so the corpus must "
                f"have at least 2. {corpus.path} has {self._windows.num_documents}. "
                "Separate documents by blank lines when you prepare it, or leave "
                "next_sentence out."
            )
        if self.num_windows >= MAX_INDEX:
            raise ValueError(
                f"The corpus has {self.num_windows} windows; at most {MAX_INDEX - 1} "
                "can be told apart. Use a longer `sequence_length`."
            )
        with tf.device("CPU:0"):  # where tf.data runs
            self._continuation = tf.constant([p.startswith("##") for p in vocabulary])

        self.mask_length = 0
        if objectives.causal_lm:
            self.mask_length = sequence_length - 1
        elif objectives.masked_lm:
            self.mask_length = _count_masks(objectives.masked_lm, sequence_length)
            self._mask_id = vocabulary.index("[MASK]")
            pieces = [i for i, p in enumerate(vocabulary) if p not in SPECIAL_TOKENS]
            with tf.device("CPU:0"):
                self._pieces = tf.constant(pieces, tf.int32)
        self._sizes_of_draws = self._list_draws()
        # Traced once, whatever the number of rows.
        self._make = tf.function(
            self._make_rows,
            input_signature=[tf.TensorSpec([None], tf.int64)] * 2,
            autograph=False,
        )

    def make(self, epochs, indices):
        """Makes rows.

        Args:
            epochs, indices: int64 tensors, `(rows,)`.

        Returns:
            `(x, y, real)`, as `x` and `y` of `PretrainingExamples.batches`; `real` is
            float32 of the keys and shapes of `y`, 1 where there is something to predict
            and 0 elsewhere.
        """
        return self._make(epochs, indices)

    def _make_rows(self, epochs, indices):
        """Makes examples: `(x, y, real)`, the last as float32 of 0 and 1."""
        draws = self._draw(epochs, indices)
        x, spans, is_random = self._cut_and_pack(indices, draws)
        y, real = {}, {}
        token_ids = x["token_ids"]
        starts = find_word_starts(token_ids, spans, self._continuation)
        if self.objectives.next_sentence:
            y["next_sentence"] = tf.cast(is_random, tf.int32)
            real["next_sentence"] = tf.ones_like(is_random, tf.float32)
        if self.objectives.bigram_shift:
            sources, shifted = shift_bigrams(
                spans,
                starts,
                draws["swaps"],
                draws["phases"],
                self.objectives.bigram_shift.swap_rate,
            )
            token_ids = tf.gather(token_ids, sources, batch_dims=1)
            starts = tf.gather(starts, sources, batch_dims=1)
            y["bigram_shift"] = tf.cast(shifted, tf.float32)
            real["bigram_shift"] = tf.cast(spans > 0, tf.float32)
        if self.objectives.masked_lm:
            chosen = self._choose(spans, starts, draws)
            positions, is_real = _positions_of(chosen, self.mask_length)
            pieces = tf.gather(token_ids, positions, batch_dims=1)
            x["mask_positions"] = positions
            y["masked_lm"] = tf.where(is_real, pieces, 0)
            real["masked_lm"] = tf.cast(is_real, tf.float32)
            token_ids = replace_pieces(
                token_ids,
                chosen,
                draws["replacements"],
                draws["pieces"],
                self._mask_id,
                self._pieces,
                self.objectives.masked_lm.mask_fraction,
                self.objectives.masked_lm.random_fraction,
            )
        if self.objectives.causal_lm:
            all_but_last = tf.range(self.mask_length) * tf.ones_like(token_ids[:, :-1])
            x["mask_positions"] = all_but_last
            y["causal_lm"] = token_ids[:, 1:]
            real["causal_lm"] = tf.cast(x["padding_mask"][:, 1:], tf.float32)
        return {**x, "token_ids": token_ids}, y, real

    def _list_draws(self):
        """Sizes of the kinds of random numbers that an example takes."""
        length = self.sequence_length
        # The first one is drawn for a document, not for an example. Those of the spans
        # come next: other objectives leave the spans alone.
        sizes = {"document": 2, "spans": 8, "phases": 2}
        if self.objectives.bigram_shift:
            sizes["swaps"] = length
        if self.objectives.masked_lm:
            sizes.update(order=length, replacements=length, pieces=length)
            sizes["ngrams"] = length + self.objectives.masked_lm.max_ngram
        return sizes

    def _draw(self, epochs, indices):
        """Random numbers in [0, 1) of each kind, float32 `(rows, size)`."""
        sizes = self._sizes_of_draws
        seeds = tf.fill(tf.shape(indices), tf.constant(self.seed, tf.int64))
        documents = self._windows.documents(indices)
        of_example = epochs * MAX_INDEX + indices
        of_document = -1 - (epochs * MAX_INDEX + documents)
        keys = tf.stack([seeds, of_example, seeds, of_document], axis=1)
        own_size = sum(sizes.values()) - sizes["document"]

        def draw(key):
            # Philox, because the generator that TensorFlow would choose depends on the
            # device.
            uniform = functools.partial(tf.random.stateless_uniform, alg="philox")
            own, shared = uniform([own_size], key[:2]), uniform([2], key[2:])
            return tf.concat([shared, own], axis=0)

        signature = tf.TensorSpec([sizes["document"] + own_size], tf.float32)
        draws = tf.map_fn(draw, keys, fn_output_signature=signature)
        return dict(zip(sizes, tf.split(draws, list(sizes.values()), 1), strict=True))

    def _cut_and_pack(self, windows, draws):
        """Finds the spans of windows and puts special tokens around them.

        Returns:
            `(x, spans, is_random)`: the inputs; int32 `(rows, sequence_length)`, 1 on
            A, 2 on B, 0 elsewhere; bool `(rows,)`, whether B is random.
        """
        # A float32 has 23 random bits, too few for the places of a large corpus.
        draws = tf.cast(tf.concat([draws["document"], draws["spans"]], 1), tf.float64)
        draws = draws[:, ::2] + draws[:, 1::2] * 2.0**-23
        if not self.objectives.next_sentence:
            start, length = self._windows.find(windows, draws[:, 0])
            return *self._pack([start], [length]), None
        starts, lengths, is_random = self._windows.find_pairs(
            windows, draws, self.objectives.next_sentence.random_fraction
        )
        return *self._pack(starts, lengths), is_random

    def _pack(self, starts, lengths):
        """Puts spans in rows: `(x, spans)`."""
        places = tf.range(self.sequence_length, dtype=tf.int64)[None]
        spans = tf.zeros([1, 1], tf.int32)
        sources = tf.zeros([1, 1], tf.int64)
        ends = tf.zeros_like(starts[0])[:, None]  # [CLS] at 0
        separators = tf.zeros([1, 1], tf.bool)
        segments = tf.zeros([1, 1], tf.int32)
        for number, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            begins, ends = ends + 1, ends + 1 + length[:, None]
            is_inside = (places >= begins) & (places < ends)
            spans = tf.where(is_inside, number + 1, spans)
            sources = tf.where(is_inside, start[:, None] + places - begins, sources)
            separators |= places == ends
            is_segment = (places >= begins) & (places <= ends)
            segments = tf.where(is_segment, number, segments)
        pieces = self._windows.token_ids(sources)
        special = tf.where(separators, self._sep_id, self._pad_id)
        special = tf.where(places == 0, self._cls_id, special)
        x = {
            "token_ids": tf.where(spans > 0, pieces, special),
            "segment_ids": segments,
            "padding_mask": tf.cast(places <= ends, tf.int32),
        }
        return x, spans

    def _choose(self, spans, word_starts, draws):
        masked_lm = self.objectives.masked_lm
        units = find_units(
            spans, word_starts, masked_lm.unit, draws["ngrams"], masked_lm.max_ngram
        )
        number = tf.math.count_nonzero(spans, axis=1)
        number = tf.round(masked_lm.mask_rate * tf.cast(number, tf.float64))
        number = tf.clip_by_value(tf.cast(number, tf.int32), 1, self.mask_length)
        return choose_units(units, spans, number, draws["order"])


def _positions_of(chosen, mask_length):
    """Where a row is True, in ascending order, padded with 0; and what is none."""
    length = chosen.shape[1]
    # Special tokens are never chosen, so that no position is 0.
    ranks = tf.where(chosen, length - tf.range(length), 0)
    ranks = tf.math.top_k(ranks, mask_length).values
    return tf.where(ranks > 0, length - ranks, 0), ranks > 0


def _count_masks(masked_lm, length):
    return max(1, round(masked_lm.mask_rate * length))
