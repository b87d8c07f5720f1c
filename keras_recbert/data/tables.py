"""Tables of a user: CSV, TSV, JSON lines and Parquet, every value a text."""

import codecs
import os
import re
from dataclasses import dataclass

from keras_recbert.core.extras import check_installed
from keras_recbert.data.rows import (
    JSON_LINES,
    PARQUET,
    SEPARATED,
    SEPARATORS,
    TEXT,
    TableRows,
    as_text,
    not_decoded,
)

FALLBACK = "cp1252"  # Windows-1252, which has the printable characters of Latin-1
_INDEX = re.compile(r"__index_level_\d+__")  # where pandas writes numbers of rows


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose values are all texts.

    Args:
        path: str. The file.
        frame: `pandas.DataFrame` of str; what the file has no value for is "".
        places: list of str, where each row is: `FILE:LINE` of the line that it begins
            in, or `FILE, row N`, both from 1.
        notes: what the reader did that its caller should know.
    """

    path: str
    frame: object
    places: list[str]
    notes: tuple[str, ...] = ()

    def __len__(self):
        return len(self.frame)

    @property
    def columns(self):
        """Names of the columns, a list of str."""
        return list(self.frame.columns)

    def values(self, column):
        """Values of a column, a list of str."""
        return self.frame[column].tolist()

    def where(self, row):
        """How an error names a row: `FILE:LINE`, or `FILE, row N` from 1."""
        return self.places[row]


def read_table(path, encoding=None, plain_text=False):
    """Reads a table, its kind by the ending of the name.

    `.csv` (separated by commas; by semicolons or tabs if its header has no comma),
    `.tsv`, `.jsonl` or `.ndjson` (one JSON object a line), `.parquet`; all but the last
    also with `.gz`, `.bz2` or `.xz` behind. CSV is that of RFC 4180: fields in double
    quotes may hold separators, line ends, and quotes written twice. Values stay as they
    are written: `NA` and `null` are texts, and `01` is not 1.

    Args:
        path: str or path.
        encoding: optional str. Encoding of a text file; by default UTF-8, with a byte
            order mark or without, and Windows-1252, with a note, for what has no
            character of UTF-8 and is not JSON. Parquet has its own.
        plain_text: bool. Whether `.txt` is a table, too: a text a line, `text`.

    Returns:
        `Table`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an unknown ending; for bytes of another encoding and a row that
            is broken, naming file and line; for a file without rows.
        ImportError: without pandas, for Parquet without pyarrow; before the file is
            read.
    """
    rows = check_table(path, plain_text)
    notes = []
    if rows.kind != PARQUET:
        is_json = rows.kind in JSON_LINES
        text, notes = _decode(path, rows.read_bytes(), encoding, is_json)
        rows = rows.decoded(text)
    if rows.kind in SEPARATED:
        name = SEPARATORS[rows.separator()]
        if rows.kind == ".csv" and name != "commas":
            notes.append(f"{path}: columns are separated by {name}.")
    columns = [name for name in rows.columns() if not _INDEX.fullmatch(name)]
    found, places = [], []
    for where, row in rows.rows():
        found.append({name: as_text(value) for name, value in row.items()})
        places.append(where)
    if rows.kind in JSON_LINES:
        columns = list(dict.fromkeys(name for row in found for name in row))
        _check_characters(found, places)
    if not found:
        what = "no text" if rows.kind == TEXT else "a header and no rows"
        raise ValueError(f"{path} has {what}.")
    import pandas

    values = [[row.get(name, "") for name in columns] for row in found]
    frame = pandas.DataFrame(values, columns=columns, dtype=object)
    return Table(os.fspath(path), frame, places, tuple(notes))


def check_table(path, plain_text=False):
    """Checks what can be checked of a table without reading it.

    Returns:
        `TableRows`.

    Raises:
        FileNotFoundError, ValueError, ImportError: as `read_table`.
    """
    rows = TableRows(path, plain_text=plain_text)
    check_installed("A table of your own", "tables", "pandas")
    return rows


def _check_characters(rows, places):
    """Raises `ValueError` for half of a character, which JSON can write."""
    for row, where in zip(rows, places, strict=True):
        try:
            "".join(row.values()).encode()
        except UnicodeEncodeError as error:
            half = ord(error.object[error.start])
            raise ValueError(
                f"{where}: half of a character, \\u{half:x}, which is no text. Write "
                "both halves."
            ) from error


def _decode(path, data, encoding, is_json):
    """Text of a file, and notes on how it was read."""
    notes = []
    if encoding is None and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
        notes.append(f"{path}: read as UTF-16, as its byte order mark says.")
    is_utf8 = encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    try:
        text = data.decode("utf-8-sig" if is_utf8 else encoding)
    except UnicodeDecodeError as error:
        if encoding is not None or is_json:
            where = f"{path}:{_line_of_byte(data, error)}"
            raise not_decoded(where, encoding or "utf-8", error) from error
        text, note = _decode_windows(path, data, error)
        notes.append(note)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(
            f"{path}:{line}: a zero byte, which no text has. Name the encoding of the "
            "file: encoding (--encoding), such as utf-16-le."
        )
    return text, notes


def _decode_windows(path, data, error):
    """Text of a file that is not UTF-8, and the note that says so."""
    line = _line_of_byte(data, error)
    rest = data.decode(errors="ignore")
    if character := re.search(r"[^\x00-\x7f]", rest):
        other = rest.count("\n", 0, character.start()) + 1
        raise ValueError(
            f"{path}:{line}: not UTF-8 ({_byte(error)}), while line {other} is "
            f"({character[0]!r}). Correct the line, or name the encoding of the file: "
            "encoding (--encoding), such as cp1252 or shift_jis."
        ) from error
    try:
        text = data.decode(FALLBACK)
    except UnicodeDecodeError as other:
        raise ValueError(
            f"{path}:{line}: not UTF-8 ({_byte(error)}), and line "
            f"{_line_of_byte(data, other)} is not Windows-1252 ({_byte(other)}). Name "
            "the encoding of the file: encoding (--encoding), such as latin-1 or "
            "shift_jis."
        ) from other
    return text, (
        f"{path}:{line}: not UTF-8 ({_byte(error)}), so the file was read as "
        "Windows-1252. encoding (--encoding) names another one."
    )


def _line_of_byte(data, error):
    return data.count(b"\n", 0, error.start) + 1


def _byte(error):
    return f"byte 0x{error.object[error.start]:02x}"
