"""Documents from text files, JSON lines, SQuAD, WikiText and TensorFlow Datasets.

Files are streamed. A reader is given a range, and yields the documents that begin in
it, so that several processes can share a large file.
"""

import bz2
import contextlib
import dataclasses
import gzip
import json
import re
import sys
import typing
import zlib

from keras_recbert.core.lines import MAX_LINE_BYTES, read_lines, skip_line

# A word of more than 100 characters, which is what BERT's tokenizer calls [UNK]:
# no text can name a special token.
UNKNOWN_WORD = "x" * 101
_OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
_HEADING = re.compile(r"^(=(?: =)*) (.+) \1$")
_JOINED = re.compile(r" @([-,.])@ ")


class DocumentError(ValueError):
    """A source that cannot be read as what it should be."""


class Document(typing.NamedTuple):
    """Text of one document.

    Attributes:
        position: int. Where it begins in its source: a byte, or an index. Documents
            come by rising position, whatever the ranges.
        paragraphs: list of str; sentences do not cross their borders.
        bad_lines: int. Lines with bytes that are not UTF-8. Those bytes became U+FFFD,
            which the tokenizer drops.
        long_lines: int. Lines over the bound. Of text their beginning was kept; of
            JSON, that cannot be read in part, nothing.
    """

    position: int
    paragraphs: list[str]
    bad_lines: int = 0
    long_lines: int = 0


@dataclasses.dataclass(frozen=True)
class Source:
    """Something to read documents from.

    Args:
        number: int. Its place among the sources; part of the keys of its documents.
        path: str. A file, or `tfds:` and a name.
        format: str. text, jsonl, squad, wikitext or tfds.
        size: int. Bytes of the file; examples of a data set.
    """

    number: int
    path: str
    format: str
    size: int


@dataclasses.dataclass(frozen=True)
class Reading:
    """How to read.

    Args:
        documents: str. blocks: a text file holds documents with blank lines between
            them; files: it is one document.
        join_lines: bool. With files, whether the lines of a paragraph are joined.
        text_field: str. Field of JSON lines, and of data sets, that holds the text.
        split: str. Split of data sets.
        tfds_data_dir: str or None. Where TensorFlow Datasets keeps its files.
        max_line_bytes: int. The most that is read of a line.
    """

    documents: str = "blocks"
    join_lines: bool = True
    text_field: str = "text"
    split: str = "train"
    tfds_data_dir: str | None = None
    max_line_bytes: int = MAX_LINE_BYTES


def is_splittable(source, reading):
    """Whether readers can share a source."""
    if source.format == "text" and reading.documents == "files":
        return False
    if source.path.endswith(tuple(_OPENERS)):
        return False
    return source.format in ("text", "jsonl", "tfds")


def read_documents(source, reading, start=0, end=sys.maxsize):
    """Reads the documents of a source that belong to a range.

    Args:
        source: `Source`.
        reading: `Reading`.
        start, end: int. Bytes of the file, or indices of examples; for sources that
            are splittable.

    Yields:
        `Document`, by rising position.

    Raises:
        DocumentError: naming file and line, where the source is not as it should be.
    """
    if source.format == "tfds":
        from keras_recbert.data.documents_tfds import read_examples

        yield from read_examples(source.path, reading, start, end)
        return
    with _open(source.path) as file:
        if source.format == "text" and reading.documents == "files":
            yield _read_whole(file, reading)
        elif source.format == "text":
            yield from _read_blocks(file, reading, start, end)
        elif source.format == "jsonl":
            yield from _read_json_lines(file, source.path, reading, start, end)
        elif source.format == "squad":
            yield from _read_squad(file, source.path)
        else:
            yield from _read_wikitext(file, reading)


@contextlib.contextmanager
def _open(path):
    opener = next((_OPENERS[end] for end in _OPENERS if path.endswith(end)), open)
    try:
        with opener(path, "rb") as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DocumentError(f"{path} is damaged: {error}.") from None
    except OSError as error:
        if error.errno is not None:  # such as a disk that fails
            raise
        raise DocumentError(f"{path} is damaged: {error}.") from None


def _decode(lines):
    """Returns lines as str, and how many of them were not UTF-8."""
    try:
        # One call for all; what is split at line feeds cannot grow together.
        return b"".join(lines).decode("utf-8").split("\n"), 0
    except UnicodeDecodeError:
        decoded = [line.decode("utf-8", "replace") for line in lines]
        bad = sum(not _is_utf8(line) for line in lines)
        return "".join(decoded).split("\n"), bad


def _is_utf8(line):
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _document(position, lines, long_lines):
    decoded, bad = _decode(lines)
    return Document(position, [line for line in decoded if line], bad, long_lines)


def _first_line(file, start):
    """Goes to the first line that begins at `start` or later; returns its place."""
    if start == 0:
        return 0
    file.seek(start - 1)
    return start - 1 + skip_line(file)


