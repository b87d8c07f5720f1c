"""Rows of a file of texts, read one by one: tables, JSON lines, plain text."""

import bz2
import contextlib
import csv
import gzip
import json
import lzma
import pathlib
import zlib

from keras_recbert.extras import check_installed
from keras_recbert.lines import MAX_LINE_BYTES

COMPRESSIONS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATED = (".csv", ".tsv")
JSON_LINES = (".jsonl", ".ndjson")
TEXT = ".txt"
PARQUET = ".parquet"
BATCH_ROWS = 1024  # of Parquet, read at a time
# What is longer is a lost quote or line end, and would fill the memory.
MAX_CHARACTERS = MAX_LINE_BYTES
# Names of the columns of texts, where none is named; the first that are all there.
USUAL_NAMES = (
    ("text", "text_pair"),
    ("text",),
    ("sentence1", "sentence2"),
    ("sentence",),
    ("premise", "hypothesis"),
    ("question1", "question2"),
)
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError)


class InputRows:
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

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for an unknown ending or encoding.
        ImportError: of Parquet, without pyarrow.
    """

    def __init__(self, path, encoding="utf-8"):
        self.path = pathlib.Path(path)
        endings = [ending.lower() for ending in self.path.suffixes]
        compression = (
            endings.pop() if endings[-1:] and endings[-1] in COMPRESSIONS else ""
        )
        self.kind = endings[-1] if endings else ""
        lines = (*SEPARATED, *JSON_LINES, TEXT)
        if self.kind not in lines and (self.kind, compression) != (PARQUET, ""):
            raise ValueError(
                f"{path}: the ending of a file of texts says what it is: "
                f"{', '.join(lines)}, each also with {', '.join(COMPRESSIONS)} behind, "
                f"or {PARQUET}. Rename it, or save it as one of these."
            )
        if not self.path.is_file():
            is_folder = " It is a folder." if self.path.is_dir() else ""
            raise FileNotFoundError(f"There is no file {path}.{is_folder}")
        if self.kind == PARQUET:
            check_installed("Reading Parquet", "tables", "pyarrow")
        self.encoding = _known_encoding(encoding)
        self._open = COMPRESSIONS.get(compression, open)

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
            with self._open(
                self.path, "rt", encoding=self.encoding, newline=newline
            ) as file:
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
            raise ValueError(
                f"{self.path}:{number}: not valid {self.encoding} (byte "
                f"0x{error.object[error.start]:02x}). Name the encoding of the file: "
                "encoding (--encoding), such as cp1252 of Windows, or convert it to "
                "UTF-8."
            ) from error
        except _DAMAGED as error:
            raise ValueError(f"{self.path}: damaged file: {error}") from error

    def _separated_rows(self):
        """Yields the header, then tuples of the line that a row begins in, and fields.

        The parser of pandas would fill short rows, cut long ones, and rename columns.
        """
        separator = "\t" if self.kind == ".tsv" else self._separator()
        lines = self._lines("")
        reader = csv.reader(
            (line for _, line in lines), delimiter=separator, strict=True
        )
        columns, line = None, 1
        try:
            with _long_fields():
                for fields in reader:
                    if columns is None and fields:
                        columns = self._checked_header(line, fields)
                        yield columns
                    elif fields:
                        self._check_fields(line, fields, columns)
                        yield line, fields
                    line = reader.line_num + 1
        except csv.Error as error:
            raise self._broken(line, reader.line_num, error) from error
        if columns is None:
            raise ValueError(f"{self.path} is empty. Expected a header.")

    def _separator(self):
        """What separates the columns of a CSV: a comma, if its first line has one."""
        with contextlib.closing(self._lines("")) as lines:
            _, line = next(lines, (1, ""))
        counts = {separator: line.count(separator) for separator in ",;\t"}
        return "," if counts[","] else max(counts, key=counts.get)

    def _checked_header(self, line, names):
        names = [name.strip() for name in names]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"{self.path}:{line}: the header has the column {name!r} twice. "
                    "Name each column once."
                )
        return names

    def _check_fields(self, line, fields, columns):
        if len(fields) != len(columns):
            raise ValueError(
                f"{self.path}:{line}: expected {len(columns)} fields as in the header "
                f"({', '.join(columns)}), found {len(fields)}. Put a text that holds a "
                "separator, a quote or a line end in double quotes."
            )

    def _broken(self, line, last, error):
        """The error of a row from `line` to `last` that is not CSV."""
        if "end of data" in str(error) or "field limit" in str(error):
            return ValueError(
                f'{self.path}:{line}: a double quote (") opens in this row and never '
                'closes. Close it; inside a text in quotes write each quote twice ("").'
            )
        return ValueError(
            f"{self.path}:{last}: {error}. Inside a text in quotes write each quote "
            'twice ("").'
        )

    def _json_rows(self):
        for number, line in self._lines("\n"):
            if not line.strip():
                continue
            where = f"{self.path}:{number}"
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(
                    f"{where}: not valid JSON: {error}. Expected one object a line."
                ) from error
            if not isinstance(value, dict):
                raise ValueError(
                    f'{where}: expected one object a line, such as {{"text": "a text"}}'
                    f". Found {line.strip()[:40]}."
                )
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
        except pyarrow.ArrowException as error:
            raise ValueError(
                f"{self.path}: not a Parquet file that can be read: {error}"
            ) from error


def choose_text_columns(path, columns, wanted=()):
    """Says which columns hold the texts.

    Args:
        path: path of the file, for errors.
        columns: list of str, those of the file.
        wanted: sequence of one or two str; if it is empty, the only column, or columns
            with usual names: `text`, `text` and `text_pair`, `sentence`, ...

    Returns:
        Tuple of one or two str.

    Raises:
        ValueError: if a column is not there, or it is not clear which to take; lists
            the columns.
    """
    found = f"{path} has the columns {', '.join(map(repr, columns))}"
    wanted = tuple(wanted)
    if len(wanted) > 2:
        raise ValueError(
            "An example has one text, or two: text_column (--text-column) takes one or "
            f"two names. Received: {', '.join(wanted)}."
        )
    for name in wanted:
        if name not in columns:
            raise ValueError(f"There is no column {name!r}: {found}.")
    if wanted:
        return wanted
    if len(columns) == 1:
        return tuple(columns)
    for names in USUAL_NAMES:
        if all(name in columns for name in names):
            return names
    raise ValueError(
        f"{found}. Name the one, or the two, that hold the texts: text_column "
        "(--text-column)."
    )


def as_text(value):
    """A value of JSON or Arrow as CSV would have it; "" for none."""
    if isinstance(value, str):
        return value
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


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
