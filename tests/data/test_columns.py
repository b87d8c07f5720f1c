"""Columns that are named, guessed and refused."""

import pandas
import pytest

from keras_recbert.data.columns import choose_columns
from keras_recbert.data.tables import Table


def table(header, rows):
    frame = pandas.DataFrame(rows, columns=header, dtype=object)
    return Table("a.csv", frame, [f"a.csv:{line}" for line in range(2, 2 + len(rows))])


@pytest.mark.parametrize(
    ("header", "row", "texts", "label"),
    [
        (("text", "label"), ("a b", "x"), ("text",), "label"),
        (("Label", "Review"), ("x", "a b"), ("Review",), "Label"),
        (("n", "words", "kind"), ("{i}", "a b c {i}", "{k}"), ("words",), "kind"),
        (
            ("sentence1", "sentence2", "x"),
            ("a", "b", "{k}"),
            ("sentence1", "sentence2"),
            "x",
        ),
        (("id", "x", "y", "stars"), ("{i}", "a b c", "{k}", "{k}"), ("x",), "stars"),
        (("n", "a", "b"), ("{i}", "a b c {i}", "{k}"), ("a",), "b"),
        (("id", "text", "label"), ("{k}", "a b c {i}", "{k}"), ("text",), "label"),
    ],
)
def test_columns_are_guessed_and_said(header, row, texts, label):
    rows = [[value.format(i=i, k="xy"[i % 2]) for value in row] for i in range(60)]
    found, chosen, notes = choose_columns(table(header, rows))
    assert (found, chosen) == (texts, label)
    names = " and ".join(map(repr, texts))
    assert notes[0].startswith(f"a.csv: texts are in {names}, ")
    assert notes[1].startswith(f"a.csv: labels are in {label!r}, ")


def test_what_is_named_is_not_guessed():
    one = table(("a", "b", "c"), [("x", "y", "z")])
    assert choose_columns(one, "b", "a") == (("b",), "a", [])
    assert choose_columns(one, ["c", "a"], "b") == (("c", "a"), "b", [])
    texts, label, notes = choose_columns(one, ["c", "a"])
    assert (texts, label) == (("c", "a"), "b")
    assert notes == [
        "a.csv: labels are in 'b', the only other column (--label-column)."
    ]


@pytest.mark.parametrize(
    ("header", "row", "options", "message"),
    [
        (
            ("title", "story", "label"),
            ("a title of words", "a story of words", "x"),
            {},
            "which column holds the texts? It could be 'title' or 'story'. Its columns:"
            " 'title', 'story', 'label'. Name it: text_column (--text-column)",
        ),
        (
            ("text", "mood", "topic"),
            ("a text", "x", "y"),
            {},
            "which column holds the labels? It could be 'mood' or 'topic'.",
        ),
        (("text",), ("a text",), {}, "no column of labels beside the texts in 'text'"),
        (
            ("text", "label"),
            ("a text", "x"),
            {"text_column": "txt"},
            "has no column 'txt'. Its columns: 'text', 'label'.",
        ),
        (
            ("text", "label"),
            ("a text", "x"),
            {"label_column": "stars"},
            "has no column 'stars'. Its columns: 'text', 'label'.",
        ),
    ],
)
def test_a_guess_between_columns_is_refused(header, row, options, message):
    with pytest.raises(ValueError) as caught:
        choose_columns(table(header, [row] * 4), **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("a.csv")
