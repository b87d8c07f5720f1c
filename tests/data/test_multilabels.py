"""Cells of any number of labels: how they are split, and what is refused."""

import numpy as np
import pandas
import pytest

from keras_recbert.data.multilabels import (
    find_separator,
    names_of,
    split_cells,
    to_label_rows,
)
from keras_recbert.data.tables import read_table


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["war", "comedy|war"], "|"),
        (["war;comedy", "love, actually|war"], "|"),
        (["a;b, c", ""], ";"),
        (["a,b"], ","),
        (["a", "b"], ","),
    ],
)
def test_the_separator_is_the_first_that_is_there(cells, separator):
    assert find_separator(cells) == separator


def test_cells_are_split_and_names_sorted():
    labels = split_cells([" war | comedy ", "", "|", "war"], "|")
    assert labels == [["war", "comedy"], [], [], ["war"]]
    assert names_of(labels, "here") == ("comedy", "war")
    with pytest.raises(ValueError, match="here: no row has a label"):
        names_of([[], []], "here")


def test_rows_and_a_label_that_training_lacks(tmp_path):
    path = tmp_path / "a.csv"
    pandas.DataFrame({"genres": ["war", "", "war|opera"]}).to_csv(path, index=False)
    table = read_table(path)
    labels = split_cells(table.values("genres"), "|")
    names = ("comedy", "opera", "war")
    np.testing.assert_array_equal(
        to_label_rows(table, "genres", labels, names), [[0, 0, 1], [0, 0, 0], [0, 1, 1]]
    )
    with pytest.raises(ValueError, match="a.csv:4: .* no label 'opera' in column 'gen"):
        to_label_rows(table, "genres", labels, ("comedy", "war"))
