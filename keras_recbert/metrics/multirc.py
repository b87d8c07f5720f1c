"""Scores of MultiRC, whose questions have any number of right answers.

Khashabi et al. 2018; SuperGLUE (Wang et al. 2019) reports the mean of both.
"""

import numpy as np

from keras_recbert.metrics.glue import glue_scores


def f1_over_answers(labels, predictions) -> float:
    """F1a: F1 of the right answers, over those of all questions together.

    Args:
        labels, predictions: int arrays `(num_answers,)` of 0 and 1.
    """
    return glue_scores("f1", labels, predictions)["f1"]


def question_exact_match(question_ids, labels, predictions) -> float:
    """Part of the questions all of whose answers are told right from wrong.

    Args:
        question_ids: sequence of the question of each answer.
        labels, predictions: int arrays `(num_answers,)` of 0 and 1.

    Raises:
        ValueError: if there are none, or their numbers differ.
    """
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if not len(labels) or not len(question_ids) == len(labels) == len(predictions):
        raise ValueError(
            "Each answer needs a question, a label and a prediction. Received: "
            f"{len(question_ids)} questions, {len(labels)} labels, "
            f"{len(predictions)} predictions."
        )
    _, question = np.unique(np.asarray(question_ids, object), return_inverse=True)
    num_wrong = np.bincount(question, weights=labels != predictions)
    return float(np.mean(num_wrong == 0))
