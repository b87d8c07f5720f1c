"""Splits of one file in two: shares of labels, whole groups."""

import numpy as np
import pytest

from keras_recbert.data.examples import Examples
from keras_recbert.data.split import group_fields, split_by_label, split_examples
from keras_recbert.data.task_spec import get_task

NAMES = ("a", "b", "rare")


def examples(num_rows, labels=None, names=NAMES):
    labels = np.arange(num_rows) % len(names) if labels is None else labels
    texts = [f"text {row}" for row in range(num_rows)]
    return Examples({"text": texts}, {"label": np.asarray(labels, np.int32)})


def _row_of(text):
    return int(text.split()[1])


def test_texts_are_the_same_whatever_their_case_and_spacing():
    texts = ["A  good film", "a good\tfilm ", "a good film!", "STRASSE", "straße"]
    a, b, c, d, e = group_fields({"text": texts})
    assert a == b != c
    assert d == e != a


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_each_label_has_its_share(fraction):
    labels = [0] * 160 + [1] * 80 + [2] * 20
    rest, held = split_by_label(examples(260, labels), fraction, 3, range(260))
    assert len(held) == round(260 * fraction)
    counts = np.bincount(held.targets["label"], minlength=3)
    np.testing.assert_allclose(counts, fraction * np.array([160, 80, 20]), atol=1)
    assert rest.ids == [str(1 + row) for row in map(_row_of, rest.fields["text"])]
    rows = list(map(_row_of, rest.fields["text"]))
    assert rows == sorted(rows)
    assert not set(rest.fields["text"]) & set(held.fields["text"])


def test_scores_are_split_at_random():
    labels = np.linspace(0, 1, 50, dtype=np.float32)
    scores = Examples({"text": [f"text {row}" for row in range(50)]}, {"label": labels})
    rest, held = split_by_label(scores, 0.2, 0, range(50))
    assert (len(rest), len(held)) == (40, 10)
    assert set(rest.targets["label"]) | set(held.targets["label"]) == set(labels)


def test_groups_stay_whole_and_large_ones_behind():
    groups = [0] * 40 + [row // 2 for row in range(40, 100)]
    rest, held = split_by_label(examples(100, names=NAMES[:2]), 0.2, 1, groups)
    held = set(map(_row_of, held.fields["text"]))
    assert min(held) >= 40
    assert {row // 2 for row in held} == {row // 2 for row in held if row % 2}
    assert len(held) == 2 * round(0.2 * 30)
    assert len(rest) == 100 - len(held)


@pytest.mark.parametrize(
    ("num_rows", "fraction"), [(2, 0.5), (9, 0.1), (9, 0.9), (20, 0.1)]
)
def test_too_few_rows_for_each_label_are_refused(num_rows, fraction):
    with pytest.raises(ValueError, match=f"{num_rows} rows are too few .*--validation"):
        split_by_label(examples(num_rows), fraction, 0, range(num_rows))


def numbered(count):
    texts = [f"t{i}" for i in range(count)]
    return Examples({"text": texts}, {"label": np.arange(count, dtype="int32")})


def test_split_examples_is_deterministic_and_complete():
    rest, held = split_examples(numbered(50), 0.2, seed=3)
    again, _ = split_examples(numbered(50), 0.2, seed=3)
    other, _ = split_examples(numbered(50), 0.2, seed=4)
    assert (len(rest), len(held)) == (40, 10)
    assert sorted([*rest.targets["label"], *held.targets["label"]]) == list(range(50))
    assert rest.targets["label"].tolist() == sorted(rest.targets["label"])
    assert rest.fields["text"] == [f"t{i}" for i in rest.targets["label"]]
    assert again.targets["label"].tolist() == rest.targets["label"].tolist()
    assert other.targets["label"].tolist() != rest.targets["label"].tolist()


def test_split_examples_keeps_groups_together():
    groups = [i // 7 for i in range(50)] + [99] * 30
    for seed in range(20):
        rest, held = split_examples(numbered(80), 0.2, seed, groups)
        sides = [
            {groups[row] for row in side.targets["label"]} for side in (rest, held)
        ]
        assert not sides[0] & sides[1]
        assert 9 < len(held) <= 16
        assert 99 in sides[0]


def test_split_examples_bad_arguments():
    with pytest.raises(ValueError, match="between 0 and 1. Received: fraction=1"):
        split_examples(numbered(4), 1, 0)
    with pytest.raises(ValueError, match="one value a row. Received: 3 values for 4"):
        split_examples(numbered(4), 0.5, 0, [1, 2, 3])
    with pytest.raises(ValueError, match="Cannot hold 2 of 4 rows out .* there are 1:"):
        split_examples(numbered(4), 0.5, 0, [1, 1, 1, 1])
    with pytest.raises(
        ValueError, match="Cannot hold 2 of 2 rows out .* side would be"
    ):
        split_examples(numbered(2), 0.9, 0)


def test_groups_by_one_field_or_by_any_shared_value():
    pairs = {"text": ["a", "B ", "c", "d", "e"], "text_pair": ["b", "c", "x", "y", "d"]}
    # a-b, b-c, c-x hang together through row 1; d-y and e-d do through "d".
    a, b, c, d, e = group_fields(pairs, get_task("qqp").group_by)
    assert a == b == c != d == e
    assert len(set(group_fields(pairs, get_task("qnli").group_by))) == 5
    same = {"text": ["Who  is he?", "who is he? "], "text_pair": ["x", "y"]}
    assert len(set(group_fields(same, "text"))) == 1
    assert len(set(group_fields(same, "text_pair"))) == 2


def test_groups_of_lists_and_of_three_fields():
    words = {"words": [["A", "film"], ["a  film"], ["film", "a"]]}
    a, b, c = group_fields(words)
    assert a == b != c
    three = {"x": ["1", "2", "3"], "y": ["4", "5", "6"], "z": [["7"], ["1"], ["8"]]}
    a, b, c = group_fields(three)
    assert a == b != c
