"""Texts and labels from tab-separated files, strict about columns and labels."""

import dataclasses
import gzip
import math
import os
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from keras_recbert.core.checks import check_integer
from keras_recbert.core.lines import (
    MAX_LINE_BYTES,
    decode_line,
    read_lines,
)
from keras_recbert.data.examples import Examples
from keras_recbert.data.json_values import UniqueIds


@dataclasses.dataclass(frozen=True)
class TsvReader:
    """Reads UTF-8 files of tab-separated columns; the `read` of a `TaskSpec`.

    There is no quoting: a `"` is a character like any other, a tab always
    ends a field and a newline always ends a row. A byte order mark, CRLF line
    ends, empty lines at the end and gzip (by the name's `.gz`) are accepted.
    Texts are kept as they are, spaces included.

    Args:
        fields: dict of field to its column: a name from the header, or a position
            counted from 0.
        label: the column of the label; None reads fields alone.
        label_names: names in the order of their class ids; None keeps labels as
            they are written.
        integer_labels: also accept class ids (`0` to `len(label_names) - 1`)
            where the file has no name.
        score_range: `(low, high)`, both included: labels are numbers, not
            classes. `(-math.inf, math.inf)` takes any finite number.
        header: whether the first line names the columns. Without it columns
            go by position.
        id_column: name of a column of ids, which files with labels may lack: ids are
            then numbers of rows. Those of a test split are there, each once.
        test_fields: `fields` of files of test splits, where they differ. These
            have a header, and no label.
        skip_labels: rows with one of these labels are left out, with a note.
        skip_broken_rows: leave out rows with a wrong number of fields, with a
            note, instead of raising. Of a test split all rows are needed.
        max_line_bytes: rows of more bytes are left out, with a note; of a test split
            they are an error.

    Call arguments:
        path: the file.
        split: whose columns the file has.

    Returns:
        `Examples` with the target `label`: int32 class ids, float32 with
        `score_range`, or list of str; without targets for a test split.

    Raises:
        ValueError: for a missing column, a wrong number of fields, a bad
            label, invalid UTF-8, an empty file. The message names file and
            line.
    """

    fields: Mapping[str, str | int]
    label: str | int | None = None
    _: dataclasses.KW_ONLY
    label_names: Sequence[str] | None = None
    integer_labels: bool = False
    score_range: tuple[float, float] | None = None
    header: bool = True
    id_column: str | None = None
    test_fields: Mapping[str, str | int] | None = None
    skip_labels: Sequence[str] = ()
    skip_broken_rows: bool = False
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self):
        if not isinstance(self.fields, Mapping) or not self.fields:
            raise ValueError(
                "`fields` must name a column for each field, such as {'text': "
                f"'sentence'}}. Received: fields={self.fields!r}."
            )
        names = self.label_names
        if self.score_range is not None and names is not None:
            raise ValueError(
                "Give `label_names` (classes) or `score_range` (numbers), not both. "
                f"Received: label_names={names!r}, score_range={self.score_range!r}."
            )
        if names is not None and len(set(names)) != len(names):
            raise ValueError(
                f"`label_names` must not repeat a name. Received: {names}."
            )

    def __call__(self, path: str | os.PathLike, split: str = "train") -> Examples:
        is_test = split.startswith("test")
        fields = self.fields
        header = self.header
        if is_test and self.test_fields is not None:
            fields, header = self.test_fields, True
        lines = _read_lines(path, self.max_line_bytes)
        columns = lines[0].split("\t")
        if header:
            columns = [name.strip() for name in columns]
        found = _Columns(path, columns, header)
        field_at = {name: found.position(column) for name, column in fields.items()}
        label_at = id_at = None
        if self.label is not None and not is_test:
            label_at = found.position(self.label)
        if header and self.id_column in columns or is_test and self.id_column:
            id_at = found.position(self.id_column)
        first_row = 1 if header else 0
        rows = self._rows(path, lines, len(columns), first_row, label_at, is_test)
        ids = rows.numbers if id_at is None else [row[id_at] for row in rows.fields]
        if is_test:
            unique = UniqueIds()
            for line, id in zip(rows.lines, ids, strict=True):
                unique.add(f"{path}:{line}", id)
        targets = None
        if label_at is not None:
            labels = [row[label_at].strip() for row in rows.fields]
            targets = {"label": self._labels(path, rows.lines, labels)}
        return Examples(
            {name: [row[at] for row in rows.fields] for name, at in field_at.items()},
            targets,
            ids,
            tuple(rows.notes),
        )

    def _rows(self, path, lines, num_columns, first_row, label_at, is_test):
        """The rows that are read, and notes on those that are not."""
        rows = _Rows()
        skipped, broken, too_long = 0, [], []
        for index, line in enumerate(lines[first_row:], start=first_row):
            if line is None:
                if is_test:
                    raise ValueError(
                        f"{path}:{index + 1}: a row of more than "
                        f"{self.max_line_bytes:,} bytes. Each row of a test file is "
                        "predicted; `max_line_bytes` reads longer ones."
                    )
                too_long.append(index + 1)
                continue
            fields = line.split("\t")
            if len(fields) != num_columns:
                if self.skip_broken_rows and not is_test:
                    broken.append(index + 1)
                    continue
                raise ValueError(
                    f"{path}:{index + 1}: expected {num_columns} tab-separated fields "
                    f"as in line 1, found {len(fields)}. Look for a tab or a newline "
                    "inside a text."
                )
            if label_at is not None and fields[label_at].strip() in self.skip_labels:
                skipped += 1
                continue
            rows.fields.append(fields)
            rows.lines.append(index + 1)
            rows.numbers.append(str(index + 1 - first_row))
        if not rows.fields:
            raise ValueError(
                f"{path} has no usable row: {len(lines) - first_row} rows"
                f"{' below its header' if first_row else ''}, {skipped} left out for "
                f"their label, {len(broken)} for their number of fields, "
                f"{len(too_long)} for their length of more than "
                f"{self.max_line_bytes:,} bytes."
            )
        if skipped:
            rows.notes.append(
                f"{path}: left out {skipped} rows with label "
                f"{' or '.join(map(repr, self.skip_labels))}"
            )
        if broken:
            rows.notes.append(
                f"{path}: left out {len(broken)} rows with a wrong number of fields "
                f"(the first at line {broken[0]})"
            )
        if too_long:
            rows.notes.append(
                f"{path}: left out {len(too_long)} rows of more than "
                f"{self.max_line_bytes:,} bytes (the first at line {too_long[0]})"
            )
        return rows

    def _labels(self, path, lines, labels):
        if self.score_range is not None:
            return _parse_scores(path, lines, labels, self.score_range)
        if self.label_names is None:
            return labels
        names = tuple(self.label_names)
        return _parse_classes(path, lines, labels, names, self.integer_labels)


