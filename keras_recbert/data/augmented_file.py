"""A table of texts, and synthetic examples made of them, as a file."""

import csv
import io
import json
import os
import pathlib
import sys
import time
from typing import NamedTuple

from tqdm import tqdm

from keras_recbert.core.folders import check_file, new_file
from keras_recbert.data.augmentation import TextAugmenter
from keras_recbert.data.columns import choose_text_columns
from keras_recbert.data.rows import JSON_LINES, SEPARATED
from keras_recbert.data.tables import check_table, read_table

FIELDS = ("text", "text_pair")
ADDED = ("source", "augmented")


class Written(NamedTuple):
    """What `augment_file` wrote.

    Attributes:
        num_originals, num_augmented: int.
        seconds: float. All of the time, and that of tagging words in it.
        tagging_seconds: float.
    """

    num_originals: int
    num_augmented: int
    seconds: float
    tagging_seconds: float


def augment_file(
    path,
    output,
    augmentation=None,
    text_column=None,
    tagger=None,
    num_workers=1,
    encoding=None,
    overwrite=False,
):
    """Writes the texts of a table, and then synthetic examples made of them.

    The columns are `text` and, of pairs, `text_pair`; `source`, the row of the original
    in the table, from 1; and `augmented`, true or false. Which columns were chosen, and
    progress, is printed to stderr.

    Args:
        path: str or path. A table as `read_table` reads it.
        output: str or path ending with .jsonl, .ndjson, .csv or .tsv. It appears whole
            or not at all.
        augmentation, tagger, num_workers: as for `augment`.
        text_column: optional str, or list of one or two of them; guessed by default.
        encoding: as for `read_table`.
        overwrite: bool. Whether an output that is there is replaced.

    Returns:
        `Written`.

    Raises:
        FileNotFoundError, FileExistsError, ValueError, OSError: where the table, the
            columns or the output are not as they should be.
        ImportError, FileNotFoundError: as `NltkTagger`.
    """
    start = time.perf_counter()
    check_table(path)
    encode = _encoder(output)
    _check_output(path, output, overwrite)
    table = read_table(path, encoding)
    columns, notes = choose_text_columns(table, text_column)
    _check_number(columns)
    print(*table.notes, *notes, sep="\n", end="\n", file=sys.stderr, flush=True)
    fields = dict(zip(FIELDS, map(table.values, columns), strict=False))
    tagging = time.perf_counter()
    examples = TextAugmenter(fields, augmentation, tagger, num_workers)
    tagging = time.perf_counter() - tagging
    most = len(table) * (1 + examples.augmentation.n_iter)
    progress = tqdm(examples, "Writing", most, unit=" texts", leave=False, disable=None)
    names, number = (*fields, *ADDED), 0
    with new_file(output) as written, open(written, "wb") as file, progress:
        file.write(encode(names, None))
        for number, example in enumerate(progress, 1):  # noqa: B007
            values = (*example.texts, example.row + 1, example.iteration > 0)
            file.write(encode(names, values))
    seconds = time.perf_counter() - start
    return Written(len(table), number - len(table), seconds, tagging)


def _check_output(path, output, overwrite):
    check_file(output)
    if not os.path.lexists(output):
        return
    if os.path.exists(output) and os.path.samefile(path, output):
        raise ValueError(
            f"{output} is the input. Name another file: output (--output)."
        )
    if not overwrite:
        raise FileExistsError(
            f"{output} exists already. Choose another file, or pass overwrite=True "
            "(--overwrite) to replace it."
        )


def _check_number(columns):
    if len(columns) > len(FIELDS) or len(set(columns)) < len(columns):
        raise ValueError(
            "`text_column` must name one column, or two of pairs. Received: "
            f"text_column={list(columns)!r}."
        )


def _encoder(output):
    """What makes bytes of a row, by the ending of the name of the output.

    Returns:
        Function of names and values to bytes; of values None, to those of the header.

    Raises:
        ValueError: for another ending.
    """
    ending = pathlib.Path(output).suffix.lower()
    if ending in JSON_LINES:
        return _json_line
    if ending in SEPARATED:
        return _Separated("\t" if ending == ".tsv" else ",")
    raise ValueError(
        f"{output}: augmented texts are written as {', '.join(JSON_LINES)}, "
        f"{' or '.join(SEPARATED)}. Name the output with one of these endings."
    )


def _json_line(names, values):
    if values is None:
        return b""
    row = dict(zip(names, values, strict=True))
    return f"{json.dumps(row, ensure_ascii=False)}\n".encode()


class _Separated:
    """Rows of CSV or TSV, as RFC 4180 has them but for the line end."""

    def __init__(self, separator):
        self._options = {"delimiter": separator, "lineterminator": "\n"}

    def __call__(self, names, values):
        row = names if values is None else [*values[:-1], json.dumps(values[-1])]
        # Python before 3.13 puts no quotes around a lone carriage return.
        is_bare = any("\r" in str(value) for value in row)
        quoting = csv.QUOTE_ALL if is_bare else csv.QUOTE_MINIMAL
        text = io.StringIO(newline="")
        csv.writer(text, quoting=quoting, **self._options).writerow(row)
        return text.getvalue().encode()
