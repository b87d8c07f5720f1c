"""Predictions for the rows of a file of any size; resumes after a stop."""

import concurrent.futures
import contextlib
import csv
import dataclasses
import hashlib
import io
import itertools
import json
import math
import os
import pathlib
import sys
import time

from tqdm import tqdm

from keras_recbert.core.checks import check_integer
from keras_recbert.data.rows import JSON_LINES, SEPARATED, TableRows, as_text
from keras_recbert.serving.resumable_file import check_output, resumable_file
from keras_recbert.serving.text_columns import choose_text_columns, text_columns_of

ADDED = ("prediction", "score")
# Rows that are read, sorted, answered and written together: the same after a stop, so
# that batches, and with them the last digits of the scores, are the same.
CHUNK_ROWS = 1024
DIGITS = 6  # of a score, behind the point


def predict_file(
    model,
    load,
    input_path,
    output_path,
    text_columns=(),
    batch_size=32,
    encoding="utf-8",
    overwrite=False,
    head=None,
):
    """Writes the rows of a file, in their order, with a prediction for each.

    The columns of the output are those of the input, then `prediction` and `score`: the
    probability of the prediction, or of a regressor the score in both. The whole input
    is checked before the first row is answered. Memory does not grow with the file.
    After an error or a kill the same call resumes, and writes the same bytes as one
    that was never stopped. Standard error gets a line at the start and one at the end,
    and on a terminal a progress bar.

    Args:
        model: str or path of the model.
        load: function without arguments that loads it; returns a
            `keras_recbert.serving.answers.Predictor`.
        input_path: str or path, see `TableRows`.
        output_path: str or path: `.csv`, `.tsv`, `.jsonl` or `.ndjson`.
        text_columns: sequence of one or two str, see `choose_text_columns`.
        batch_size: int. Rows the model answers at a time.
        encoding: str. Encoding of the input; the output is UTF-8.
        overwrite: bool. Whether an output that is there, or was begun from something
            else, is replaced.
        head: str. The head that answers, where the model has several; `load` knows it.

    Returns:
        int. Number of rows.

    Raises:
        FileNotFoundError: if there is no such input or model.
        FileExistsError: if the output is there, and `overwrite` is False.
        ValueError: if an argument or a row of the input is not what it should be, or
            what was begun was made from something else; naming file and line.
        OSError: if the output cannot be written, such as where the disk is full.
    """
    check_integer(batch_size=batch_size)
    source = TableRows(input_path, encoding)
    encoder = _encoder(output_path)
    check_output(output_path, overwrite)
    if os.path.exists(output_path) and os.path.samefile(input_path, output_path):
        raise ValueError(f"{input_path} is input and output. Choose another output.")
    columns = source.columns()
    text_columns = choose_text_columns(input_path, columns, text_columns)
    files = _model_files(pathlib.Path(model))
    predictor = load()
    check_num_texts(model, len(predictor.fields), text_columns, predictor.heads)
    num_rows, columns = _check_rows(source, columns, text_columns, predictor)
    job = _Job(source, text_columns, num_rows, columns)
    made_from = {
        "input": _checksum([source.path]),
        "model": _checksum(files),
        **({} if head is None else {"head": head}),
        "text column": list(text_columns),
        "batch size": batch_size,
        "encoding": source.encoding,
        "number of rows in a chunk": CHUNK_ROWS,
    }
    with (
        resumable_file(output_path, made_from, overwrite) as output,
        _reporting(job, output, output_path) as progress,
    ):
        _write(job, predictor, batch_size, encoder, output, progress)
    return job.num_rows


@dataclasses.dataclass(frozen=True)
class _Job:
    """What is to be answered: rows of a file, of which each column is known."""

    source: TableRows
    text_columns: tuple[str, ...]
    num_rows: int
    columns: tuple[str, ...]


def _check_rows(source, columns, text_columns, predictor):
    """Reads every row, so that one that is broken is told before work starts.

    Returns:
        Tuple of the number of rows, and the names of all columns.
    """
    found = dict.fromkeys(columns)
    check_added(source.path, found)
    num_rows = 0
    progress = tqdm(
        source.rows(),
        f"Checking {source.path}",
        unit=" rows",
        leave=False,
        disable=None,
    )
    for where, row in progress:
        num_rows += 1
        text_columns_of(predictor, text_columns, [(where, row)])
        if row.keys() != found.keys():  # of JSON lines, each may have others
            found.update(dict.fromkeys(row))
            check_added(where, found)
    return num_rows, tuple(found)


def check_added(where, columns):
    """Raises `ValueError` for a column that the output adds."""
    for name in ADDED:
        if name in columns:
            raise ValueError(
                f"{where} has a column {name!r} already, which the output adds. Rename "
                "that column."
            )


def check_num_texts(model, num_texts, text_columns, heads=()):
    """Raises `ValueError` unless a model takes as many texts as there are columns.

    Args:
        model: path, for errors.
        num_texts: int. Texts an example of the model has.
        text_columns: sequence of str.
        heads: names of the heads that answer together, where there are several.
    """
    if heads:
        raise ValueError(
            "A file needs one head, which gives its predictions. The model at "
            f"{model} has several: --head {' or '.join(heads)}."
        )
    if num_texts != len(text_columns):
        raise ValueError(
            f"The model at {model} takes {num_texts} text(s) an example, and the texts "
            f"are in {len(text_columns)} column(s): {', '.join(text_columns)}. Name "
            f"{num_texts}: text_column (--text-column)."
        )


