"""Windows of a text that does not fit into a row."""

import tensorflow as tf


class Windows:
    """The windows of a batch of texts (Devlin et al. 2018, section 4.2, and its code).

    They begin every `stride` word pieces; the last one ends with its text.

    Args:
        lengths: int32 `(batch_size,)`. Word pieces of each text.
        room: int32 `(batch_size,)`. The most word pieces of a window of each.
        stride: int. Fewer where a window is shorter.

    Attributes:
        example: int32 `(num_rows,)`. Position of the text of each window.
        number: int32 `(num_rows,)`. Windows of the text before this one.
        begin: int32 `(num_rows,)`. First word piece of each.
        length: int32 `(num_rows,)`. Word pieces of each.
    """

    def __init__(self, lengths, room, stride):
        step = tf.minimum(stride, room)
        counts = 1 + -(-tf.maximum(lengths - room, 0) // step)
        numbers = tf.ragged.range(counts)
        self.example = tf.cast(numbers.value_rowids(), tf.int32)
        self.number = numbers.flat_values
        self._count = tf.gather(counts, self.example)
        self._lengths = tf.gather(lengths, self.example)
        self._room = tf.gather(room, self.example)
        self._step = tf.gather(step, self.example)
        self.begin = self.number * self._step
        self.length = tf.minimum(self._lengths - self.begin, self._room)

    def most_context(self, window):
        """Whether a token has at least as much context in its window as in any other.

        The first of equal ones has it. From window to window the context on the poorer
        side rises and then falls, so that comparing with the neighbours is enough.

        Args:
            window: `tf.RaggedTensor` `(num_rows, None)`, whose values are not read.

        Returns:
            int32, an item for each value of `window`.
        """
        row = window.value_rowids()
        first = tf.gather(tf.cast(window.row_starts(), tf.int32), row)
        place = tf.range(tf.size(row)) - first
        number = tf.gather(self.number, row)
        token = place + tf.gather(self.begin, row)

        def score(other):
            """In hundredths: 1 for each word piece of the window, as BERT's code."""
            begin = other * tf.gather(self._step, row)
            lengths = tf.gather(self._lengths, row)
            length = tf.minimum(lengths - begin, tf.gather(self._room, row))
            sides = tf.minimum(token - begin, begin + length - 1 - token)
            exists = (other >= 0) & (other < tf.gather(self._count, row))
            return tf.where(exists & (sides >= 0), 100 * sides + length, -1)

        own = score(number)
        most = (own > score(number - 1)) & (own >= score(number + 1))
        return tf.cast(most, tf.int32)
