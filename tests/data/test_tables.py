"""Tables as users have them, awkward ones above all."""

import csv
import gzip
import sys

import pandas
import pytest

from keras_recbert.data.tables import read_table


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def contents(table):
    return [table.columns, *table.frame.to_numpy().tolist()]


def test_values_stay_as_they_are_written(write):
    path = write("a.csv", 'text,label\nNA,01\nnull, 1 \n"",nan\n  two  spaces ,"1,5"\n')
    assert contents(read_table(path)) == [
        ["text", "label"],
        ["NA", "01"],
        ["null", " 1 "],
        ["", "nan"],
        ["  two  spaces ", "1,5"],
    ]


def test_quoted_fields_hold_separators_line_ends_and_quotes(write):
    text = 'text,label\r\n"one,\r\ntwo ""three""",a\r\n\r\nsaid "so",b\r\n'
    table = read_table(write("a.csv", text))
    assert table.values("text") == ['one,\r\ntwo "three"', 'said "so"']
    assert [table.where(row).rpartition(":")[2] for row in range(2)] == ["2", "5"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.CSV", "text,label\na b,x\n"),
        ("a.tsv", "text\tlabel\na b\tx\n"),
        ("my.reviews.jsonl", '{"text": "a b", "label": "x"}\n'),
        ("a.ndjson", '\n{"text": "a b", "label": "x"}'),
    ],
)
def test_the_ending_says_what_it_is(write, name, text):
    expected = [["text", "label"], ["a b", "x"]]
    assert contents(read_table(write(name, text))) == expected
    compressed = write(f"{name}.gz", gzip.compress(text.encode()))
    assert contents(read_table(compressed)) == expected


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_utf8_with_and_without_byte_order_mark(write, mark):
    table = read_table(write("a.csv", mark + "größe\né\n".encode()))
    assert contents(table) == [["größe"], ["é"]]
    assert table.notes == ()


def test_what_is_not_utf8_is_read_as_windows_1252_and_said(write):
    path = write("a.csv", "text,label\nplain,a\n“café”,b\n".encode("cp1252"))
    table = read_table(path)
    assert table.values("text") == ["plain", "“café”"]
    (note,) = table.notes
    assert note.startswith(
        f"{path}:3: not UTF-8 (byte 0x93), so the file was read as W"
    )
    assert read_table(path, "cp1252").notes == ()
    with pytest.raises(ValueError, match=r"a.csv:3: not valid utf-8 .*--encoding"):
        read_table(path, "utf-8")


@pytest.mark.parametrize("text", ["caf\u00e9", "\U0001f3ac", "\ufeff"])
def test_a_stray_byte_is_no_other_encoding(write, text):
    content = f"text,label\n{text},a\nplain,b\n".encode() + b"caf\xe9,b\n"
    with pytest.raises(
        ValueError, match="a.csv:4: not UTF-8 .byte 0xe9., while line 2"
    ):
        read_table(write("a.csv", content))
    assert len(read_table(write("a.csv", content), "cp1252")) == 3


def test_json_lines_are_utf8(write):
    content = b'{"text": "plain"}\n{"text": "caf\xe9"}\n'
    with pytest.raises(ValueError, match="a.jsonl:2: not valid utf-8 .byte 0xe9"):
        read_table(write("a.jsonl", content))
    table = read_table(write("a.jsonl", content), "cp1252")
    assert table.values("text") == ["plain", "café"]
    table = read_table(write("b.jsonl", '{"text": "é"}'.encode("utf-16")))
    assert table.values("text") == ["é"]


def test_other_encodings(write):
    path = write("a.csv", "text\n日本、\n".encode("shift_jis"))
    with pytest.raises(ValueError, match=r"a.csv:2: not UTF-8 .*not Windows-1252"):
        read_table(path)
    assert read_table(path, "shift_jis").values("text") == ["日本、"]
    table = read_table(write("excel.tsv", "text\tlabel\né\tb\n".encode("utf-16")))
    assert contents(table) == [["text", "label"], ["é", "b"]]
    assert "UTF-16" in table.notes[0]
    without_mark = write("b.csv", "text\né\n".encode("utf-16-le"))
    with pytest.raises(ValueError, match="b.csv:1: a zero byte.*--encoding"):
        read_table(without_mark)


def test_a_csv_file_of_semicolons_is_read_and_said(write):
    table = read_table(write("a.csv", "text;label\na, b;x\n"))
    assert contents(table) == [["text", "label"], ["a, b", "x"]]
    assert table.notes[0].endswith("separated by semicolons.")


def test_a_text_may_be_longer_than_the_limit_of_the_csv_module(write):
    limit = csv.field_size_limit()
    text = "word " * 40_000
    assert read_table(write("a.csv", f"text\n{text}\n")).values("text") == [text]
    assert csv.field_size_limit() == limit < sys.maxsize


