"""Rows of a table, read one by one: CSV, TSV, JSON lines, Parquet, plain text."""

import bz2
import contextlib
import copy
import csv
import gzip
import io
import json
import lzma
import pathlib
import zlib

from keras_recbert.core.extras import check_installed
from keras_recbert.core.lines import MAX_LINE_BYTES

COMPRESSIONS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATED = (".csv", ".tsv")
JSON_LINES = (".jsonl", ".ndjson")
TEXT = ".txt"
PARQUET = ".parquet"
BATCH_ROWS = 1024  # of Parquet, read at a time
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
# What is longer is a lost quote or line end, and would fill the memory.
MAX_CHARACTERS = MAX_LINE_BYTES
_JSON_NAMES = {list: "an array", str: "a string", type(None): "null"}
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


class TableRows:
    """A file whose rows are read one by one, in memory that does not grow with it.

    Its kind is the ending of its name: `.csv` (separated by commas; by semicolons or
    tabs if its header has no comma), `.tsv`, `.jsonl` or `.ndjson` (one JSON object a
    line), `.txt` (one text a line, in a column `text`), each also with `.gz`, `.bz2` or
    `.xz` behind; or `.parquet`. CSV and TSV are those of RFC 4180: a field in double
    quotes may hold separators, line ends, and quotes written twice; an empty line is
    no row. Values stay as they are written: `NA` is a text, and `01` is not 1.

    Args:
        path: str or path.
        encoding: str. Encoding of a text file; a byte order mark of UTF-8 is dropped.
        plain_text: bool. Whether `.txt` is a table, too.
        header: optional list of str. Names of the columns of CSV or TSV whose first
            line is a row.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an unknown ending or encoding.
        ImportError: of Parquet, without pyarrow.
    """

    def __init__(self, path, encoding="utf-8", plain_text=True, header=None):
        self.path = pathlib.Path(path)
        self.kind, self.compression = _kind(self.path, plain_text)
        if not self.path.is_file():
            is_folder = " It is a folder." if self.path.is_dir() else ""
            raise FileNotFoundError(f"There is no file {path}.{is_folder}")
        if self.kind == PARQUET:
            check_installed("Reading Parquet", "tables", "pyarrow")
        self.encoding = _known_encoding(encoding)
        self.header = header
        self._text = None

    def read_bytes(self):
        """The whole file, decompressed.

        Raises:
            ValueError: if it is damaged.
        """
        with self._opened("rb") as file:
            return file.read()

    def decoded(self, text):
        """These rows, read from the text of the file that somebody decoded."""
        rows = copy.copy(self)
        rows._text = text
        return rows

    def columns(self):
        """Names of the columns: those of the header, or of the first object of JSON.

        Returns:
            List of str.

        Raises:
            ValueError: if the file is empty, damaged or not what its ending says, or
                names a column twice.
        """
        if self.kind == TEXT:
            return ["text"]
        if self.kind == PARQUET:
            with self._parquet() as file:
                return self._checked_header(1, file.schema_arrow.names)
        if self.kind in JSON_LINES:
            with contextlib.closing(self._json_rows()) as rows:
                first = next(rows, None)
            if first is None:
                raise ValueError(f"{self.path} is empty. Expected an object a line.")
            return list(first[1])
        with contextlib.closing(self._separated_rows()) as rows:
            return next(rows)

    def rows(self):
        """Reads the rows in their order.

        Yields:
            Tuple of where the row is, a str such as `FILE:LINE`, and the row, a dict
            of column to value.

        Raises:
            ValueError: for a broken row and bytes of another encoding, naming file and
                line.
        """
        if self.kind == TEXT:
            for number, line in self._lines("\n"):
                text = line.removesuffix("\n").removesuffix("\r")
                yield f"{self.path}:{number}", {"text": text}
        elif self.kind == PARQUET:
            yield from self._parquet_rows()
        elif self.kind in JSON_LINES:
            yield from self._json_rows()
        else:
            rows = self._separated_rows()
            columns = next(rows)
            for number, fields in rows:
                row = dict(zip(columns, fields, strict=True))
                yield f"{self.path}:{number}", row

    def _lines(self, newline):
        """Lines with their numbers, from 1; `newline` as for `open`."""
        number = 0
        try:
            with self._opened("rt", newline) as file:
                while line := file.readline(MAX_CHARACTERS):
                    number += 1
                    if len(line) == MAX_CHARACTERS:
                        raise ValueError(
                            f"{self.path}:{number}: a line of more than "
                            f"{MAX_CHARACTERS:,} characters. Is a line end lost?"
                        )
                    yield number, line
        except UnicodeDecodeError as error:
            # The lines before are read; some of the piece that cannot be decoded stand
            # before the byte.
            number += 1 + error.object.count(b"\n", 0, error.start)
            raise not_decoded(f"{self.path}:{number}", self.encoding, error) from error

    @contextlib.contextmanager
    def _opened(self, mode, newline=None):
        """The file, decompressed; as text in its encoding, if not yet decoded."""
        if self._text is not None:
            yield io.StringIO(self._text, newline=newline)
            return
        opener = COMPRESSIONS.get(self.compression, open)
        text = {} if mode == "rb" else {"encoding": self.encoding, "newline": newline}
        try:
            with opener(self.path, mode, **text) as file:
                yield file
        except _DAMAGED as error:
            raise self._damaged(error) from error
        except OSError as error:
            if self.compression and error.errno is None:  # as bz2 says it
                raise self._damaged(error) from error
            raise

    def _damaged(self, error):
        return ValueError(f"{self.path}: damaged {self.compression} file: {error}")

    def _separated_rows(self):
        """Yields the header, then tuples of the line that a row begins in, and fields.

        The parser of pandas would fill short rows, cut long ones, and rename columns.
        """
        separator = self.separator()
        lines = self._lines("")
        reader = csv.reader(
            (line for _, line in lines), delimiter=separator, strict=True
        )
        columns, line = self.header, 1
        if columns is not None:
            yield columns
        try:
            with _long_fields():
                for fields in reader:
                    if columns is None and fields:
                        columns = self._checked_header(line, fields)
                        yield columns
                    elif fields:
                        self._check_fields(line, fields, columns, separator)
                        yield line, fields
                    line = reader.line_num + 1
        except csv.Error as error:
            raise self._broken(line, reader.line_num, error) from error
        if columns is None:
            raise ValueError(f"{self.path} is empty. Expected a header.")

    def separator(self):
        """What separates the columns of CSV or TSV: a comma, if the header has one."""
        if self.kind == ".tsv":
            return "\t"
        counts = {}
        for separator in SEPARATORS:
            with contextlib.closing(self._lines("")) as lines, _long_fields():
                reader = csv.reader((line for _, line in lines), delimiter=separator)
                try:
                    counts[separator] = len(next(filter(None, reader), ()))
                except csv.Error:  # told with its line when the rows are read
                    counts[separator] = 0
        return "," if counts[","] > 1 else max(counts, key=counts.get)

    def _checked_header(self, line, names):
        names = [name.strip() for name in names]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"{self.path}:{line}: the header has the column {name!r} twice. "
                    "Name each column once."
                )
        return names

    def _check_fields(self, line, fields, columns, separator):
        if len(fields) != len(columns):
            where = "as in the header" if self.header is None else "without a header"
            raise ValueError(
                f"{self.path}:{line}: expected {len(columns)} fields, separated by "
                f"{SEPARATORS[separator]}, {where} ({', '.join(columns)}); "
                f"found {len(fields)}. Put a text that holds a separator, a quote or a "
                "line end in double quotes."
            )

    def _broken(self, line, last, error):
        """The error of a row from `line` to `last` that is not CSV."""
        if "end of data" in str(error) or "field limit" in str(error):
            return ValueError(
                f'{self.path}:{line}: a double quote (") opens in this row and never '
                'closes. Close it; inside a text in quotes write each quote twice ("").'
            )
        inside = "" if last == line else f", in the row that begins in line {line}"
        return ValueError(
            f"{self.path}:{last}: {error}{inside}. Inside a text in quotes write each "
            'quote twice ("").'
        )

    def _json_rows(self):
        for number, line in self._lines("\n"):
            if not line.strip():
                continue
            where = f"{self.path}:{number}"
            value = read_object(where, line)
            yield where, value

    def _parquet_rows(self):
        with self._parquet() as file:
            number = 0
            for batch in file.iter_batches(batch_size=BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{self.path}, row {number}", row

    @contextlib.contextmanager
    def _parquet(self):
        import pyarrow
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(self.path) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(
                f"{self.path}: not a Parquet file that can be read: {error}"
            ) from error


def as_text(value):
    """A value of JSON or Arrow as CSV would have it; "" for none."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def read_object(where, line):
    """The object of a line of JSON.

    Args:
        where: str such as `FILE:LINE`, for errors.
        line: str.

    Raises:
        ValueError: if the line is not JSON, or no object.
    """
    try:
        value = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(
            f"{where}: not valid JSON: {error}. Expected one object a line."
        ) from error
    if not isinstance(value, dict):
        found = _JSON_NAMES.get(type(value), "a value")
        raise ValueError(
            f'{where}: expected one object a line, such as {{"text": "a text", '
            f'"label": "a label"}}; found {found}: {line.strip()[:40]}.'
        )
    return value


def not_decoded(where, encoding, error):
    """The error of a byte that an encoding does not have; `where` as `FILE:LINE`."""
    name = encoding.removesuffix("-sig")
    return ValueError(
        f"{where}: not valid {name} (byte 0x{error.object[error.start]:02x}). Name the "
        "encoding of the file: encoding (--encoding), such as utf-8, or cp1252 of "
        "Windows; or convert it to UTF-8."
    )


def _kind(path, plain_text):
    """Endings of a path: its kind such as `.csv`, and its compression or ""."""
    *_, kind, compression = ["", "", *(ending.lower() for ending in path.suffixes)]
    if compression not in COMPRESSIONS:
        kind, compression = compression, ""
    lines = (*SEPARATED, *JSON_LINES, *([TEXT] if plain_text else []))
    if kind not in lines and (kind, compression) != (PARQUET, ""):
        raise ValueError(
            f"{path}: the ending of a table says what it is: {', '.join(lines)}, each "
            f"also with {', '.join(COMPRESSIONS)} behind, or {PARQUET}. Save it as one "
            "of these (a spreadsheet: as CSV UTF-8)."
        )
    return kind, compression


def _known_encoding(encoding):
    try:
        "".encode(encoding)
    except LookupError:
        raise ValueError(
            f"Unknown encoding: {encoding!r}. Use one that Python has, such as utf-8, "
            "cp1252, latin-1 or utf-16."
        ) from None
    # As UTF-8, and drops the byte order mark that spreadsheets write.
    return "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding


@contextlib.contextmanager
def _long_fields():
    """Lets a field be longer than 131,072 characters, as a book is."""
    before = csv.field_size_limit(MAX_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)
