"""Tables of a user: CSV, TSV, JSON lines and Parquet, every value a text."""

import bz2
import codecs
import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import pathlib
import sys
import zlib
from dataclasses import dataclass

from keras_recbert.extras import check_installed

COMPRESSIONS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
FALLBACK = "cp1252"  # Windows-1252, which has the printable characters of Latin-1


@dataclass(frozen=True, eq=False)
class Table:
    """A table whose values are all texts.

    Args:
        path: str. The file.
        frame: `pandas.DataFrame` of str; what the file has no value for is "".
        lines: list of int, the line that each row begins in, from 1; None for a file
            that has no lines.
        notes: what the reader did that its caller should know.
    """

    path: str
    frame: object
    lines: list[int] | None
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
        if self.lines is None:
            return f"{self.path}, row {row + 1}"
        return f"{self.path}:{self.lines[row]}"


def read_table(path, encoding=None):
    """Reads a table, its kind by the ending of the name.

    `.csv` (separated by commas; by semicolons or tabs if its header has no comma),
    `.tsv`, `.jsonl` or `.ndjson` (one JSON object a line), `.parquet`; all but the last
    also with `.gz`, `.bz2` or `.xz` behind. CSV is that of RFC 4180: fields in double
    quotes may hold separators, line ends, and quotes written twice. Values stay as they
    are written: `NA` and `null` are texts, and `01` is not 1.

    Args:
        path: str or path.
        encoding: optional str. Encoding of a text file; by default UTF-8, with a byte
            order mark or without, and Windows-1252 for what is not UTF-8, with a note.
            Parquet has its own.

    Returns:
        `Table`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an unknown ending; for bytes of another encoding and a row that
            is broken, naming file and line; for a file without rows.
        ImportError: without pandas, for Parquet without pyarrow; before the file is
            read.
    """
    kind, compression = check_table(path)
    if kind == ".parquet":
        return _read_parquet(path)
    text, notes = _decode(path, _read_bytes(path, compression), encoding)
    if not text.strip():
        raise ValueError(f"{path} is empty. Expected a table with a header.")
    if kind in (".jsonl", ".ndjson"):
        columns, rows, lines = _read_json_lines(path, text)
    else:
        separator = "\t"
        if kind == ".csv":
            separator = _separator(text)
            if separator != ",":
                notes.append(
                    f"{path}: columns are separated by {SEPARATORS[separator]}."
                )
        columns, rows, lines = _read_separated(path, text, separator)
    return _table(path, columns, rows, lines, notes)


def check_table(path):
    """Checks what can be checked of a table without reading it.

    Returns:
        Tuple of its kind and its compression, endings such as `.csv` and `.gz`; the
        second may be "".

    Raises:
        FileNotFoundError, ValueError, ImportError: as `read_table`.
    """
    path = pathlib.Path(path)
    *_, kind, compression = ["", "", *(ending.lower() for ending in path.suffixes)]
    if compression not in COMPRESSIONS:
        kind, compression = compression, ""
    texts = (".csv", ".tsv", ".jsonl", ".ndjson")
    if kind not in texts and (kind, compression) != (".parquet", ""):
        raise ValueError(
            f"{path}: the ending of a table says what it is: {', '.join(texts)}, each "
            f"also with {', '.join(COMPRESSIONS)} behind, or .parquet. Save it as one "
            "of these (a spreadsheet: as CSV UTF-8)."
        )
    if not path.is_file():
        is_folder = " It is a folder." if path.is_dir() else ""
        raise FileNotFoundError(f"There is no file {path}.{is_folder}")
    modules = ("pandas", "pyarrow") if kind == ".parquet" else ("pandas",)
    check_installed("A table of your own", "tables", *modules)
    return kind, compression


def _table(path, columns, rows, lines, notes=()):
    import pandas

    if not rows:
        raise ValueError(f"{path} has a header and no rows.")
    frame = pandas.DataFrame(rows, columns=columns, dtype=object)
    return Table(os.fspath(path), frame, lines, tuple(notes))


def _read_bytes(path, compression):
    opener = COMPRESSIONS.get(compression, open)
    try:
        with opener(path, "rb") as file:
            return file.read()
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path}: damaged {compression} file: {error}") from error
    except OSError as error:
        if compression and error.errno is None:  # as bz2 says that data are damaged
            raise ValueError(f"{path}: damaged {compression} file: {error}") from error
        raise


