"""Pre-training examples, made anew each epoch from a corpus in memory."""

import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_integer
from keras_recbert.data.pretraining_rows import PretrainingRows
from keras_recbert.objectives import Objectives
from keras_recbert.text.vocabulary import check_vocabulary

MIN_SEQUENCE_LENGTH = 8
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
        self._rows = PretrainingRows(corpus, objectives, sequence_length, self.seed)
        self.num_examples = self._rows.num_windows
        self.mask_length = self._rows.mask_length

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
            row = self._rows.make(epoch, index)
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
            x, y, real = self._rows.make(epochs, indices)
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
            return self._rows.make(tf.zeros_like(indices), indices)

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
