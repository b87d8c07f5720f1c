"""Scores of answers against the official scripts."""

import json
import random

import pytest

from keras_recbert.metrics.squad import best_threshold, squad_scores

NAMES = ("exact_match", "f1")


def perturbed(text, draw):
    """An answer like another: with words more, less, or other."""
    words = text.split()
    kind = draw.randrange(5)
    if kind == 0:
        return ""
    if kind == 1:
        return f"The {text}!"
    if kind == 2 and len(words) > 1:
        return " ".join(words[1:])
    if kind == 3:
        return " ".join([*words, *words[:1], "more"])
    return text


@pytest.fixture(scope="module")
def validation_sets(data_dir):
    folder = data_dir / "squad"
    paths = {"v1_1": "dev-v1.1.json", "v2_0": "dev-v2.0.reconstructed.json"}
    return {
        name: json.loads((folder / path).read_text(encoding="utf-8"))["data"]
        for name, path in paths.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("version", ["v1_1", "v2_0"])
def test_scores_are_those_of_the_official_script(validation_sets, version):
    script = pytest.importorskip(
        f"official.nlp.tools.squad_evaluate_{version}",
        reason="pip install --no-deps tf-models-official==2.20.0",
    )
    draw, data = random.Random(0), validation_sets[version]
    questions = [q for a in data for p in a["paragraphs"] for q in p["qas"]]
    gold = [[one["text"] for one in q["answers"]] for q in questions]
    texts = [draw.choice(one) if one else "some text" for one in gold]
    answers = [perturbed(text, draw) for text in texts]
    found = squad_scores(NAMES, gold, answers)
    by_id = {q["id"]: text for q, text in zip(questions, answers, strict=True)}
    official = script.evaluate(data, by_id)
    if version == "v1_1":
        assert found["exact_match"] == pytest.approx(official["exact_match"], abs=1e-12)
        assert found["f1"] == pytest.approx(official["final_f1"], abs=1e-12)
        return
    assert 100 * found["exact_match"] == pytest.approx(official["exact"], abs=1e-9)
    assert 100 * found["f1"] == pytest.approx(official["f1"], abs=1e-9)
    odds = [draw.gauss(0.0 if one else 1.0, 1.0) for one in gold]
    odds_by_id = {q["id"]: odd for q, odd in zip(questions, odds, strict=True)}
    texts_by_id = {q["id"]: text for q, text in zip(questions, texts, strict=True)}
    official = script.evaluate(data, texts_by_id, odds_by_id)
    threshold = best_threshold(gold, texts, odds)
    assert threshold == official["final_f1_thresh"]
    rest = ["" if o > threshold else t for t, o in zip(texts, odds, strict=True)]
    best = squad_scores(NAMES, gold, rest)
    assert 100 * best["f1"] == pytest.approx(official["final_f1"], abs=1e-9)


def test_cases_by_hand():
    gold = [["the Cat"], ["a dog ran", "dog"], [], ["x"]]
    answers = ["cat.", "dog ran far", "", ""]
    scores = squad_scores(NAMES, gold, answers)
    # 1, 4/5 of "dog ran", 1 for no answer, 0.
    assert scores["exact_match"] == 0.5
    assert scores["f1"] == pytest.approx((1 + 0.8 + 1 + 0) / 4)


def test_a_threshold_by_hand():
    gold, answers = [["a dog"], [], ["cat"]], ["dog", "bird", "bird"]
    # No answers above -1: the first is right, the second rightly has none.
    assert best_threshold(gold, answers, [-1.0, 2.0, 3.0]) == -1.0
    assert best_threshold([[], []], answers[:2], [0.5, 1.0]) == -0.5  # below all


def test_nothing_is_refused_where_all_have_an_answer():
    gold, wrong = [["a dog"], ["cat"]], ["bird", "fish"]
    assert best_threshold(gold, wrong, [-3.0, 2.5]) == 2.5
    assert best_threshold(gold, wrong, [-3.0, -2.0]) == 0.0
    assert best_threshold(gold, ["dog", "fish"], [-3.0, 2.5]) == 2.5  # right: -3 only
    # One without an answer says that no answer is the best one.
    assert best_threshold([*gold, []], [*wrong, "bird"], [1.0, 2.0, 3.0]) == 0.0


@pytest.mark.parametrize(
    "names, gold, answers, message",
    [
        (("accuracy",), [["a"]], ["a"], "Unknown metrics.*Valid: exact_match, f1"),
        (NAMES, [["a"]], ["a", "b"], "1 examples, 2 answers"),
        (NAMES, [], [], "there must be one at least"),
    ],
)
def test_what_cannot_be_scored_is_refused(names, gold, answers, message):
    with pytest.raises(ValueError, match=message):
        squad_scores(names, gold, answers)
