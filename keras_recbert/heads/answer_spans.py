"""From scores of word pieces to answers in the bytes of their contexts."""

import tensorflow as tf

from keras_recbert.heads.token_loss import IGNORED

TRAINING_WINDOWS = ("all", "most_context")
_NONE = -1e9  # of what is no answer; finite, so that sums and softmax stay numbers
# Candidates looked at for each answer that is wanted: some have the same text.
_SPARE = 3


def best_spans(logits, rows, contexts, num_best, max_length):
    """The spans with the highest sums of a start and an end score.

    A span begins at a word piece of the window in which that has most context, and
    ends no earlier, at most `max_length` word pieces on (Devlin et al. 2018, section
    4.2, and its code, which looks at the `num_best` highest starts and ends of each
    window). Of spans with the same text the best one counts.

    Args:
        logits: float32 `(num_rows, 2, sequence_length)`, of starts and ends.
        rows: dict of `example`, `begins`, `ends` and `most_context`, see
            `QuestionPreprocessor`.
        contexts: string `(batch_size,)`.
        num_best: int. Answers of each example.
        max_length: int. Most word pieces of an answer.

    Returns:
        dict of tensors `(batch_size, num_best)`: `answer`, string, the bytes of the
        context; `start` and `end`, int32, its first byte and the one after its last;
        `logit`, float32, descending. Where there are fewer answers: "", -1, -1, and
        -1e9.
    """
    starts, ends, scores = _spans_of_windows(logits, rows, num_best, max_length)
    batch_size = tf.shape(contexts)[0]
    example = tf.cast(rows["example"], tf.int64)

    def by_example(values, fill):
        """`(batch_size, number of the most candidates)`."""
        ragged = tf.RaggedTensor.from_value_rowids(
            values, example, tf.cast(batch_size, tf.int64), validate=False
        )
        dense = ragged.to_tensor(fill)
        return tf.reshape(dense, [batch_size, -1])

    wanted = _SPARE * num_best
    # At least so many columns: also of short windows, and of no windows at all.
    spare = [[0, 0], [0, wanted]]
    scores = tf.pad(by_example(scores, _NONE), spare, constant_values=_NONE)
    starts = tf.pad(by_example(starts, -1), spare, constant_values=-1)
    ends = tf.pad(by_example(ends, -1), spare, constant_values=-1)
    scores, starts, ends = _top(wanted, scores, starts, ends)
    starts = tf.where(scores > _NONE, starts, -1)
    ends = tf.where(scores > _NONE, ends, -1)
    texts = tf.strings.substr(
        tf.repeat(contexts[:, tf.newaxis], wanted, axis=1),
        tf.maximum(starts, 0),
        tf.maximum(ends, 0) - tf.maximum(starts, 0),
    )
    same = texts[:, :, tf.newaxis] == texts[:, tf.newaxis, :]
    is_later = tf.linalg.band_part(tf.ones([wanted, wanted], tf.int32), 0, -1) == 0
    repeats = tf.reduce_any(same & is_later[tf.newaxis], axis=2)
    scores = tf.where(repeats, _NONE, scores)
    scores, starts, ends, place = _top(
        num_best,
        scores,
        starts,
        ends,
        tf.broadcast_to(tf.range(wanted), tf.shape(scores)),
    )
    valid = scores > _NONE
    texts = tf.where(valid, tf.gather(texts, place, batch_dims=1), "")
    return {
        "answer": texts,
        "start": tf.where(valid, starts, -1),
        "end": tf.where(valid, ends, -1),
        "logit": scores,
    }


def no_answer_scores(logits, rows, batch_size):
    """The score of no answer: that of `[CLS]` to itself, the least of all windows.

    Devlin et al. 2018, section 4.3.

    Returns:
        float32 `(batch_size,)`.
    """
    first = logits[:, 0, 0] + logits[:, 1, 0]
    return tf.math.unsorted_segment_min(first, rows["example"], batch_size)


