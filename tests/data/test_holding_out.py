import numpy as np
import pytest

from keras_recbert.data.holding_out import group_texts, split_by_label
from keras_recbert.data.tsv import Examples

NAMES = ("a", "b", "rare")


def examples(num_rows, labels=None, names=NAMES):
    labels = np.arange(num_rows) % len(names) if labels is None else labels
    texts = [f"text {row}" for row in range(num_rows)]
    return Examples((texts,), np.asarray(labels, np.int32), names)


def test_texts_are_the_same_whatever_their_case_and_spacing():
    texts = ["A  good film", "a good\tfilm ", "a good film!", "STRASSE", "straße"]
    a, b, c, d, e = group_texts((texts,))
    assert a == b != c
    assert d == e != a


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.5])
def test_each_label_has_its_share(fraction):
    labels = [0] * 160 + [1] * 80 + [2] * 20
    rest, held = split_by_label(examples(260, labels), fraction, 3, range(260))
    assert len(held) == round(260 * fraction)
    counts = np.bincount(held.labels, minlength=3)
    np.testing.assert_allclose(counts, fraction * np.array([160, 80, 20]), atol=1)
    assert rest.label_names == held.label_names == NAMES
    rows = [int(text.split()[1]) for text in rest.texts[0]]
    assert rows == sorted(rows)
    assert not set(rest.texts[0]) & set(held.texts[0])


def test_scores_are_split_at_random():
    labels = np.linspace(0, 1, 50, dtype=np.float32)
    scores = Examples(([f"text {row}" for row in range(50)],), labels)
    rest, held = split_by_label(scores, 0.2, 0, range(50))
    assert (len(rest), len(held)) == (40, 10)
    assert set(rest.labels) | set(held.labels) == set(labels)


def test_groups_stay_whole_and_large_ones_behind():
    groups = [0] * 40 + [row // 2 for row in range(40, 100)]
    rest, held = split_by_label(examples(100, names=NAMES[:2]), 0.2, 1, groups)
    held = {int(text.split()[1]) for text in held.texts[0]}
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
