"""A span of a context that answers a question."""

from numbers import Integral

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.heads.answer_spans import (
    TRAINING_WINDOWS,
    best_spans,
    no_answer_scores,
    span_targets,
)
from keras_recbert.heads.blstm_decoder import check_decoder, decode
from keras_recbert.heads.head import Head, register_head
from keras_recbert.heads.token_loss import TokenLoss
from keras_recbert.heads.word_accuracy import WordAccuracy
from keras_recbert.metrics.squad import best_threshold, squad_scores

_LISTS = (list, tuple, np.ndarray)


@register_head
class QuestionAnsweringHead(Head):
    """Start and end of the answer in a context (Devlin et al. 2018, section 4.2).

    Args:
        decoder: `"linear"`, BERT's; or `"blstm"`, two bidirectional LSTMs as wide as
            the encoder before it (Huang et al. 2020, section 3.3).
        no_answer: bool. Whether questions may have none, as in SQuAD 2.0 (Devlin et
            al. 2018, section 4.3).
        no_answer_threshold: float. What the score of no answer must exceed that of the
            best answer by; of use with `no_answer` only.
        max_answer_length: int. Most word pieces of an answer.
        num_best: int. Answers that a served model gives of each example, the best
            first.
        training_windows: which windows of a long context learn the answer. `"all"`
            that hold it, as BERT's code; or `"most_context"`, that one where the answer
            has most context on its poorer side, which is how BERT's code chooses the
            window that may answer with a word piece. The others that hold it are left
            out of loss and accuracy, those of validation too: to learn that they have
            no answer would contradict what they show. Windows without all of it learn
            no answer, `[CLS]`, in both.

    Raises:
        ValueError: for an unknown decoder or choice of windows, or a number that is
            not positive.
    """

    task = "question_answering"
    metric_names = ("f1", "exact_match")
    more_metrics = ()
    packer = "QuestionPreprocessor"
    reads = "tokens"
    token_axis = 2
    padding_logit = -1e9
    checks_batches = True
    dataset_elements = (
        "((question, context), label), with labels int (n, 2): the first byte of each "
        "answer in its context and the one after its last, -1 and -1 for no answer. "
        "`model.head.read_labels(x, y)` finds them for the texts of answers, with x a "
        "dict of the columns 'question' and 'context'"
    )

    def __init__(
        self,
        decoder="linear",
        no_answer=False,
        no_answer_threshold=0.0,
        max_answer_length=30,
        num_best=20,
        training_windows="all",
    ):
        check_decoder(decoder)
        if training_windows not in TRAINING_WINDOWS:
            raise ValueError(
                "`training_windows` must be one of "
                f"{', '.join(map(repr, TRAINING_WINDOWS))}. Received: "
                f"training_windows={training_windows!r}."
            )
        check_positive(max_answer_length=max_answer_length, num_best=num_best)
        super().__init__(2)
        self.decoder = decoder
        self.no_answer = bool(no_answer)
        self.no_answer_threshold = float(no_answer_threshold)
        self.max_answer_length = max_answer_length
        self.num_best = num_best
        self.training_windows = training_windows

    def connect(self, outputs, dropout=None):
        """Logits `(num_rows, 2, sequence_length)`, -1e9 on padding."""
        tokens = self.reading.rows(outputs)
        mask = outputs.inputs["padding_mask"]
        if dropout is not None:
            tokens = dropout(tokens)
        encoder = outputs.encoder
        units = encoder.config.get("hidden_dim")
        tokens = decode(self.decoder, tokens, mask, units, encoder.policy)
        logits = keras.ops.transpose(self.logits(tokens), (0, 2, 1))
        real = keras.ops.cast(mask, "float32")[:, None, :]
        return logits * real + (1.0 - real) * self.padding_logit

    def loss(self):
        return TokenLoss()  # the mean of start and end

    def metrics(self):
        return [WordAccuracy(name="accuracy")]

    def read_labels(self, fields, labels, own_loss=False):
        """The bytes of the answers, from answers in the forms that users have.

        Args:
            fields: dict of the columns of `question` and `context`.
            labels: list of the answers, one an example: each a dict of `text` and
                `answer_start` (characters, not bytes), strings and numbers or lists of
                them, as SQuAD has them, of which the first is learned; a str that is
                in the context once; or None or an empty list for no answer. Or int
                `(num_examples, 2)`: first byte of the answer, and the one after its
                last; -1 for no answer.

        Returns:
            int32 `(num_examples, 2)`.

        Raises:
            ValueError: for an answer that is not in its context where it should be,
                or for none where `no_answer` is False; names the example.
        """
        contexts = fields["context"]
        contexts = contexts.numpy() if tf.is_tensor(contexts) else contexts
        if len(contexts) != len(labels):
            raise ValueError(
                "`y` must hold an answer for each example. Received: "
                f"{len(contexts)} contexts, {len(labels)} answers."
            )
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
            return self._checked_bytes(contexts, labels)
        return np.array(
            [
                self._bytes_of(index, context, label)
                for index, (context, label) in enumerate(
                    zip(contexts, labels, strict=True)
                )
            ],
            np.int32,
        )

    def _checked_bytes(self, contexts, labels):
        if labels.ndim != 2 or labels.shape[1] != 2:
            raise ValueError(
                "`y` must hold the first byte of each answer in its context and the "
                "one after its last, (num_examples, 2), or the answers themselves. "
                f"Received: shape {labels.shape}."
            )
        for index, (context, span) in enumerate(zip(contexts, labels, strict=True)):
            start, end = span.tolist()
            if start == end == -1:
                if not self.no_answer:
                    raise self._no_answer(index)
                continue
            context = context if isinstance(context, bytes) else _encoded(context)
            in_context = 0 <= start < end <= len(context)
            if not in_context or _is_inside(context, start) or _is_inside(context, end):
                raise ValueError(
                    "`y` must hold the first byte of each answer and the one after its "
                    f"last, from 0 to {len(context)} at index {index}, neither inside "
                    "a character; or -1 and -1 for no answer. Received: "
                    f"{[start, end]}."
                )
        return labels.astype(np.int32)

    def _bytes_of(self, index, context, label):
        context = context.decode() if isinstance(context, bytes) else context
        answers = gold_answers(index, label)
        if not answers:
            if not self.no_answer:
                raise self._no_answer(index)
            return -1, -1
        text, start = answers[0]
        if start is None:
            start = context.find(text)
            if not text or start < 0 or context.find(text, start + 1) >= 0:
                where = "in its context once" if start >= 0 else "in its context"
                raise ValueError(
                    f"The answer must be {where}, or come with its `answer_start`. "
                    f"Received: {text!r} at index {index}."
                )
        found = context[start : start + len(text)] if start >= 0 else ""
        if not text or found != text:
            raise ValueError(
                "An answer must be in its context at its `answer_start`, counted in "
                f"characters. Received: {text!r} at {start}, where there is {found!r}, "
                f"at index {index}."
            )
        begin = len(_encoded(context[:start]))
        return begin, begin + len(_encoded(text))

    def _no_answer(self, index):
        return ValueError(
            f"Each question needs an answer. Received none at index {index}. For "
            "questions without answers build the model with no_answer=True."
        )

    def check_elements(self, spec):
        labels = spec[1]
        if not (
            isinstance(labels, tf.TensorSpec)
            and labels.dtype.is_integer
            and (labels.shape.rank not in (0, 1) or labels.shape == [2])
        ):
            raise ValueError(
                "The elements of a dataset to learn from or to score are "
                f"{self.dataset_elements}. Received elements of {spec}."
            )

    def row_targets(self, rows, targets):
        return span_targets(rows, targets, self.training_windows)

    def answer(self, logits):
        return {"start_logits": logits[:, 0], "end_logits": logits[:, 1]}

    def answer_rows(self, logits, rows, columns):
        """What the SavedModel gives.

        Returns:
            dict of `answer` (string `(batch_size,)`, bytes of the context, "" for
            none), `start` and `end` (int32 `(batch_size,)`, its first byte and the one
            after its last, -1 for none), `score` (float32 `(batch_size,)`, its
            probability among the best), and the best answers, with no answer among
            them if there may be none: `best_answers`, `best_starts`, `best_ends`,
            `best_scores`, `(batch_size, num_best)`. With `no_answer` also
            `no_answer_score`, float32 `(batch_size,)`: the logit of no answer less that
            of the best.
        """
        contexts = columns[1]
        spans = best_spans(
            logits, rows, contexts, self.num_best, self.max_answer_length
        )
        extra = {}
        if self.no_answer:
            none = no_answer_scores(logits, rows, tf.shape(contexts)[0])
            difference = none - spans["logit"][:, 0]
            has_none = difference > self.no_answer_threshold
            extra["no_answer_score"] = difference
            spans = _with_no_answer(spans, none, has_none)
        scores = tf.nn.softmax(spans["logit"])
        # Where there is nothing to answer with, nothing is likely.
        scores = tf.where(spans["logit"] > self.padding_logit, scores, 0.0)
        return {
            "answer": spans["answer"][:, 0],
            "start": spans["start"][:, 0],
            "end": spans["end"][:, 0],
            "score": scores[:, 0],
            "best_answers": spans["answer"],
            "best_starts": spans["start"],
            "best_ends": spans["end"],
            "best_scores": scores,
            **extra,
        }

    def scores(self, metric_names, labels, predictions):
        """Scores of answers.

        With `no_answer` at the threshold that makes F1 highest on these labels, as
        SQuAD 2.0 is scored on validation sets (Devlin et al. 2018, section 4.3).

        Args:
            metric_names: sequence of str.
            labels: answers as for `read_labels`, texts not bytes.
            predictions: dict of arrays, as `answer_rows` gives them.
        """
        gold = _gold_texts(labels)
        answers = list(map(_decoded, predictions["answer"]))
        if self.no_answer:
            answers, odds = _best_texts(predictions)
            threshold = best_threshold(gold, answers, odds)
            chosen = zip(answers, odds, strict=True)
            answers = ["" if odd > threshold else text for text, odd in chosen]
        return squad_scores(metric_names, gold, answers)

    def tune(self, labels, predictions):
        """Sets `no_answer_threshold` to the best one for these labels."""
        if self.no_answer:
            answers, odds = _best_texts(predictions)
            gold = _gold_texts(labels)
            self.no_answer_threshold = best_threshold(gold, answers, odds)


