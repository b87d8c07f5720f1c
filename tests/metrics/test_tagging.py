"""Entities and their scores against worked examples and seqeval."""

import numpy as np
import pytest

from keras_recbert.metrics.tagging import (
    METRICS,
    are_entity_tags,
    entities_of,
    stray_tags,
    tagging_scores,
)

# Tags, and entities as conlleval counts them.
SENTENCES = {
    "IOB2": ("B-a I-a O B-a B-a", [("a", 0, 2), ("a", 3, 4), ("a", 4, 5)]),
    "IOB1": ("I-a I-a B-a O I-b", [("a", 0, 2), ("a", 2, 3), ("b", 4, 5)]),
    "IOBES": ("B-a I-a E-a S-b S-b", [("a", 0, 3), ("b", 3, 4), ("b", 4, 5)]),
    "another label": ("B-a I-b I-b E-a", [("a", 0, 1), ("b", 1, 3), ("a", 3, 4)]),
    "behind an end": ("E-a I-a S-a E-a", [("a", i, i + 1) for i in range(4)]),
    "a hyphen": ("B-x-y I-x-y I-x", [("x-y", 0, 2), ("x", 2, 3)]),
    "none": ("O O", []),
    "nothing": ("", []),
}
SCHEMES = {
    "IOB": ["O", "B-a", "I-a", "B-b", "I-b"],
    "IOBES": ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in "ab")],
}


def random_tags(names, number=200, seed=0):
    """Gold and found tags, mostly equal, of 0 to 12 words, in any order."""
    rng = np.random.default_rng(seed)
    gold = [list(map(str, rng.choice(names, i % 13))) for i in range(number)]
    found = [
        [str(rng.choice(names)) if rng.random() < 0.3 else tag for tag in tags]
        for tags in gold
    ]
    return gold, found


@pytest.mark.parametrize("name", SENTENCES)
def test_entities_of_tags(name):
    tags, expected = SENTENCES[name]
    assert entities_of(tags.split()) == expected


def test_scores_of_a_worked_example():
    gold = [["B-a", "I-a", "O", "B-b"], ["O"], ["B-a"]]
    found = [["B-a", "I-a", "O", "B-a"], ["B-b"], ["B-a"]]
    # Three gold entities, four found, two of these right; four of six tags.
    expected = {
        "accuracy": 4 / 6,
        "entity_f1": 4 / 7,
        "entity_precision": 2 / 4,
        "entity_recall": 2 / 3,
    }
    assert tagging_scores(METRICS, gold, found) == pytest.approx(expected)
    assert list(tagging_scores(("entity_f1",), gold, found)) == ["entity_f1"]


def test_nothing_to_divide_by():
    scores = tagging_scores(METRICS, [["O"], []], [["O"], []])
    assert scores == {**dict.fromkeys(METRICS, 0.0), "accuracy": 1.0}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scores_are_those_of_seqeval(scheme):
    seqeval = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    from seqeval.metrics.sequence_labeling import get_entities

    gold, found = random_tags(SCHEMES[scheme])
    for tags in gold:
        expected = [(name, first, last + 1) for name, first, last in get_entities(tags)]
        assert entities_of(tags) == expected, tags
    scores = tagging_scores(METRICS, gold, found)
    assert 0.2 < scores["entity_f1"] < 0.8
    assert scores == pytest.approx(
        {
            "accuracy": seqeval.accuracy_score(gold, found),
            "entity_f1": seqeval.f1_score(gold, found),
            "entity_precision": seqeval.precision_score(gold, found),
            "entity_recall": seqeval.recall_score(gold, found),
        }
    )


def test_which_tags_are_of_entities():
    assert are_entity_tags(["O", "B-a", "I-a", "E-a", "S-x-y"])
    for tags in (["NOUN", "VERB"], ["B-a", "I-a"], ["O", "B"], ["O", "NP-a"]):
        assert not are_entity_tags(tags), tags


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O B-a I-a O a", ["a"]),
        ("I-a O X-a I-b b I-a", ["X-a", "b"]),
        ("B-a O 0 I-a", ["0"]),
        ("O B-a L-a U-a", ["L-a", "U-a"]),
        ("O B-a M-a E-a S-b", ["M-a"]),
        ("O B-a I-a-b E-a S-a", []),
        ("B-a I-a a", []),  # no O: no tags of entities
        ("O O", []),
        # Parts of speech: Penn's, Brown's, those of tweets, MULTEXT-East's.
        ("-LRB- NN O -RRB- NN : S", []),
        ("NN-TL FW-NN O IN-HL B", []),
        ("N O S Z ^ L M V E U", []),
        ("O I-s S-p Nc-sn Vmis Nc-pn", []),
    ],
)
def test_tags_of_no_scheme_among_those_of_one(tags, expected):
    assert stray_tags(tags.split()) == expected


@pytest.mark.parametrize(
    "metrics, gold, found, message",
    [
        (("f1",), [["O"]], [["O"]], r"Unknown metrics: \['f1'\].*entity_f1"),
        (METRICS, [["O"]], [], "1 sentences with gold tags, 0 with tags found"),
        (METRICS, [[]], [[]], "one word at least"),
        (METRICS, [["O"], ["O"]], [["O"], []], "1 gold tags and 0 found at index 1"),
    ],
)
def test_what_cannot_be_scored_is_refused(metrics, gold, found, message):
    with pytest.raises(ValueError, match=message):
        tagging_scores(metrics, gold, found)