def test_json_values_become_texts_and_missing_ones_empty(write):
    lines = [
        '{"text": "a\\u2028b", "label": 1, "id": 12345678901234567890}',
        '{"label": true, "text": null}',
        '{"text": 2.5, "more": [1, "é"]}',
    ]
    table = read_table(write("a.jsonl", "\n".join(lines)))
    assert contents(table) == [
        ["text", "label", "id", "more"],
        ["a\u2028b", "1", "12345678901234567890", ""],
        ["", "true", "", ""],
        ["2.5", "", "", '[1, "é"]'],
    ]


def test_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    frame = pandas.DataFrame(
        {"text": ["NA", None, "c"], "label": pandas.array([1, None, 3], "Int64")}
    )
    frame.assign(
        score=[0.5, 1.0, float("nan")],
        is_new=[True, False, True],
        words=[["a"], [], None],
    ).to_parquet(path)
    table = read_table(path)
    assert contents(table) == [
        ["text", "label", "score", "is_new", "words"],
        ["NA", "1", "0.5", "true", '["a"]'],
        ["", "", "1.0", "false", "[]"],
        ["c", "3", "", "true", ""],
    ]
    assert table.where(1) == f"{path}, row 2"


def test_the_row_numbers_of_pandas_are_no_column(tmp_path):
    frame = pandas.DataFrame({"text": ["a", "b", "c"], "label": [1, 2, 3]})
    frame[frame["label"] != 2].to_parquet(tmp_path / "a.parquet")
    assert contents(read_table(tmp_path / "a.parquet")) == [
        ["text", "label"],
        ["a", "1"],
        ["c", "3"],
    ]


def test_a_header_whose_quotes_hold_separators(write):
    table = read_table(write("a.csv", '"text, or so";"label"\na, b;x\n'))
    assert contents(table) == [["text, or so", "label"], ["a, b", "x"]]
    with pytest.raises(ValueError, match="a.csv:1: a double quote .* never closes"):
        read_table(write("a.csv", '"text,label\na,b\n'))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a,b\n1,2\n\n\n3\n", "a.csv:5: expected 2 fields.*found 1"),
        ("a.csv", "a,b\n1,2,3\n4,5,6\n", "a.csv:2: expected 2 fields.*found 3"),
        ("a.csv", 'a,b\n"x\ny",2\n1,2,3\n', "a.csv:4: expected 2 .* separated by comm"),
        ("a.tsv", "a\tb\n1,2\n", "a.tsv:2: expected 2 fields, separated by tabs"),
        ("a.csv", 'a,b\n1,2\n3,"x\n4,5\n', "a.csv:3: a double quote .* never closes"),
        ("a.csv", 'a\n"x', "a.csv:2: a double quote .* never closes"),
        ("a.csv", 'a,b\n"x" y,2\n', "a.csv:2: ',' expected after '\"'. Inside"),
        ("a.csv", 'a,b\n"x\n" y,2\n', "a.csv:3: .*row that begins in line 2"),
        ("a.csv", "a, a\n1,2\n", "a.csv:1: the header has the column 'a' twice"),
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "\ufeff\n", "a.csv is empty"),
        ("a.csv", "a,b\n", "a.csv has a header and no rows"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "a.jsonl:2: not valid JSON"),
        ("a.jsonl", '[{"a": 1}]', "a.jsonl:1: expected one object .*found an ar"),
        ("a.jsonl", '{"a": "\\ud83d"}', r"a.jsonl:1: half of a character, .ud83d"),
        ("a.csv.gz", b"\x1f\x8b\x08 cut", "a.csv.gz: damaged .gz file"),
        ("a.csv.gz", b"a,b\n1,2", "a.csv.gz: damaged .gz file"),
        ("a.csv.bz2", b"a,b\n1,2", "a.csv.bz2: damaged .bz2 file"),
        ("a.csv.xz", b"a,b\n1,2", "a.csv.xz: damaged .xz file"),
        ("a.parquet", b"PAR1 no", "a.parquet: not a Parquet file that can be read"),
        ("a.xlsx", b"PK", r"a.xlsx: the ending .*: .csv, .tsv, .*or .parquet. Save it"),
        ("a.parquet.gz", b"PK", "a.parquet.gz: the ending"),
        ("table", b"PK", "table: the ending"),
    ],
)
def test_what_is_broken_is_told_by_file_and_line(write, name, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(name, content))


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file .*none.csv.$"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileNotFoundError, match="folder.csv. It is a folder"):
        read_table(tmp_path / "folder.csv")


def test_without_pandas_the_extra_is_named(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'needs pandas: pip install -e "\.\[tables'):
        read_table(write("a.csv", "a\n1\n"))