def _gold_texts(labels):
    return [
        [text for text, _ in gold_answers(index, label)]
        for index, label in enumerate(labels)
    ]


def _best_texts(predictions):
    """The best answer of each example that has words, and the odds of no answer."""
    texts = [
        next((_decoded(text) for text in row if text), "")
        for row in predictions["best_answers"]
    ]
    return texts, predictions["no_answer_score"]


def _decoded(text):
    return text.decode("utf-8", "replace")


def _encoded(text):
    return text.encode("utf-8", "surrogatepass")


def _is_inside(text, place):
    """Whether a byte of UTF-8 is not the first one of its character."""
    return place < len(text) and text[place] & 0xC0 == 0x80


def gold_answers(index, label):
    """The answers of an example as a list of tuples of text and start, or None."""
    answers = []
    label = [] if label is None else label
    for one in label if isinstance(label, _LISTS) else [label]:
        one = one if isinstance(one, dict) else {"text": one}
        texts, starts = one.get("text"), one.get("answer_start")
        if isinstance(texts, (str, bytes)):
            texts, starts = [texts], None if starts is None else [starts]
        if starts is None and isinstance(texts, _LISTS):
            starts = [None] * len(texts)
        if not (
            isinstance(texts, _LISTS)
            and isinstance(starts, _LISTS)
            and len(texts) == len(starts)
            and all(isinstance(text, (str, bytes)) for text in texts)
            and all(start is None or isinstance(start, Integral) for start in starts)
        ):
            raise ValueError(
                "`y` must hold an answer for each example: its text, such as 'Ada'; "
                "{'text': 'Ada', 'answer_start': 0}, with the position of its first "
                "character; lists of these, as many starts as texts; or None for no "
                "answer. Or the bytes of all answers, an int array (num_examples, 2). "
                f"Received: {label!r} at index {index}."
            )
        texts = (text.decode() if isinstance(text, bytes) else text for text in texts)
        answers += zip(texts, starts, strict=True)
    return answers


def _with_no_answer(spans, logit, is_chosen):
    """The best answers with none among them: first where it is chosen.

    Else behind the best answer, in the place that its logit has.
    """
    number = tf.shape(spans["logit"])[1]
    batch_size = tf.shape(logit)[0]
    none = {
        "answer": tf.fill([batch_size, 1], ""),
        "start": tf.fill([batch_size, 1], -1),
        "end": tf.fill([batch_size, 1], -1),
        "logit": logit[:, tf.newaxis],
    }
    together = {name: tf.concat([none[name], spans[name]], 1) for name in none}
    # What is chosen stands first, whatever the threshold says of the logits.
    infinite = tf.constant(float("inf"))
    key = tf.concat(
        [
            tf.where(is_chosen, infinite, logit)[:, tf.newaxis],
            tf.where(is_chosen, spans["logit"][:, 0], infinite)[:, tf.newaxis],
            spans["logit"][:, 1:],
        ],
        axis=1,
    )
    _, places = tf.math.top_k(key, number)
    return {
        name: tf.gather(values, places, batch_dims=1)
        for name, values in together.items()
    }
