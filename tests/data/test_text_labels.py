import numpy as np
import pytest

from keras_recbert.data.text_labels import (
    class_names,
    guess_task,
    is_number,
    to_scores,
)


@pytest.mark.parametrize("text", ["3", "-0.5", "+1", "1e3", "2.", ".5", "007"])
def test_numbers(text):
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["", "nan", "inf", "1_000", "1,5", "0x1", "1e999", "٣", " 3", "a"]
)
def test_what_python_takes_for_a_number_and_a_table_does_not_mean(text):
    assert not is_number(text)


@pytest.mark.parametrize(
    ("labels", "task", "why"),
    [
        (["yes", "no"], "classifier", "words"),
        (["1", "nan"], "classifier", "words"),
        (["1", "2", "3"] * 9, "classifier", "3 different whole numbers"),
        (["0.0", "1.0"] * 9, "classifier", "2 different whole numbers"),
        (["1", "2.5"], "regressor", "with fractions, such as 2.5"),
        ([str(i) for i in range(21)], "regressor", "21 different numbers"),
        ([str(i) for i in range(20)], "classifier", "20 different whole numbers"),
        ([f"w{i % 100}" for i in range(200)], "classifier", "words"),
    ],
)
def test_the_labels_say_the_task(labels, task, why):
    found, reason = guess_task(labels, "a.csv")
    assert found == task
    assert why in reason


def test_words_that_hardly_repeat_are_no_labels():
    labels = [f"w{i % 101}" for i in range(200)]
    with pytest.raises(
        ValueError, match="a.csv: 101 different words in 200 rows, such"
    ):
        guess_task(labels, "a.csv")


def test_classes_are_sorted_by_number_if_all_are_numbers():
    assert class_names(["10", "9", "-1", "9"], "") == ("-1", "9", "10")
    assert class_names(["10", "9", "a"], "") == ("10", "9", "a")
    assert class_names(["1", "01", "2"], "") == ("01", "1", "2")
    with pytest.raises(ValueError, match="a.csv: every row has the label '1'"):
        class_names(["1", "1"], "a.csv")


def test_a_score_beyond_float32_is_told():
    class Table:
        def where(self, row):
            return f"a.csv:{row + 2}"

    scores = to_scores(Table(), "y", ["1", "-2.5"])
    assert scores.dtype == np.float32 and scores.tolist() == [1.0, -2.5]
    with pytest.raises(ValueError, match="a.csv:3: '1e200' in column 'y' is not a n"):
        to_scores(Table(), "y", ["1", "1e200"])
