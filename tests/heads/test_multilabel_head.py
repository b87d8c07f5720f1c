"""Any number of labels a text: which labels are taken, what is scored."""

import numpy as np
import pytest

from keras_recbert.heads.multilabel import MultilabelHead

NAMES = ["comedy", "war", "music"]
ROWS = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0]], "float32")


@pytest.mark.parametrize(
    "labels",
    [
        [["comedy"], [], ["war", "comedy"]],
        [("comedy",), (), ("comedy", "war")],
        [{"comedy"}, set(), {"comedy", "war"}],
        ROWS.tolist(),
        ROWS.astype("int64"),
        ROWS.astype("bool"),
    ],
)
def test_labels_of_every_form_become_rows(labels):
    targets = MultilabelHead(NAMES).as_targets(labels)
    assert targets.dtype == "float32"
    np.testing.assert_array_equal(targets, ROWS)


def test_texts_without_any_label_are_rows_of_zeros():
    np.testing.assert_array_equal(
        MultilabelHead(NAMES).as_targets([[], []]), np.zeros((2, 3))
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["comedy"], ["drama"]], "names among .*Received: 'drama' at index 1"),
        (
            ["comedy", "war"],
            r"a list of names.*'comedy' at index 0. Write \['comedy'\]",
        ),
        ([["comedy"], None], r"a list of names.*None at index 1. Write \[\]"),
        ([["comedy"], [["war"]]], r"names among .*Received: \['war'\] at index 1"),
        ([[1, 0, 2], [0, 0, 0]], r"rows of 3 numbers.*\[1, 0, 2\] at index 0"),
        ([[0, 0], [1, 0]], r"rows of 3 numbers.*\[0, 0\] at index 0"),
        (np.array([1, 0]), "rows of 3 numbers.*Received: 1 at index 0"),
    ],
)
def test_other_labels_are_refused_by_name_and_index(labels, message):
    with pytest.raises(ValueError, match=message):
        MultilabelHead(NAMES).as_targets(labels)


@pytest.mark.parametrize("names", [[], ["a", "b", "a"]])
def test_label_names_must_differ(names):
    with pytest.raises(ValueError, match="a different name for each label"):
        MultilabelHead(names)


def test_scores_by_hand():
    logits = np.array([[2.0, -1.0, -3.0], [0.0, -1.0, -2.0], [3.0, -0.5, -1.0]])
    scores = MultilabelHead(NAMES).scores(
        ("micro_f1", "macro_f1", "accuracy"), ROWS, logits
    )
    # Found: comedy in all three (0 counts as half), nothing else.
    # comedy: 2 right, 1 too many: F1 4/5. war: 1 missed: 0. music: none at all: 0.
    assert scores["micro_f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    assert scores["macro_f1"] == pytest.approx((4 / 5 + 0 + 0) / 3)
    assert scores["accuracy"] == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="Unknown metrics: .*'f1'.*Valid: micro_f1"):
        MultilabelHead(NAMES).scores(("f1",), ROWS, logits)