def _decode(path, data, encoding):
    """Text of a file, and notes on how it was read."""
    notes = []
    if encoding is None and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
        notes.append(f"{path}: read as UTF-16, as its byte order mark says.")
    is_utf8 = encoding is None or codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    try:
        text = data.decode("utf-8-sig" if is_utf8 else encoding)
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise ValueError(
                f"{path}:{_line_of_byte(data, error)}: not valid {encoding} "
                f"({_byte(error)}). Name the encoding of the file: encoding "
                "(--encoding), such as utf-8 or cp1252."
            ) from error
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


def _separator(text):
    """What separates the columns of a CSV file: a comma, if its header has one."""
    with _fields_of_any_size():
        counts = {
            separator: len(next(csv.reader(io.StringIO(text), delimiter=separator)))
            for separator in SEPARATORS
        }
    return "," if counts[","] > 1 else max(counts, key=counts.get)


def _read_separated(path, text, separator):
    """Header, rows and the line of each row, strict about the number of fields.

    The parsers of pandas fill short rows, drop fields of long ones, and count rows
    where an error is to name a line.
    """
    rows, lines = [], []
    with _fields_of_any_size():
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, strict=True
        )
        line = 1
        try:
            for fields in reader:
                if fields:  # an empty line is no row
                    rows.append(fields)
                    lines.append(line)
                line = reader.line_num + 1
        except csv.Error as error:
            raise _broken(path, line, reader.line_num, error) from error
    columns = _check_header(path, lines[0], rows[0])
    name = SEPARATORS[separator]
    for fields, line in zip(rows, lines, strict=True):
        if len(fields) != len(columns):
            raise ValueError(
                f"{path}:{line}: expected {len(columns)} fields, separated by {name}, "
                f"as in the header; found {len(fields)}. Put a text that holds a "
                "separator, a quote or a line end in double quotes."
            )
    return columns, rows[1:], lines[1:]


def _broken(path, line, last, error):
    """The error of a row from `line` to `last` that is not CSV."""
    if "end of data" in str(error):
        return ValueError(
            f'{path}:{line}: a double quote (") opens in this row and never closes. '
            'Close it; inside a text in quotes write each quote twice ("").'
        )
    inside = "" if last == line else f", in the row that begins in line {line}"
    return ValueError(
        f"{path}:{last}: {error}{inside}. Inside a text in quotes write each quote "
        'twice ("").'
    )


@contextlib.contextmanager
def _fields_of_any_size():
    """Lets a field be longer than 131,072 characters, as a book is."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_header(path, line, names):
    names = [name.strip() for name in names]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"{path}:{line}: the header has the column {name!r} twice. Name each "
                "column once."
            )
    return names


def _read_json_lines(path, text):
    objects, lines = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(
                f"{path}:{number}: not valid JSON: {error}. Expected one object a line."
            ) from error
        if not isinstance(value, dict):
            raise ValueError(
                f"{path}:{number}: expected one object in each line, such as "
                '{"text": "a text", "label": "a label"}; found '
                f"{_JSON_NAMES.get(type(value), 'a value')}."
            )
        objects.append(value)
        lines.append(number)
    columns = list(dict.fromkeys(name for value in objects for name in value))
    rows = [[_as_text(value.get(name)) for name in columns] for value in objects]
    for row, line in zip(rows, lines, strict=True):
        try:
            "".join(row).encode()
        except UnicodeEncodeError as error:
            half = ord(error.object[error.start])
            raise ValueError(
                f"{path}:{line}: half of a character, \\u{half:x}, which is no text. "
                "Write both halves."
            ) from error
    return columns, rows, lines


_JSON_NAMES = {list: "an array", str: "a string", type(None): "null"}


def _read_parquet(path):
    import pandas

    try:
        # With the types of Arrow, whole numbers stay whole beside missing ones.
        frame = pandas.read_parquet(path, engine="pyarrow", dtype_backend="pyarrow")
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path}: not a Parquet file that can be read: {error}"
        ) from error
    columns = {
        str(name): [
            "" if value is pandas.NA else _as_text(value)
            for value in frame[name].tolist()
        ]
        for name in frame.columns
    }
    rows = list(zip(*columns.values(), strict=True))
    return _table(path, list(columns), rows, None)


def _as_text(value):
    """A value of JSON or Arrow as CSV would have it; "" for none."""
    if value is None or (isinstance(value, float) and value != value):  # NaN
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)
