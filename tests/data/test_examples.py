"""Examples: columns, ids, rows that are taken."""

import numpy as np
import pytest

from keras_recbert.data.examples import Examples

SQUAD = Examples(
    {"question": ["Who?", "When?", ""], "context": ["He did.", "In 1900.", "x"]},
    {"start": [0, 3, 0], "end": np.array([2, 7, 1])},
    ids=["56be", "56bf", "56c0"],
    notes=("one row left out",),
)


def test_ids_are_numbers_of_rows_by_default():
    words = Examples({"words": [["a", "b"], []]}, {"tags": [["X", "Y"], []]})
    assert len(words) == 2
    assert words.ids == ["1", "2"]
    assert words.take([1]).ids == ["2"]
    assert Examples({"text": []}).ids == []


def test_rows_are_taken_of_every_column_in_their_order():
    taken = SQUAD.take([2, 0])
    assert taken.fields == {"question": ["", "Who?"], "context": ["x", "He did."]}
    assert list(taken.fields) == ["question", "context"]
    assert taken.targets["start"] == [0, 0]
    np.testing.assert_array_equal(taken.targets["end"], [1, 2])
    assert taken.ids == ["56c0", "56be"]
    assert taken.notes == ()
    assert Examples({"text": ["a"]}).take([0]).targets is None
    assert len(SQUAD.take([])) == 0


def test_fields_as_one_text():
    assert SQUAD.texts()[:2] == ["Who? He did.", "When? In 1900."]
    choices = Examples({"text": ["a"], "choices": [["b", "c d"]]})
    assert choices.texts() == ["a b c d"]


@pytest.mark.parametrize(
    ("columns", "received"),
    [
        (
            ({"text": ["a", "b"]}, {"label": np.zeros(1)}),
            r"equally long. Received: fields\['text'\] 2, targets\['label'\] 1",
        ),
        (({"text": ["a"], "text_pair": []},), r"1, fields\['text_pair'\] 0"),
        (({"text": ["a"]}, None, ["1", "2"]), r"fields\['text'\] 1, ids 2"),
        (({},), "at least one column"),
    ],
)
def test_uneven_columns_are_refused(columns, received):
    with pytest.raises(ValueError, match=received):
        Examples(*columns)
