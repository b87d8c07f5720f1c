"""Windows against a loop written from BERT's code (run_squad.py)."""

import collections

import numpy as np
import pytest
from toy_texts import FILLERS, VOCABULARY

from keras_recbert.text.question_preprocessor import QuestionPreprocessor
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

pytestmark = pytest.mark.usefixtures("pack_op_by_op")

TOKENIZER = WordPieceTokenizer(VOCABULARY)
FEATURES = ("token_ids", "segment_ids", "begins", "ends", "most_context")


def examples(number=11, seed=0):
    """Questions of 0 to 10 words on contexts of 0 to 60, one of them twice."""
    rng = np.random.default_rng(seed)
    contexts = [" ".join(rng.choice(FILLERS, (6 * i) % 61)) for i in range(number)]
    contexts[3] = contexts[7]
    questions = [" ".join(rng.choice(FILLERS, i % 11)) for i in range(number)]
    return questions, contexts


def windows_of_a_loop(question, context, limit, stride, longest_question):
    """Rows of one example, as `convert_examples_to_features` makes them."""
    longest = min(longest_question, (limit - 3) // 2)
    question = TOKENIZER([question]).to_list()[0][:longest]
    ids, begins, ends = (
        part.to_list()[0] for part in TOKENIZER.tokenize_with_offsets([context])
    )
    room = limit - len(question) - 3
    spans, start = [], 0
    while start < len(ids) or not spans:
        length = min(len(ids) - start, room)
        spans.append((start, length))
        if start + length == len(ids):
            break
        start += min(length, stride)
    rows = []
    for number, (start, length) in enumerate(spans):
        span = slice(start, start + length)
        best = [is_max_context(spans, number, place) for place in range(*span_of(span))]
        before = len(question) + 2
        rows.append(
            (
                [TOKENIZER.cls_id, *question, TOKENIZER.sep_id]
                + [*ids[span], TOKENIZER.sep_id],
                [0] * before + [1] * (length + 1),
                [-1] * before + begins[span] + [-1],
                [-1] * before + ends[span] + [-1],
                [0] * before + best + [0],
            )
        )
    return rows


def span_of(span):
    return span.start, span.stop


def is_max_context(spans, number, place):
    """`_check_is_max_context` of BERT's code."""
    best_score, best = None, None
    for index, (start, length) in enumerate(spans):
        end = start + length - 1
        if not start <= place <= end:
            continue
        score = min(place - start, end - place) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best = score, index
    return int(best == number)


@pytest.mark.parametrize(
    "limit, stride, longest_question",
    [(16, 4, 64), (23, 128, 5), (40, 7, 3), (512, 128, 64), (8, 1, 64)],
)
def test_windows_are_those_of_a_loop(limit, stride, longest_question):
    questions, contexts = examples()
    preprocessor = QuestionPreprocessor(
        TOKENIZER,
        max_sequence_length=limit,
        stride=stride,
        max_question_length=longest_question,
    )
    packed = {k: v.numpy() for k, v in preprocessor((questions, contexts)).items()}
    found = collections.defaultdict(list)
    for row, length in enumerate(packed["padding_mask"].sum(1)):
        features = tuple(packed[name][row, :length].tolist() for name in FEATURES)
        found[packed["example"][row]].append(features)
        assert (packed["begins"][row, length:] == -1).all()
        assert not packed["most_context"][row, length:].any()
    assert list(found) == list(range(len(questions)))
    for index, pair in enumerate(zip(questions, contexts, strict=True)):
        expected = windows_of_a_loop(*pair, limit, stride, longest_question)
        assert found[index] == [tuple(row) for row in expected], index


def test_rows_of_a_fixed_length_and_the_forms_of_a_batch():
    preprocessor = QuestionPreprocessor(TOKENIZER, sequence_length=12)
    assert preprocessor.fields == ("question", "context")
    by_name = preprocessor({"context": ["a film"], "question": ["good?"]})
    in_order = preprocessor((["good?"], ["a film"]))
    for name, value in by_name.items():
        assert np.array_equal(value, in_order[name])
        assert value.shape == ((1,) if name == "example" else (1, 12))


def test_no_examples():
    packed = QuestionPreprocessor(TOKENIZER)(([], []))
    assert all(value.shape[0] == 0 for value in packed.values())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"stride": 0}, "`stride` must be a whole number of at least 1"),
        ({"max_question_length": 0}, "`max_question_length` must be a whole number"),
        ({"max_sequence_length": 7}, "need at least 8 tokens.*a limit of 7"),
        ({"sequence_length": 600}, "must not exceed `max_sequence_length`"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        QuestionPreprocessor(TOKENIZER, **arguments)


def test_a_question_without_a_context_is_refused():
    preprocessor = QuestionPreprocessor(TOKENIZER)
    with pytest.raises(ValueError, match="the fields 'question', 'context'"):
        preprocessor(["a film?"])
    with pytest.raises(ValueError, match="the fields 'question', 'context'"):
        preprocessor({"question": ["a film?"], "text": ["a"]})
