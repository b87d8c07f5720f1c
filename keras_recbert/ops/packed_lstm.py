"""Both directions of an LSTM over the tokens of a batch, without its padding."""

import tensorflow as tf

from keras_recbert.ops.implementation import at_least_float32

STEPS_A_TURN = 4  # of the loop; what TensorFlow spends on a turn is shared among them


def packed_lstm(inputs, kernel, recurrent_kernel, bias, padding_mask):
    """Gives what `bidirectional_lstm` gives; the padding costs nothing.

    The rows are sorted, the one of most tokens first. The products over all steps read
    the tokens alone, and step `s` has the rows of more than `s` tokens. The backward
    direction starts at the last token of each row, so both have the same rows at a
    step, and share one loop; their products are apart, a core each. One product for
    both is a little quicker on one core, and takes twice as long on two.

    Args:
        inputs, kernel, recurrent_kernel, bias: as for `bidirectional_lstm`.
        padding_mask: bool tensor `(batch_size, sequence_length)`.

    Returns:
        As `bidirectional_lstm`.
    """
    dtype, units = at_least_float32(inputs.dtype), recurrent_kernel.shape[1]
    shape = tf.shape(padding_mask)
    places, forwards, backwards, rows_of_step = _pack(padding_mask)

    tokens = tf.gather_nd(inputs, places)
    gates = tf.nn.bias_add(tf.matmul(tokens, kernel), tf.reshape(bias, [-1]))
    gates = tf.reshape(gates, [-1, 4 * units])  # token by token, both directions
    order = tf.stack([2 * forwards, 2 * backwards + 1])
    directions = list(
        zip(
            tf.unstack(tf.cast(tf.gather(gates, order), dtype)),
            tf.unstack(recurrent_kernel),
            strict=True,
        )
    )

    def body(turn, begin, carried):
        starts, sizes = [], []  # One text is a matter of the number of ops: share them.
        for num_rows in tf.unstack(tf.gather(rows_of_turn, turn), STEPS_A_TURN):
            starts.append(tf.stack([begin, 0]))
            sizes.append(tf.stack([num_rows, -1]))
            begin += num_rows
        updated = []
        for (gates, kernel), (h, c, outputs) in zip(directions, carried, strict=True):
            hidden = []
            for start, size in zip(starts, sizes, strict=True):
                h, c = tf.slice(h, [0, 0], size), tf.slice(c, [0, 0], size)
                update = tf.slice(gates, start, size) + tf.matmul(h, kernel)
                i, f, g, o = tf.split(update, 4, axis=-1)
                c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
                h = tf.sigmoid(o) * tf.tanh(c)
                hidden.append(h)
            updated.append((h, c, outputs.write(turn, tf.concat(hidden, 0))))
        return turn + 1, begin, updated

    steps = tf.size(rows_of_step)
    turns = (steps + STEPS_A_TURN - 1) // STEPS_A_TURN
    # The last turn may have steps without rows.
    rows_of_turn = tf.pad(rows_of_step, [[0, turns * STEPS_A_TURN - steps]])
    rows_of_turn = tf.reshape(rows_of_turn, [-1, STEPS_A_TURN])
    zeros = tf.zeros([shape[0], units], dtype)
    states = tf.TensorShape([None, units])
    outputs = [
        tf.TensorArray(dtype, turns, element_shape=states, infer_shape=False)
        for _ in directions
    ]
    number, unknown = tf.TensorShape([]), tf.TensorShape(None)
    _, _, carried = tf.while_loop(
        lambda turn, *_: turn < turns,
        body,
        (0, 0, [(zeros, zeros, array) for array in outputs]),
        shape_invariants=(number, number, [(states, states, unknown)] * 2),
    )
    padded = [*tf.unstack(shape), units]
    halves = [
        tf.scatter_nd(tf.gather(places, order), array.concat(), padded)
        for (_, _, array), order in zip(carried, (forwards, backwards), strict=True)
    ]
    return tf.concat(halves, -1)


def _pack(mask):
    """Where the tokens of a batch are, and when each direction reads them.

    Args:
        mask: bool tensor `(batch_size, sequence_length)`.

    Returns:
        Tuple of int32 tensors: `(num_tokens, 2)`, row and column of each token, the row
        of most tokens first; `(num_tokens,)` twice, the tokens in the order in which
        the forward and the backward direction read them, step by step; `(num_steps,)`,
        the rows of each step.
    """
    lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)
    rows = tf.argsort(lengths, direction="DESCENDING")
    lengths = tf.gather(lengths, rows)
    places = tf.cast(tf.where(tf.gather(mask, rows)), tf.int32)
    places = tf.stack([tf.gather(rows, places[:, 0]), places[:, 1]], axis=1)
    # One step without rows, where no row has a token: a loop has written something.
    steps = tf.maximum(1, tf.reduce_max(lengths))
    has_token = tf.range(steps)[:, tf.newaxis] < lengths
    step, row = tf.unstack(tf.cast(tf.where(has_token), tf.int32), axis=1)
    ends = tf.cumsum(lengths)
    forwards = tf.gather(ends - lengths, row) + step
    backwards = tf.gather(ends - 1, row) - step
    return places, forwards, backwards, tf.reduce_sum(tf.cast(has_token, tf.int32), 1)
