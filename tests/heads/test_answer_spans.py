"""Answers from logits, against loops over every span."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from toy_texts import FILLERS, VOCABULARY

from keras_recbert.heads.answer_spans import (
    best_spans,
    no_answer_scores,
    span_targets,
)
from keras_recbert.text.question_preprocessor import QuestionPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(VOCABULARY)
CONTEXTS = [
    " ".join(np.random.default_rng(size).choice(FILLERS, size))
    for size in (9, 0, 31, 1, 17)
]
QUESTIONS = ["film?", "a", "", "good music", "story"]


@pytest.fixture(scope="module")
def rows():
    packer = QuestionPreprocessor(TOKENIZER, max_sequence_length=14, stride=3)
    packed = packer((QUESTIONS, CONTEXTS))
    assert packed["token_ids"].shape[0] > 2 * len(QUESTIONS)
    return packed


@pytest.fixture(scope="module")
def logits(rows):
    shape = rows["token_ids"].shape
    return np.random.default_rng(0).normal(size=(shape[0], 2, shape[1])).astype("f4")


def spans_of_a_loop(rows, logits, example, max_length):
    """Every span of an example: score, first byte, last byte; the best first."""
    rows = {name: value.numpy() for name, value in rows.items()}
    found = []
    for row in np.flatnonzero(rows["example"] == example):
        places = np.flatnonzero(rows["begins"][row] >= 0)
        for start, end in itertools.product(places, places):
            if (
                not rows["most_context"][row, start]
                or not 0 <= end - start < max_length
            ):
                continue
            score = logits[row, 0, start] + logits[row, 1, end]
            found.append((score, rows["begins"][row, start], rows["ends"][row, end]))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("max_length", [1, 4, 30])
def test_the_best_spans_are_those_of_a_loop(rows, logits, max_length):
    number = 12  # as many as a window has places, so that none is left out
    found = best_spans(logits, rows, tf.constant(CONTEXTS), number, max_length)
    found = {name: value.numpy() for name, value in found.items()}
    for example, context in enumerate(CONTEXTS):
        expected, texts = [], set()
        for score, start, end in spans_of_a_loop(rows, logits, example, max_length):
            text = context.encode()[start:end]
            if text not in texts:
                texts.add(text)
                expected.append((score, start, end, text))
        expected = expected[:number]
        keys = ("logit", "start", "end", "answer")
        got = list(zip(*(found[key][example] for key in keys), strict=True))
        for (score, *span), (other, *other_span) in zip(got, expected, strict=False):
            assert score == pytest.approx(other, abs=1e-5)
            assert span == other_span
        rest = got[len(expected) :]
        assert all(one[1:] == (-1, -1, b"") for one in rest)
        assert len(rest) == number - len(expected)
    assert found["answer"][1].tolist() == [b""] * number  # nothing to answer with


def test_few_wanted_are_the_first_of_many(rows, logits):
    many = best_spans(logits, rows, tf.constant(CONTEXTS), 12, 30)
    one = best_spans(logits, rows, tf.constant(CONTEXTS), 1, 30)
    for name, value in one.items():
        assert np.array_equal(value[:, 0], many[name][:, 0])


def test_the_score_of_no_answer_is_the_least_of_the_windows(rows, logits):
    found = no_answer_scores(logits, rows, len(CONTEXTS)).numpy()
    first = logits[:, 0, 0] + logits[:, 1, 0]
    for example in range(len(CONTEXTS)):
        mine = first[rows["example"].numpy() == example]
        assert found[example] == pytest.approx(mine.min())


def most_context_of_a_loop(windows):
    """`_check_is_max_context` of BERT's code, of spans in place of word pieces.

    Args:
        windows: dict of row to the first and last position of the context, and of the
            answer in it.

    Returns:
        The row where the answer has most context; None without rows.
    """
    best_score, best = None, None
    for row, (first, last, start, stop) in windows.items():
        score = min(start - first, last - stop) + 0.01 * (last - first + 1)
        if best_score is None or score > best_score:
            best_score, best = score, row
    return best


@pytest.mark.parametrize("windows", ["all", "most_context"])
def test_answers_are_found_in_the_windows_that_hold_them(rows, windows):
    """Against a loop over the tokens: `convert_examples_to_features` of BERT's code."""
    features = {name: value.numpy() for name, value in rows.items()}
    _, begins, ends = TOKENIZER.tokenize_with_offsets(CONTEXTS)
    rng = np.random.default_rng(1)
    left_out = 0
    for _ in range(30):
        spans = []
        for first, last in zip(begins.to_list(), ends.to_list(), strict=True):
            if not first:
                spans.append((-1, -1))
                continue
            start = rng.integers(len(first))
            end = rng.integers(start, min(start + 6, len(first)))
            spans.append((first[start], last[end]))
        found = span_targets(rows, tf.constant(spans), windows).numpy()
        expected = np.zeros_like(found)
        holding = [{} for _ in spans]
        for row, example in enumerate(features["example"]):
            places = np.flatnonzero(features["begins"][row] >= 0)
            starts = [
                p for p in places if features["begins"][row, p] == spans[example][0]
            ]
            stops = [p for p in places if features["ends"][row, p] == spans[example][1]]
            if starts and stops:
                expected[row] = starts[0], stops[0]
                holding[example][row] = (places[0], places[-1], *expected[row])
        for own in holding if windows == "most_context" else ():
            others = own.keys() - {most_context_of_a_loop(own)}
            expected[list(others)] = -1
            left_out += len(others)
        assert found.tolist() == expected.tolist()
    assert (left_out > 20) == (windows == "most_context")


def test_an_answer_inside_words_takes_the_whole_pieces():
    packed = QuestionPreprocessor(TOKENIZER)((["a"], ["very good film with music"]))
    found = span_targets(packed, tf.constant([[6, 12]]))  # "ood fi"
    assert found.numpy().tolist() == [[4, 5]]
