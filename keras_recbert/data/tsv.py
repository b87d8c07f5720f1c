"""Texts and labels from tab-separated files, strict about columns and labels."""

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_recbert.lines import (
    MAX_LINE_BYTES,
    check_max_line_bytes,
    decode_line,
    read_lines,
)


@dataclass(frozen=True, eq=False)
class Examples:
    """Texts with their labels, in the order of the file.

    Args:
        texts: one or two equally long lists of str.
        labels: int32 class ids `(num_examples,)`, float32 scores
            `(num_examples,)`, or None for unlabelled text.
        label_names: names of the class ids, or None for scores and for
            unlabelled text.
        notes: what the reader did that its caller should know, such as rows
            it left out.
    """

    texts: tuple[list[str], ...]
    labels: np.ndarray | None = None
    label_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        if len(self.texts) not in (1, 2):
            raise ValueError(
                "`texts` must hold one or two lists of str. "
                f"Received: {len(self.texts)} of them."
            )
        lengths = [len(column) for column in self.texts]
        if self.labels is not None:
            lengths.append(len(self.labels))
        if len(set(lengths)) != 1:
            raise ValueError(
                "`texts` and `labels` must be equally long. "
                f"Received lengths: {lengths} (labels last, if there are any)."
            )

    def __len__(self):
        return len(self.texts[0])

    def take(self, rows: Sequence[int]) -> "Examples":
        """Returns the examples at `rows`, in that order; notes are dropped."""
        return Examples(
            tuple([column[row] for row in rows] for column in self.texts),
            None if self.labels is None else self.labels[np.asarray(rows, int)],
            self.label_names,
        )