def _read_blocks(file, reading, start, end):
    """Documents whose blank line before them begins in the range."""
    position = _first_line(file, start)
    owned = start == 0  # whether the last blank line was in the range
    first, lines, long_lines = 0, [], 0
    for line, size in read_lines(file, reading.max_line_bytes):
        here, position = position, position + size
        if line.strip() or size > len(line):
            if owned:
                first = first if lines else here
                lines.append(_ended(line))
                long_lines += size > len(line)
            elif here >= end:
                return
            continue
        if lines:
            yield _document(first, lines, long_lines)
            lines, long_lines = [], 0
        if here >= end:
            return
        owned = True
    if lines:
        yield _document(first, lines, long_lines)


def _ended(line):
    """A line that was cut, or is the last, ended as others are."""
    return line if line.endswith(b"\n") else line + b"\n"


def _read_whole(file, reading):
    paragraphs, lines, bad_lines, long_lines = [], [], 0, 0

    def finish():
        nonlocal bad_lines
        decoded, bad = _decode(lines)
        decoded = [line.strip() for line in decoded if line]
        paragraphs.extend([" ".join(decoded)] if reading.join_lines else decoded)
        bad_lines += bad
        lines.clear()

    for line, size in read_lines(file, reading.max_line_bytes):
        long_lines += size > len(line)
        if line.strip():
            lines.append(_ended(line))
        elif lines:
            finish()
    if lines:
        finish()
    return Document(0, paragraphs, bad_lines, long_lines)


def _read_json_lines(file, path, reading, start, end):
    position = _first_line(file, start)
    for line, size in read_lines(file, reading.max_line_bytes):
        here, position = position, position + size
        if here >= end:
            return
        if size > len(line):
            yield Document(here, [], 0, 1)
            continue
        if not line.strip():
            continue
        (decoded,), bad = _decode([line.rstrip(b"\r\n")])
        try:
            entry = json.loads(decoded.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            # A document would be lost, where bad bytes cost a character; and most
            # often the file was cut off, or has another format.
            why = getattr(error, "msg", error)
            raise DocumentError(
                f"{path}, line {_line_number(path, here)}: not JSON ({why}). Every "
                "line must be one JSON object. Is the file complete? --format names "
                "another format."
            ) from None
        text = entry.get(reading.text_field) if isinstance(entry, dict) else None
        if not isinstance(text, str):
            fields = ", ".join(entry) if isinstance(entry, dict) else "no object"
            raise DocumentError(
                f"{path}, line {_line_number(path, here)}: no text in the field "
                f"{reading.text_field!r}. The line holds: {fields or 'nothing'}. "
                "--text-field names the field."
            )
        yield Document(here, [line for line in text.split("\n") if line], bad)


def _line_number(path, position):
    """Number, from 1, of the line that begins at a byte."""
    number = 1
    with _open(path) as file:
        while position > 0:
            chunk = file.read(min(position, 1 << 20))
            number += chunk.count(b"\n")
            position -= len(chunk)
    return number


def _read_squad(file, path):
    """One document an article, each of its paragraphs once."""
    # One JSON value, so it is read at once: the official files are below 50 MB.
    decoded, bad = _decode(file.readlines())
    try:
        content = json.loads("\n".join(decoded).removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise DocumentError(
            f"{path} is not SQuAD's JSON: {error}. Pass --format jsonl if each line is "
            "a JSON object."
        ) from None
    where = "data"
    try:
        articles = content["data"]
        for index, article in enumerate(articles):
            where = f"data[{index}].paragraphs"
            paragraphs = dict.fromkeys(
                paragraph["context"] for paragraph in article["paragraphs"]
            )
            lines = "\n".join(paragraphs).split("\n")
            yield Document(index, [line for line in lines if line], bad)
            bad = 0  # of the file: counted with the first article
    except (KeyError, TypeError, AttributeError) as error:
        raise DocumentError(
            f"{path} has not SQuAD's layout at {where}: {error!r}. Expected "
            '{"data": [{"paragraphs": [{"context": ...}]}]}. Pass --format jsonl if '
            "each line is a JSON object."
        ) from None


def _read_wikitext(file, reading):
    """One document an article; its marks of tokenisation are undone."""
    position, first, paragraphs, bad_lines, long_lines = 0, 0, [], 0, 0
    after_blank = True  # a broken formula may look like a heading
    for line, size in read_lines(file, reading.max_line_bytes):
        here, position = position, position + size
        long_lines += size > len(line)
        decoded, bad = _decode([line])
        bad_lines += bad
        text = decoded[0].strip()
        heading = _HEADING.match(text) if after_blank else None
        after_blank = not text
        if heading:
            if heading[1] == "=":
                if paragraphs:
                    yield Document(first, paragraphs, bad_lines, long_lines)
                first, paragraphs, bad_lines, long_lines = here, [], 0, 0
            text = heading[2]
        if text:
            text = _JOINED.sub(r"\1", text).replace("<unk>", UNKNOWN_WORD)
            paragraphs.append(text)
    if paragraphs:
        yield Document(first, paragraphs, bad_lines, long_lines)