def span_targets(rows, targets, windows="all"):
    """Where in each row the answer of its example begins and ends.

    Rows that do not hold all of it are to answer `[CLS]`, position 0, for both, as
    those of examples without an answer.

    Args:
        rows: dict of features as `QuestionPreprocessor` gives them.
        targets: int `(batch_size, 2)`. First byte of the answer in the context and the
            one after its last; -1 where there is none.
        windows: `"all"` rows with all of it are to find it; or `"most_context"`, the
            one where it has most context, see `_most_context_rows`.

    Returns:
        int32 `(num_rows, 2)`, positions in the row; -1 on rows that have all of it and
        are not to find it.
    """
    span = tf.gather(tf.cast(targets, tf.int32), rows["example"])
    first, last = span[:, :1], span[:, 1:]
    holds = (rows["begins"] < last) & (rows["ends"] > first) & (rows["begins"] >= 0)
    # Each word piece of a context counts in one of its windows.
    counted = tf.cast(holds & (rows["most_context"] == 1), tf.int32)
    number = tf.reduce_sum(tf.cast(holds, tf.int32), axis=1)
    all_of_it = tf.math.segment_sum(tf.reduce_sum(counted, axis=1), rows["example"])
    is_whole = (number > 0) & (number == tf.gather(all_of_it, rows["example"]))
    start = tf.argmax(holds, axis=1, output_type=tf.int32)
    positions = tf.stack([start, start + number - 1], axis=1)
    found = tf.where(is_whole[:, tf.newaxis], positions, 0)
    if windows == "all":
        return found
    is_other = is_whole & ~_most_context_rows(rows, is_whole, positions)
    return tf.where(is_other[:, tf.newaxis], IGNORED, found)


def _most_context_rows(rows, is_whole, positions):
    """The row of each example where its answer has most context; the first of equal.

    As `_check_is_max_context` of BERT's code has it for a word piece, of a span: the
    fewer of the word pieces before and behind it, and 0.01 for each of the window.

    Args:
        rows: as for `span_targets`.
        is_whole: bool `(num_rows,)`. Rows to choose among.
        positions: int32 `(num_rows, 2)`. First and last position of the answer.

    Returns:
        bool `(num_rows,)`.
    """
    example = rows["example"]
    is_context = tf.cast(rows["begins"] >= 0, tf.int32)
    length = tf.reduce_sum(is_context, axis=1)
    first = tf.argmax(is_context, axis=1, output_type=tf.int32)
    before, behind = positions[:, 0] - first, first + length - 1 - positions[:, 1]
    score = tf.where(is_whole, 100 * tf.minimum(before, behind) + length, -1)
    best = tf.gather(tf.math.segment_max(score, example), example)
    number = tf.range(tf.size(score))
    place = tf.where(is_whole & (score == best), number, tf.size(score))
    return number == tf.gather(tf.math.segment_min(place, example), example)


def _spans_of_windows(logits, rows, num_best, max_length):
    """Start byte, end byte and score of the spans of the best starts and ends.

    Returns:
        Tuple of tensors `(num_rows, number of spans)`; spans that are not valid have
        the score -1e9.
    """
    is_token = rows["begins"] >= 0
    is_start = is_token & (rows["most_context"] == 1)
    number = tf.minimum(num_best, tf.shape(is_token)[1])
    start_scores, start = _top_places(logits[:, 0], is_start, number)
    end_scores, end = _top_places(logits[:, 1], is_token, number)
    length = end[:, tf.newaxis, :] - start[:, :, tf.newaxis] + 1
    scores = start_scores[:, :, tf.newaxis] + end_scores[:, tf.newaxis, :]
    is_valid = (length >= 1) & (length <= max_length) & (scores > _NONE / 2)
    scores = tf.where(is_valid, scores, _NONE)
    first = tf.gather(rows["begins"], start, batch_dims=1)[:, :, tf.newaxis]
    last = tf.gather(rows["ends"], end, batch_dims=1)[:, tf.newaxis, :]

    def flat(values):
        shape = tf.shape(scores)
        return tf.reshape(
            tf.broadcast_to(values, shape), [shape[0], shape[1] * shape[2]]
        )

    scores, first, last = map(flat, (scores, first, last))
    most = tf.minimum(_SPARE * num_best, tf.shape(scores)[1])
    scores, first, last = _top(most, scores, first, last)
    return first, last, scores


def _top_places(scores, is_valid, number):
    return tf.math.top_k(tf.where(is_valid, scores, _NONE), number)


def _top(number, scores, *others):
    """The highest scores of each row, and what the others have in their places."""
    scores, places = tf.math.top_k(scores, number)
    return (scores, *(tf.gather(other, places, batch_dims=1) for other in others))