def read_tsv(
    path: str | os.PathLike,
    text_columns: str | int | Sequence[str | int],
    label_column: str | int | None = None,
    label_names: Sequence[str] | None = None,
    *,
    integer_labels: bool = False,
    score_range: tuple[float, float] | None = None,
    header: bool = True,
    skip_labels: Sequence[str] = (),
    skip_broken_rows: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Examples:
    """Reads texts and labels from a UTF-8 file of tab-separated columns.

    There is no quoting: a `"` is a character like any other, a tab always
    ends a field and a newline always ends a row. A byte order mark, CRLF line
    ends, empty lines at the end and gzip (by the name's `.gz`) are accepted.
    Texts are kept as they are, spaces included.

    Args:
        path: the file.
        text_columns: one or two columns, each a name from the header or a
            position counted from 0.
        label_column: the column of the label; None reads texts alone.
        label_names: names in the order of their class ids. None infers them:
            the sorted distinct values (by number where all are integers).
            Infer from the training file only and hand its names to the others.
        integer_labels: also accept class ids (`0` to `len(label_names) - 1`)
            where the file has no name.
        score_range: `(low, high)`, both included: labels are numbers, not
            classes. `(-math.inf, math.inf)` takes any finite number.
        header: whether the first line names the columns. Without it columns
            go by position.
        skip_labels: rows with one of these labels are left out, with a note.
        skip_broken_rows: leave out rows with a wrong number of fields, with a
            note, instead of raising.
        max_line_bytes: rows of more bytes are left out, with a note.

    Returns:
        `Examples`; labels are int32 class ids, or float32 with `score_range`.

    Raises:
        ValueError: for a missing column, a wrong number of fields, a bad
            label, invalid UTF-8, an empty file. The message names file and
            line.
    """
    if isinstance(text_columns, (str, int)):
        text_columns = (text_columns,)
    if len(text_columns) not in (1, 2):
        raise ValueError(
            "`text_columns` must name one or two columns. "
            f"Received: text_columns={text_columns!r}."
        )
    if score_range is not None and label_names is not None:
        raise ValueError(
            "Give `label_names` (classes) or `score_range` (numbers), not both. "
            f"Received: label_names={label_names!r}, score_range={score_range!r}."
        )
    lines = _read_lines(path, max_line_bytes)
    columns = lines[0].split("\t")
    first_row = 1 if header else 0
    if header:
        columns = [name.strip() for name in columns]
    text_at = [_find_column(path, columns, header, name) for name in text_columns]
    label_at = None
    if label_column is not None:
        label_at = _find_column(path, columns, header, label_column)

    texts = tuple([] for _ in text_at)
    raw_labels, label_lines = [], []
    skipped, broken, too_long = 0, [], []
    for number, line in enumerate(lines[first_row:], start=1 + first_row):
        if line is None:
            too_long.append(number)
            continue
        fields = line.split("\t")
        if len(fields) != len(columns):
            if skip_broken_rows:
                broken.append(number)
                continue
            raise ValueError(
                f"{path}:{number}: expected {len(columns)} tab-separated fields "
                f"as in line 1, found {len(fields)}. Look for a tab or a newline "
                "inside a text."
            )
        if label_at is not None:
            label = fields[label_at].strip()
            if label in skip_labels:
                skipped += 1
                continue
            raw_labels.append(label)
            label_lines.append(number)
        for column, at in zip(texts, text_at, strict=True):
            column.append(fields[at])
    if not texts[0]:
        raise ValueError(
            f"{path} has no usable row: {len(lines) - first_row} rows"
            f"{' below its header' if header else ''}, {skipped} left out for their "
            f"label, {len(broken)} for their number of fields, {len(too_long)} for "
            f"their length of more than {max_line_bytes:,} bytes."
        )

    notes = []
    if skipped:
        notes.append(
            f"{path}: left out {skipped} rows with label "
            f"{' or '.join(map(repr, skip_labels))}"
        )
    if broken:
        notes.append(
            f"{path}: left out {len(broken)} rows with a wrong number of fields "
            f"(the first at line {broken[0]})"
        )
    if too_long:
        notes.append(
            f"{path}: left out {len(too_long)} rows of more than {max_line_bytes:,} "
            f"bytes (the first at line {too_long[0]})"
        )
    if label_at is None:
        return Examples(texts, notes=tuple(notes))
    if score_range is not None:
        labels = _parse_scores(path, label_lines, raw_labels, score_range)
        return Examples(texts, labels, notes=tuple(notes))
    if label_names is None:
        label_names = _infer_label_names(path, raw_labels)
    label_names = tuple(label_names)
    labels = _parse_classes(path, label_lines, raw_labels, label_names, integer_labels)
    return Examples(texts, labels, label_names, tuple(notes))


def _read_lines(path, max_line_bytes) -> list[str | None]:
    """Reads a text file into lines without their ends; None for one that is too long.

    A stray quote or a lost line feed makes a row of what is not one, so it is not cut.
    """
    check_max_line_bytes(max_line_bytes)
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


def _find_column(path, columns, header, wanted) -> int:
    """Turns a column's name or position into its position."""
    names = ", ".join(map(repr, columns)) if header else "no header"
    found = f"{len(columns)} columns ({names})"
    if isinstance(wanted, str):
        if not header:
            raise ValueError(
                "Without a header columns go by position, counted from 0. "
                f"Received: {wanted!r} for {path}."
            )
        if columns.count(wanted) == 1:
            return columns.index(wanted)
        problem = "twice" if wanted in columns else "not"
        raise ValueError(
            f"{path}:1: column {wanted!r} is {problem} in the header. "
            f"Found {found}, separated by tabs."
        )
    if not 0 <= wanted < len(columns):
        raise ValueError(
            f"{path}:1: there is no column at position {wanted} (counted from 0). "
            f"Found {found}, separated by tabs."
        )
    return wanted


def _infer_label_names(path, raw_labels) -> tuple[str, ...]:
    names = set(raw_labels)
    if len(names) < 2:
        raise ValueError(
            f"{path}: every row has the label {raw_labels[0]!r}, so the classes "
            "cannot be inferred from it. Pass `label_names`."
        )
    if all(name.lstrip("-").isdecimal() for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def _parse_classes(path, lines, raw_labels, label_names, integer_labels):
    ids = {name: index for index, name in enumerate(label_names)}
    if len(ids) != len(label_names):
        raise ValueError(
            f"`label_names` must not repeat a name. Received: {label_names}."
        )
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
