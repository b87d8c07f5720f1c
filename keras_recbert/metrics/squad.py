"""Exact match and F1 of answers, as SQuAD's scripts count them.

Rajpurkar et al. 2016 (1.1), 2018 (2.0). The tests compare with the official scripts.
"""

import collections
import re
import string

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(text: str) -> str:
    """Lower case, without punctuation, articles and double spaces."""
    text = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return " ".join(text.split())


def exact_match(answer: str, gold: str) -> float:
    """1 if two answers are equal once they are normalized, else 0."""
    return float(normalize_answer(answer) == normalize_answer(gold))


def f1(answer: str, gold: str) -> float:
    """F1 of the words of two answers; where one has none, 1 if the other has none."""
    words, gold_words = normalize_answer(answer).split(), normalize_answer(gold).split()
    if not words or not gold_words:
        return float(words == gold_words)
    common = collections.Counter(words) & collections.Counter(gold_words)
    shared = sum(common.values())
    return 2 * shared / (len(words) + len(gold_words))


METRICS = {"exact_match": exact_match, "f1": f1}


def squad_scores(metric_names, gold_answers, answers) -> dict[str, float]:
    """Means over the examples of the best score that any gold answer gives.

    Args:
        metric_names: sequence of `"exact_match"` and `"f1"`.
        gold_answers: sequence of lists of str; an empty list for a question that has no
            answer, which `""` answers rightly.
        answers: sequence of str.

    Returns:
        dict of metric name to a float from 0 to 1.

    Raises:
        ValueError: for an unknown metric, no examples, or numbers that differ.
    """
    unknown = [name for name in metric_names if name not in METRICS]
    if unknown:
        raise ValueError(f"Unknown metrics: {unknown}. Valid: {', '.join(METRICS)}.")
    if len(answers) != len(gold_answers) or not len(answers):
        raise ValueError(
            "Each example needs an answer, and there must be one at least. Received: "
            f"{len(gold_answers)} examples, {len(answers)} answers."
        )
    scores = {}
    for name in metric_names:
        score = METRICS[name]
        total = sum(
            max(score(answer, one) for one in (_with_words(gold) or [""]))
            for answer, gold in zip(answers, gold_answers, strict=True)
        )
        scores[name] = total / len(answers)
    return scores


def best_threshold(gold_answers, answers, differences):
    """The bound of a score above which no answer is given that makes F1 highest.

    As the official script of SQuAD 2.0 finds it: over the examples in the order of
    their differences. Where none of them is without an answer, nothing says when to
    give none: the bound is 0 or the largest difference, so that all are answered.

    Args:
        gold_answers: as for `squad_scores`.
        answers: sequence of str, the best answer of each example, none of them empty.
        differences: sequence of float, the score of no answer less that of the answer.

    Returns:
        float. An example has no answer if its difference is above it.
    """
    current = best = sum(not gold for gold in gold_answers)
    if not best:
        return float(max([0.0, *differences]))
    threshold = float(min(differences)) - 1.0
    for index in sorted(range(len(answers)), key=lambda index: differences[index]):
        gold = _with_words(gold_answers[index])
        if gold:
            current += max(f1(answers[index], one) for one in gold)
        else:
            current -= bool(answers[index])
        if current > best:
            best, threshold = current, float(differences[index])
    return threshold


def _with_words(gold):
    """Gold answers of which something is left once they are normalized."""
    return [text for text in gold if normalize_answer(text)]
