import pytest

from keras_recbert.serving.answers import Predictor
from keras_recbert.serving.text_columns import (
    FEWEST,
    choose_text_columns,
    text_columns_of,
)
from keras_recbert.text.choice_preprocessor import FEWEST_CHOICES


@pytest.mark.parametrize(
    ("columns", "wanted", "chosen"),
    [
        (["anything"], (), ("anything",)),
        (["label", "text"], (), ("text",)),
        (["text_pair", "id", "text"], (), ("text", "text_pair")),
        (["sentence2", "sentence1"], (), ("sentence1", "sentence2")),
        (["sentence", "label"], (), ("sentence",)),
        (["text", "text_pair"], ["text_pair"], ("text_pair",)),
        (["a", "b", "c"], ["c", "a"], ("c", "a")),
    ],
)
def test_text_columns_are_named_or_have_usual_names(columns, wanted, chosen):
    assert choose_text_columns("it.csv", columns, wanted) == chosen


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ((), r"it.csv has the columns 'review', 'id'\. Name .*\(--text-column\)"),
        (["text"], "There is no column 'text': it.csv has the columns 'review', 'id'"),
        (["id", "id", "id"], "takes one or two names. Received: id, id, id"),
    ],
)
def test_text_columns_that_are_not_clear_are_an_error(wanted, message):
    with pytest.raises(ValueError, match=message):
        choose_text_columns("it.csv", ["review", "id"], wanted)


CHOICES = Predictor(None, ("text", "choices"), ("choices",))


def test_rows_become_columns_of_texts_and_lists():
    rows = [("f:1", {"q": "a", "c": ["b", "c"]}), ("f:2", {"c": ["d"] * 3, "q": 1})]
    columns = text_columns_of(CHOICES, ("q", "c"), rows)
    assert columns == [["a", "1"], [["b", "c"], ["d", "d", "d"]]]
    tagger = Predictor(None, ("words",), ("words",))
    assert text_columns_of(tagger, ("w",), [("f:1", {"w": []})]) == [[[]]]
    assert FEWEST == {"choices": FEWEST_CHOICES}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"q": "a"}, "f:7: there is no 'c', which holds the text. Found 'q'"),
        ({"q": None}, "f:7: there is no text in 'q': it is null. Write"),
        ({"q": float("nan")}, "f:7: there is no text in 'q': it is null"),
        ({"q": ["a"]}, "Received: .'a'. of type list. Join .*--head words"),
        ({"q": {"a": 1}}, "f:7: 'q' must hold a text. .* of type dict. Name a col"),
        ({"q": b"a"}, "of type bytes. Save the column as strings"),
        *(
            ({"q": "a", "c": value}, "f:7: 'c' must hold a list of 2 texts or more, n")
            for value in (["a", ""], ["a", 3], ["a"], [], None, {"a": 1})
        ),
        ({"q": "a", "c": "b"}, "empty. Received: 'b'. JSON lines and Parquet hold"),
    ],
)
def test_what_is_no_text_or_list_is_told_with_its_line(row, message):
    with pytest.raises(ValueError, match=message):
        text_columns_of(CHOICES, ("q", "c"), [("f:7", row)])
