"""Tables of a report: Markdown for people, CSV for whole texts."""

import csv
import re

from keras_recbert.core.folders import new_file

TEXT_LENGTH = 200  # characters of a text in a table of Markdown
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$#])")


def escape(text, length=TEXT_LENGTH):
    """Makes a text fit for a cell of a Markdown table.

    Args:
        text: str. White space of any kind becomes one space.
        length: int. Longer texts are cut, and end with an ellipsis.

    Returns:
        str in one line, whose punctuation shows as it is.
    """
    text = " ".join(text.split())
    if len(text) > length:
        text = text[: length - 1].rstrip() + "…"
    return _SPECIAL.sub(r"\\\1", text)


def markdown_table(header, rows, num_names=1):
    """A table of Markdown.

    Args:
        header: sequence of str.
        rows: iterable of sequences of str, float or int; floats get three decimals,
            and None, or a float that is not a number, a dash. Strings are Markdown
            already, see `escape`.
        num_names: int. Columns, from the left, that are texts; numbers stand right.

    Returns:
        str of lines, ended by a newline.
    """
    rule = ["---" if column < num_names else "---:" for column in range(len(header))]
    lines = [header, rule, *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value):
    if value is None or value != value:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def write_csv(path, header, rows):
    """Writes a CSV file in UTF-8, texts whole and in quotes.

    Args:
        path: str or path; written under a temporary name, then renamed.
        header: sequence of str.
        rows: iterable of sequences.
    """
    with (
        new_file(path) as written,
        open(written, "w", encoding="utf-8", newline="") as file,
    ):
        # Every text in quotes: Python 3.11 puts none around a lone carriage return.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_text(path, text):
    """Writes a text file in UTF-8, under a temporary name, then renamed."""
    with new_file(path) as written:
        written.write_text(text, encoding="utf-8")
