import csv
import gzip
import json
import sys

import pytest

from keras_recbert.data import rows
from keras_recbert.data.rows import TableRows, as_text


def write(path, data):
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


def read(path, **options):
    source = TableRows(path, **options)
    return source.columns(), [row for _, row in source.rows()]


AWKWARD = (
    '\ufefftext, id\r\n"a ""fine"" film,\nin two lines",007\r\n\r\n'
    'NA,null\r\n"",\r\n"a\rb",\u00e4 5" disk\r\n'
)
ROWS = [
    {"text": 'a "fine" film,\nin two lines', "id": "007"},
    {"text": "NA", "id": "null"},
    {"text": "", "id": ""},
    {"text": "a\rb", "id": 'ä 5" disk'},
]


def test_csv_stays_as_it_is_written(tmp_path):
    path = write(tmp_path / "it.csv", AWKWARD)
    assert read(path) == (["text", "id"], ROWS)
    where = [where for where, _ in TableRows(path).rows()]
    assert where == [f"{path}:{line}" for line in (2, 5, 6, 7)]


@pytest.mark.parametrize(
    ("name", "separator"), [("it.csv", ";"), ("it.csv", "\t"), ("it.TSV", "\t")]
)
def test_other_separators(tmp_path, name, separator):
    text = AWKWARD.replace("text, id", f"text{separator}id").replace('",007', '"~007')
    for before, after in (("NA,", "NA~"), ('"",\r', '""~\r'), ('b",', 'b"~')):
        text = text.replace(before, after)
    path = write(tmp_path / name, text.replace("~", separator))
    assert read(path) == (["text", "id"], ROWS)


def test_compressed_and_in_another_encoding(tmp_path):
    text = "text\nGrüße\n"
    path = write(tmp_path / "it.csv.gz", gzip.compress(text.encode("cp1252")))
    assert read(path, encoding="cp1252") == (["text"], [{"text": "Grüße"}])
    write(path, path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="it.csv.gz: damaged .gz file: "):
        read(path, encoding="cp1252")


def test_a_line_of_plain_text_is_a_row_even_an_empty_one(tmp_path):
    path = write(tmp_path / "it.txt", '\ufeffone, "two"\r\n\na\u2028b\rc\nlast')
    texts = ['one, "two"', "", "a\u2028b\rc", "last"]
    assert read(path) == (["text"], [{"text": text} for text in texts])


def test_json_lines_keep_their_values(tmp_path):
    rows = [{"text": "a\nb", "n": 1.5}, {"n": None, "text": "\ud83d", "more": [1]}]
    lines = "".join(f"{json.dumps(row)}\n\n" for row in rows)
    path = write(tmp_path / "it.jsonl", lines)
    assert read(path) == (["text", "n"], rows)
    assert [where for where, _ in TableRows(path).rows()] == [f"{path}:1", f"{path}:3"]


def test_parquet_keeps_its_values(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"text": f"text {i}" if i else None, "n": i} for i in range(7)]
    path = tmp_path / "it.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
    assert read(path) == (["text", "n"], rows)
    write(path, b"no Parquet")
    with pytest.raises(ValueError, match="it.parquet: not a Parquet file that can"):
        read(path)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "it.csv",
            "a,b\n1,2\n1,2,3\n",
            "it.csv:3: expected 2 fields, .*\\(a, b\\).*found 3",
        ),
        ("it.csv", 'a,b\n"1\n",2\n1\n', "it.csv:4: expected 2 fields, .* found 1"),
        ("it.csv", 'a,b\n1,2\n"1,2\n3,4\n', r'it.csv:3: a double quote \("\) opens'),
        ("it.csv", 'a,b\n1,"2"3\n', "it.csv:2: .*write each quote twice"),
        ("it.csv", "a, a\n1,2\n", "it.csv:1: the header has the column 'a' twice"),
        ("it.csv", "", "it.csv is empty. Expected a header"),
        (
            "it.csv",
            b"a\n1\nb\xe4\n",
            r"it.csv:3: not valid utf-8.* \(byte 0xe4\).*cp1252",
        ),
        ("it.txt", b"a\n\n\n\xff", "it.txt:4: not valid utf-8"),
        ("it.jsonl", '{"a": 1}\n{"a"\n', "it.jsonl:2: not valid JSON: "),
        ("it.jsonl", '{"a": 1}\n["a"]\n', r'it.jsonl:2: expected one object.*\["a"\]'),
        ("it.jsonl", "\n", "it.jsonl is empty"),
    ],
)
def test_what_is_broken_is_named_with_its_line(tmp_path, name, data, message):
    path = write(tmp_path / name, data)
    with pytest.raises(ValueError, match=message):
        read(path)


def test_a_line_end_that_is_lost_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MAX_CHARACTERS", 100)
    path = write(tmp_path / "it.txt", "short\n" + "x" * 100)
    with pytest.raises(ValueError, match="it.txt:2: a line of more than 100 char"):
        read(path)
    path = write(tmp_path / "it.csv", 'text\nshort\n"' + "never closed\n" * 30)
    limit = csv.field_size_limit()
    with pytest.raises(ValueError, match="it.csv:3: a double quote .* never closes"):
        read(path)
    assert csv.field_size_limit() == limit


def test_a_field_may_be_as_long_as_a_book(tmp_path):
    book = "word " * 50_000  # more than the 131,072 characters of `csv`
    path = write(tmp_path / "it.csv", f"text\n{book}\n")
    assert read(path)[1] == [{"text": book}]


@pytest.mark.parametrize("name", ["it.xlsx", "it", "it.parquet.gz", "gz.gz"])
def test_other_endings_are_refused(tmp_path, name):
    write(tmp_path / name, "text\n")
    with pytest.raises(ValueError, match=r"ending .* says what it is: .csv, .tsv, "):
        TableRows(tmp_path / name)


def test_what_is_not_there_is_told(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*no.csv\.$"):
        TableRows(tmp_path / "no.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileNotFoundError, match="folder.csv. It is a folder"):
        TableRows(tmp_path / "folder.csv")
    with pytest.raises(ValueError, match="Unknown encoding: 'latin-99'"):
        TableRows(write(tmp_path / "it.csv", "text\n"), "latin-99")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r'pyarrow: pip install -e "\.\[tables\]"'):
        TableRows(write(tmp_path / "it.parquet", b""))


def test_values_of_json_as_text():
    values = ["NA", None, float("nan"), 5, 0.5, True, {"ä": [1]}]
    assert [as_text(value) for value in values] == [
        *("NA", "", "", "5", "0.5", "true", '{"ä": [1]}')
    ]