@dataclasses.dataclass
class _Rows:
    """Rows of a file: their fields, lines, numbers without the header, and notes."""

    fields: list[list[str]] = dataclasses.field(default_factory=list)
    lines: list[int] = dataclasses.field(default_factory=list)
    numbers: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class _Columns:
    """Names of the columns of a file, or their number without a header."""

    path: str | os.PathLike
    names: list[str]
    header: bool

    def position(self, wanted):
        """Position of a column, from its name or position."""
        names = ", ".join(map(repr, self.names)) if self.header else "no header"
        found = f"Found {len(self.names)} columns ({names}), separated by tabs."
        if isinstance(wanted, str):
            if not self.header:
                raise ValueError(
                    "Without a header columns go by position, counted from 0. "
                    f"Received: {wanted!r} for {self.path}."
                )
            if self.names.count(wanted) == 1:
                return self.names.index(wanted)
            problem = "twice" if wanted in self.names else "not"
            raise ValueError(
                f"{self.path}:1: column {wanted!r} is {problem} in the header. {found}"
            )
        if not 0 <= wanted < len(self.names):
            raise ValueError(
                f"{self.path}:1: there is no column at position {wanted} (counted "
                f"from 0). {found}"
            )
        return wanted


def _read_lines(path, max_line_bytes) -> list[str | None]:
    """Reads a text file into lines without their ends; None for one that is too long.

    A stray quote or a lost line feed makes a row of what is not one, so it is not cut.
    """
    check_integer(max_line_bytes=max_line_bytes)
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    lines, num_bytes = [], 0
    try:
        with opener(path, "rb") as file:
            for number, (line, size) in enumerate(read_lines(file, max_line_bytes), 1):
                num_bytes += size
                is_long = size > len(line)
                lines.append(None if is_long else decode_line(line, path, number))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from error
    while lines and lines[-1] is not None and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty ({num_bytes} bytes, no text).")
    if lines[0] is None:
        raise ValueError(
            f"{path}:1: the first line has more than {max_line_bytes:,} bytes. Is this "
            "a file of tab-separated columns? `max_line_bytes` reads longer lines."
        )
    return lines


def _parse_classes(path, lines, raw_labels, label_names, integer_labels):
    ids = {name: index for index, name in enumerate(label_names)}
    valid = ", ".join(map(repr, label_names))
    if integer_labels:
        for index in range(len(label_names)):
            ids.setdefault(str(index), index)
        valid += f", or 0 to {len(label_names) - 1}"
    for line, label in zip(lines, raw_labels, strict=True):
        if label not in ids:
            raise ValueError(
                f"{path}:{line}: {label!r} is not a valid label. Valid: {valid}."
            )
    return np.array([ids[label] for label in raw_labels], np.int32)


def _parse_scores(path, lines, raw_labels, score_range):
    low, high = score_range
    scores = np.empty(len(raw_labels), np.float32)
    for row, (line, label) in enumerate(zip(lines, raw_labels, strict=True)):
        try:
            score = float(label)
        except ValueError:
            score = math.nan
        # Written so that NaN and infinities fail too.
        if not (low <= score <= high and math.isfinite(score)):
            raise ValueError(
                f"{path}:{line}: {label!r} is not a valid score. "
                f"Valid: a number from {low:g} to {high:g}."
            )
        scores[row] = score
    return scores
