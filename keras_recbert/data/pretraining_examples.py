"""Pre-training examples, made anew each epoch from a corpus in memory."""

import functools

import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_integer
from keras_recbert.data.corpus_windows import CorpusWindows
from keras_recbert.objectives import Objectives
from keras_recbert.text.bigram_shift import shift_bigrams
from keras_recbert.text.masking import (
    choose_units,
    find_units,
    find_word_starts,
    replace_pieces,
)
from keras_recbert.text.vocabulary import SPECIAL_TOKENS, check_vocabulary

MIN_SEQUENCE_LENGTH = 8
_MAX_INDEX = 2**40
_SHUFFLE_KEY = np.int64(498247692)


class PretrainingExamples:
    """Windows of a corpus as examples of the objectives.

    An example is a pure function of seed, epoch and index, made by graph operations on
    the arrays of the corpus: a run can resume at any step, and any split of a batch
    over devices sees the same examples.

    A row is `[CLS] window [SEP]`, or with next_sentence `[CLS] A [SEP] B [SEP]` (Devlin
    et al. 2018, section 3.4), B from the same window or from another document;
    `CorpusWindows` says how they are drawn. Then words trade places (bigram_shift), and
    of what results pieces are masked (masked_lm).

    Args:
        corpus: `keras_recbert.data.corpus.Corpus`.
        objectives: `Objectives`.
        sequence_length: int. Word pieces of a row, special tokens included.
        seed: int.

    Attributes:
        num_examples: int. Windows of the corpus, which are the examples of an epoch.
        mask_length: int. Predictions of masked_lm or causal_lm that a row has room for.

    Raises:
        ValueError: if the corpus cannot serve the objectives, or an argument is not
            valid.

    Example:

    ```python
    objectives = read_objectives({"masked_lm": {"unit": "whole_word"}})
    examples = PretrainingExamples(load_corpus("corpus"), objectives, 128)
    model.fit(examples.batches(64), steps_per_epoch=1000)
    ```
    """

    def __init__(self, corpus, objectives, sequence_length, seed=0):
        _check(corpus, objectives, sequence_length, seed)
        self.objectives = objectives
        self.sequence_length = sequence_length
        self.seed = int(seed)

        vocabulary = list(corpus.vocabulary)
        self._pad_id, self._cls_id, self._sep_id = (
            vocabulary.index(token) for token in ("[PAD]", "[CLS]", "[SEP]")
        )
        special = 3 if objectives.next_sentence else 2
        self._windows = CorpusWindows(corpus, sequence_length - special)
        self.num_examples = self._windows.num_windows
        if objectives.next_sentence and self._windows.num_documents < 2:
            raise ValueError(
                "next_sentence takes spans from other documents, so the corpus must "
                f"have at least 2. {corpus.path} has {self._windows.num_documents}. "
                "Separate documents by blank lines when you prepare it, or leave "
                "next_sentence out."
            )
        if self.num_examples >= _MAX_INDEX:
            raise ValueError(
                f"The corpus has {self.num_examples} windows; at most {_MAX_INDEX - 1} "
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

    def example(self, epoch, index):
        """Makes one example.

        Args:
            epoch: int or integer tensor, from 0.
            index: int or integer tensor, from 0 and below `num_examples`; in the order
                of the corpus.

        Returns:
            `(x, y, sample_weight)` as in `batches`, without the axis of the batch;
            weights are 1 where there is something to predict, and 0 elsewhere.
        """
        epoch, index = (tf.reshape(tf.cast(n, tf.int64), [1]) for n in (epoch, index))
        with tf.device("CPU:0"):
            row = self._make(epoch, index)
        return tf.nest.map_structure(lambda values: values[0], row)

    def batches(self, batch_size, first_step=0, num_steps=None, accumulation_steps=1):
        """Training batches, from the endless stream of shuffled epochs.

        Step `s` holds the examples from `s * batch_size` on. A batch may span epochs.

        `x`: `token_ids`, `segment_ids`, `padding_mask`, int32
        `(batch_size, sequence_length)`; with masked_lm or causal_lm `mask_positions`,
        int32 `(batch_size, mask_length)`, in ascending order, padded with 0. For
        causal_lm these are all positions but the last.

        `y`: `masked_lm` or `causal_lm`, ids of the masked or the next pieces, int32
        `(batch_size, mask_length)`; `next_sentence`, int32 `(batch_size,)`, 1 where B
        is random; `bigram_shift`, float32 `(batch_size, sequence_length)`, 1 where a
        piece is out of place.

        `sample_weight`: float32, keys and shapes of `y`. 0 where there is nothing to
        predict, elsewhere a value such that the sum of weighted losses, divided by
        their number as Keras does, is the mean over all predictions of the step.

        Args:
            batch_size: int. Examples of a step.
            first_step: int. Step to begin with, from 0.
            num_steps: int or None. Steps to make; None: without end.
            accumulation_steps: int. Elements that make up a step, each of
                `batch_size // accumulation_steps` rows. The mean of their losses is
                the loss of the step.

        Returns:
            `tf.data.Dataset` of `(x, y, sample_weight)`.

        Raises:
            ValueError: if an argument is not valid.
        """
        check_integer(1, batch_size=batch_size)
        check_integer(0, first_step=first_step)
        check_integer(1, accumulation_steps=accumulation_steps)
        if batch_size % accumulation_steps:
            raise ValueError(
                "`batch_size` must be a multiple of `accumulation_steps`. Received: "
                f"batch_size={batch_size}, accumulation_steps={accumulation_steps}."
            )
        if num_steps is not None:
            check_integer(0, num_steps=num_steps)

        def make(step):
            places = step * batch_size + tf.range(batch_size, dtype=tf.int64)
            epochs = places // self.num_examples
            indices = self._shuffle(epochs, places % self.num_examples)
            x, y, real = self._make(epochs, indices)
            batch = (x, y, _scale(real, _count(real), batch_size))
            shape = [batch_size]
            if accumulation_steps > 1:
                shape = [accumulation_steps, batch_size // accumulation_steps]
            return tf.nest.map_structure(
                lambda values: tf.reshape(values, [*shape, *values.shape[1:]]), batch
            )

        steps = tf.data.Dataset.counter(first_step)
        if num_steps is not None:
            steps = steps.take(num_steps)
        batches = steps.map(make, tf.data.AUTOTUNE, deterministic=True)
        if accumulation_steps > 1:
            size = tf.data.INFINITE_CARDINALITY
            if num_steps is not None:
                size = num_steps * accumulation_steps
            batches = batches.unbatch()
            batches = batches.apply(tf.data.experimental.assert_cardinality(size))
        return batches.prefetch(tf.data.AUTOTUNE)

    def fixed_batches(self, batch_size, num_examples):
        """Validation batches: the same examples with the same masks, each time.

        They are those of epoch 0, spread evenly over the corpus, in its order.

        Weights are as in `batches`, but scaled over all examples together: the mean
        over batches, each with its number of rows, as `model.evaluate` takes it, is
        the mean over all predictions, whatever the batch size. The last batch may be
        smaller.

        Args:
            batch_size: int. Rows of a batch.
            num_examples: int. Examples; all windows of the corpus if it has not more.

        Returns:
            `tf.data.Dataset` of `(x, y, sample_weight)`, which can be read repeatedly.

        Raises:
            ValueError: if an argument is not valid.
        """
        check_integer(1, batch_size=batch_size)
        check_integer(1, num_examples=num_examples)
        number = min(num_examples, self.num_examples)

        def make(first):
            places = tf.range(first, tf.minimum(first + batch_size, number))
            indices = places * self.num_examples // number
            return self._make(tf.zeros_like(indices), indices)

        firsts = tf.data.Dataset.range(0, number, batch_size)
        batches = firsts.map(make, tf.data.AUTOTUNE, deterministic=True)
        zeros = dict.fromkeys(self.objectives.names(), tf.constant(0.0, tf.float64))
        counts = batches.reduce(
            zeros,
            lambda counts, batch: tf.nest.map_structure(
                tf.add, counts, _count(batch[2])
            ),
        )
        counts = {name: float(count) for name, count in counts.items()}
        return batches.map(
            lambda x, y, real: (x, y, _scale(real, counts, number))
        ).prefetch(tf.data.AUTOTUNE)

    def _shuffle(self, epochs, places):
        """Indices of the examples at places of epochs, each in an order of its own."""
        seeds = [tf.fill(tf.shape(epochs), tf.constant(self.seed, tf.int64)), epochs]
        # The raw op, for two reasons: with a seed for each index, index_shuffle of
        # TensorFlow 2.20 pads the wrong axis of them and fails; and with its 4 rounds,
        # orders of one epoch and the next are correlated. 8 rounds leave no trace of
        # that. The third part of the key is the constant that index_shuffle takes.
        return tf.raw_ops.RandomIndexShuffle(
            index=places,
            seed=tf.stack([tf.fill(tf.shape(epochs), _SHUFFLE_KEY), *seeds], axis=1),
            max_index=tf.constant(self.num_examples - 1, tf.int64),
            rounds=8,
        )

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
        of_example = epochs * _MAX_INDEX + indices
        of_document = -1 - (epochs * _MAX_INDEX + documents)
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


def _count(real):
    return {
        name: tf.reduce_sum(tf.cast(values, tf.float64))
        for name, values in real.items()
    }


def _scale(real, counts, rows):
    """Weights: Keras's mean over all elements is then the mean over real ones."""
    weights = {}
    for name, values in real.items():
        elements = rows * int(np.prod(values.shape[1:]))
        scale = elements / tf.maximum(tf.cast(counts[name], tf.float64), 1)
        weights[name] = values * tf.cast(scale, tf.float32)
    return weights


def _count_masks(masked_lm, length):
    return max(1, round(masked_lm.mask_rate * length))


def _check(corpus, objectives, sequence_length, seed):
    if not isinstance(objectives, Objectives):
        raise TypeError(
            "`objectives` must be Objectives. Received: "
            f"{objectives!r}. Try read_objectives({{'masked_lm': {{}}}})."
        )
    check_integer(MIN_SEQUENCE_LENGTH, sequence_length=sequence_length)
    check_integer(0, seed=seed)
    if not len(corpus.token_ids):
        raise ValueError(
            f"The corpus {corpus.path} is empty: it holds no word pieces. Prepare it "
            "from files with text."
        )
    vocabulary = check_vocabulary(
        corpus.vocabulary, source=f"The vocabulary of {corpus.path}"
    )
    if objectives.masked_lm and "[MASK]" not in vocabulary:
        raise ValueError(
            f"masked_lm needs [MASK], which the vocabulary of {corpus.path} lacks. "
            "Add it as a piece of its own and prepare the corpus with that vocabulary, "
            "or train on causal_lm, which needs no [MASK]."
        )
