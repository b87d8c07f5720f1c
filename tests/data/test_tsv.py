"""Files of tab-separated columns: what is read, and what is refused."""

import math

import pytest

from keras_recbert.data.task_files import read_file
from keras_recbert.data.tsv import TsvReader


def test_missing_column_names_it_and_what_was_found(write):
    path = write("x.tsv", "sentence,label\nfine,1\n")
    with pytest.raises(ValueError) as error:
        read_file("sst2", path)
    assert str(error.value) == (
        f"{path}:1: column 'sentence' is not in the header. "
        "Found 1 columns ('sentence,label'), separated by tabs."
    )
    path = write("y.tsv", "label\tsentence\tlabel\n1\ta\t0\n")
    with pytest.raises(ValueError, match="column 'label' is twice in the header"):
        read_file("sst2", path)
    path = write("z.tsv", "1\tfine\n")
    with pytest.raises(ValueError, match="z.tsv:1: there is no column at position 3"):
        read_file("cola", path)


@pytest.mark.parametrize(("row", "found"), [("a", 1), ("a\tb\t1", 3)])
def test_wrong_number_of_fields(write, row, found):
    path = write("x.tsv", f"sentence\tlabel\nfine\t1\n{row}\n")
    with pytest.raises(ValueError) as error:
        read_file("sst2", path)
    assert f"{path}:3: expected 2 tab-separated fields" in str(error.value)
    assert f"found {found}" in str(error.value)


def test_blank_line_between_rows_is_an_error(write):
    path = write("x.tsv", "sentence\tlabel\n\nfine\t1\n")
    with pytest.raises(ValueError, match="x.tsv:2: expected 2 .* found 1"):
        read_file("sst2", path)


@pytest.mark.parametrize("label", ["2", "-1", "1.0", "positiv", ""])
def test_bad_class(write, label):
    path = write("x.tsv", f"sentence\tlabel\nfine\t1\nbad\t{label}\n")
    with pytest.raises(ValueError) as error:
        read_file("sst2", path)
    assert str(error.value) == (
        f"{path}:3: {label!r} is not a valid label. "
        "Valid: 'negative', 'positive', or 0 to 1."
    )


@pytest.mark.parametrize("content", ["", "\n\r\n", "\ufeff"])
def test_empty_file(write, content):
    path = write("x.tsv", content)
    with pytest.raises(ValueError, match="x.tsv is empty"):
        read_file("sst2", path)


def test_header_only(write):
    path = write("x.tsv", "sentence\tlabel\n")
    with pytest.raises(ValueError, match="no usable row: 0 rows below its header"):
        read_file("sst2", path)


def test_invalid_utf8_names_the_line(write):
    path = write("x.tsv", b"\xef\xbb\xbfsentence\tlabel\nfine\t1\ncaf\xe9\t1\n")
    with pytest.raises(ValueError, match=r"x.tsv:3: not valid UTF-8 \(byte 0xe9"):
        read_file("sst2", path)


def test_labels_stay_as_written_without_names(write):
    path = write("own.tsv", "text\ttopic\na\tsport\nb\tart\nc\tsport \n")
    own = TsvReader({"text": "text"}, "topic")(path)
    assert own.targets == {"label": ["sport", "art", "sport"]}
    path = write("numbers.tsv", "x\t10\ny\t2\n")
    own = TsvReader({"text": 0}, 1, header=False)(path)
    assert (own.fields, own.targets) == ({"text": ["x", "y"]}, {"label": ["10", "2"]})


def test_given_names_and_pairs(write):
    path = write("own.tsv", "l\ta\tb\nno\tx\ty\n")
    fields = {"text": "b", "text_pair": "a"}
    own = TsvReader(fields, "l", label_names=("yes", "no"))(path)
    assert own.fields == {"text": ["y"], "text_pair": ["x"]}
    assert list(own.fields) == ["text", "text_pair"]
    assert own.targets["label"].tolist() == [1]
    assert TsvReader({"text": 1})(path).targets is None
    with pytest.raises(
        ValueError, match=r"own.tsv:2: 'no' is not .* Valid: 'a', 'b'\."
    ):
        TsvReader({"text": "a"}, "l", label_names=("a", "b"))(path)


def test_ids_are_those_of_a_column_or_numbers_of_rows(write):
    reader = TsvReader({"text": "t"}, "l", id_column="id", skip_labels=("-",))
    path = write("own.tsv", "id\tt\tl\nq7\ta\t-\nq8\tb\tx\n")
    assert reader(path).ids == ["q8"]
    path = write("own.tsv", "t\tl\na\t-\nb\tx\n")
    assert reader(path).ids == ["2"]  # the second row of the file


def test_test_splits_have_columns_of_their_own(write):
    reader = TsvReader({"text": 1}, 0, header=False, test_fields={"text": "sentence"})
    test = reader(write("test.tsv", "index\tsentence\n0\ta\n"), "test")
    assert (test.fields, test.targets) == ({"text": ["a"]}, None)


def test_scores_without_bounds(write):
    path = write("own.tsv", "t\ts\na\t-12.5\nb\t1e3\n")
    own = TsvReader({"text": "t"}, "s", score_range=(-math.inf, math.inf))(path)
    assert own.targets["label"].tolist() == [-12.5, 1000.0]


def test_bad_arguments(write):
    path = write("own.tsv", "a\tb\nx\tyes\ny\tyes\n")
    for fields in ({}, "a", ("a", "b")):
        with pytest.raises(ValueError, match="a column for each field, such as"):
            TsvReader(fields)
    with pytest.raises(ValueError, match="not both"):
        TsvReader({"text": "a"}, "b", label_names=("no", "yes"), score_range=(0, 1))
    with pytest.raises(ValueError, match="must not repeat a name"):
        TsvReader({"text": "a"}, "b", label_names=("yes", "yes"))
    with pytest.raises(ValueError, match="columns go by position"):
        TsvReader({"text": "a"}, header=False)(path)
    with pytest.raises(FileNotFoundError, match="nowhere.tsv"):
        TsvReader({"text": "a"})("nowhere.tsv")