@contextlib.contextmanager
def _reporting(job, output, output_path):
    """Prints how it starts and ends; gives a progress bar, on a terminal."""
    rows, texts = f"{job.num_rows:,} rows", " and ".join(job.text_columns)
    done, start = output.num_rows, time.perf_counter()
    from_row = f", resuming at row {done + 1:,}" if done else ""
    print(
        f"Predicting {job.source.path}: {rows}, texts in {texts}{from_row}.",
        file=sys.stderr,
        flush=True,
    )
    with tqdm(
        total=job.num_rows, initial=done, unit=" rows", leave=False, disable=None
    ) as progress:
        yield progress
    seconds = time.perf_counter() - start
    speed = (job.num_rows - done) / max(seconds, 1e-9)
    print(
        f"Wrote {output_path}: {rows}; {seconds:.0f} s, {speed:,.0f} rows/s.",
        file=sys.stderr,
        flush=True,
    )


def _write(job, predictor, batch_size, encoder, output, progress):
    """Answers the rows that are left, chunk by chunk."""
    if not output.num_bytes:
        output.append(encoder.header([*job.columns, *ADDED]), 0)
    # No more than were checked, should somebody append to the file meanwhile.
    rows = itertools.islice(job.source.rows(), output.num_rows, job.num_rows)
    while read := list(itertools.islice(rows, CHUNK_ROWS)):
        texts = text_columns_of(predictor, job.text_columns, read)
        answers = _answer(predictor, texts, batch_size, progress)
        chunk = [row for _, row in read]
        for row, answer in zip(chunk, answers, strict=True):
            row.update(zip(ADDED, answer, strict=True))
        output.append(encoder.rows([*job.columns, *ADDED], chunk), len(chunk))
    if output.num_rows != job.num_rows:
        raise ValueError(
            f"{job.source.path} was cut while it was read: {job.num_rows:,} rows "
            f"became {output.num_rows:,}. Start anew with overwrite=True (--overwrite)."
        )


def _answer(predictor, texts, batch_size, progress):
    """Predictions and scores of a chunk, in its order; short texts with short ones."""
    lengths = [sum(map(len, example)) for example in zip(*texts, strict=True)]
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    answers = [None] * len(order)
    batches = [
        order[start : start + batch_size] for start in range(0, len(order), batch_size)
    ]

    def ask(batch):
        return predictor([[column[row] for row in batch] for column in texts])

    with concurrent.futures.ThreadPoolExecutor(predictor.num_threads) as threads:
        for batch, answered in zip(batches, threads.map(ask, batches), strict=True):
            for row, (prediction, score) in zip(batch, answered, strict=True):
                answers[row] = added_values(prediction, score, texts[0][row])
            progress.update(len(batch))
    return answers


def added_values(prediction, score, text):
    """What a row gets for `ADDED`.

    Args:
        prediction: str, or None of a regressor.
        score: float.
        text: str, for the error.

    Raises:
        ValueError: if the score is no finite number.
    """
    if not math.isfinite(score):
        raise ValueError(
            f"The model answers {score} to {text[:80]!r}. Did its training diverge? "
            "Train again with a lower learning rate."
        )
    score = round(score, DIGITS)
    return (score if prediction is None else prediction, score)


def _encoder(path):
    """What makes bytes of rows, by the ending of the name of the output."""
    ending = pathlib.Path(path).suffix.lower()
    if ending in JSON_LINES:
        return JsonLines()
    if ending in SEPARATED:
        return _Separated("\t" if ending == ".tsv" else ",")
    raise ValueError(
        f"{path}: predictions are written as {', '.join((*SEPARATED, *JSON_LINES))}, "
        "which can be resumed after a stop. Name the output with one of these endings."
    )


class JsonLines:
    """An object a line, with the values of the input."""

    def header(self, columns):
        return b""

    def rows(self, columns, rows):
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
        # Half of a surrogate pair has no UTF-8; JSON writes it as \ud83d, too.
        return "".join(f"{line}\n" for line in lines).encode(
            "utf-8", "backslashreplace"
        )


class _Separated:
    """CSV or TSV, as RFC 4180 has them but for the line end."""

    def __init__(self, separator):
        self.separator = separator

    def header(self, columns):
        return self._encoded([columns])

    def rows(self, columns, rows):
        return self._encoded(
            [as_text(row.get(name)) for name in columns] for row in rows
        )

    def _encoded(self, rows):
        text = io.StringIO(newline="")
        options = {"delimiter": self.separator, "lineterminator": "\n"}
        plain = csv.writer(text, **options)
        quoted = csv.writer(text, quoting=csv.QUOTE_ALL, **options)
        for row in rows:
            # Python before 3.13 puts no quotes around a lone carriage return.
            writer = quoted if any("\r" in field for field in row) else plain
            writer.writerow(row)
        return text.getvalue().encode("utf-8", "backslashreplace")


def _model_files(path):
    """The files that a model consists of, in a fixed order."""
    if path.is_file():
        return [path]
    files = path.rglob("*") if (path / "saved_model.pb").is_file() else path.glob("*")
    files = sorted(file for file in files if file.is_file())
    if not files:
        raise FileNotFoundError(
            f"There is no model at {path}. Expected a SavedModel, such as `recbert "
            "export MODEL FOLDER` writes, a model.keras or a preset."
        )
    return files


def _checksum(files):
    """SHA-256 of files, as hexadecimal digits."""
    checksum = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            checksum.update(hashlib.file_digest(file, "sha256").digest())
    return checksum.hexdigest()
