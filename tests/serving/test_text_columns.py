import pytest

from keras_recbert.serving.text_columns import choose_text_columns


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
