"""MultiRC's scores, counted by hand and as its paper writes them."""

import numpy as np
import pytest

from keras_recbert.metrics.multirc import f1_over_answers, question_exact_match

QUESTIONS = ["0-0", "0-1", "0-0", "1-0", "0-1", "10-0"]
LABELS = np.array([1, 0, 1, 1, 0, 0])
PREDICTIONS = np.array([1, 0, 0, 1, 0, 1])


def test_exact_match_takes_all_answers_of_a_question():
    # 0-0 misses an answer, 10-0 has one too many; 0-1 has none and 1-0 the only one.
    assert question_exact_match(QUESTIONS, LABELS, PREDICTIONS) == 2 / 4
    assert question_exact_match(QUESTIONS, LABELS, LABELS) == 1


def test_f1a_is_that_of_the_paper():
    """Khashabi et al. 2018: precision and recall over all answers."""
    right = {index for index, label in enumerate(LABELS) if label}
    found = {index for index, label in enumerate(PREDICTIONS) if label}
    precision, recall = (len(right & found) / len(one) for one in (found, right))
    expected = 2 * precision * recall / (precision + recall)
    assert f1_over_answers(LABELS, PREDICTIONS) == pytest.approx(expected)
    assert f1_over_answers(LABELS, np.zeros(6, int)) == 0


@pytest.mark.parametrize("questions", [[], QUESTIONS[:5]])
def test_numbers_that_differ_are_refused(questions):
    with pytest.raises(ValueError, match="a label and a prediction. Received: "):
        question_exact_match(questions, LABELS[: 6 * bool(questions)], PREDICTIONS)
