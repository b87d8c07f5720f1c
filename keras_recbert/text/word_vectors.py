"""Files of word vectors: word2vec binary, GloVe's and fastText's text."""

import dataclasses
import gzip
import hashlib
import itertools
import os
import re
import zlib
from typing import ClassVar

import numpy as np

from keras_recbert.core.checks import check_positive
from keras_recbert.core.lines import decode_line

_CHUNK = 1 << 20
_CHECKED = 10_000  # words
_HEADER = re.compile(rb"(\d+)[ \t](\d+)\s*")
# Bytes that stand in no text, and in nearly every vector of floats.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1b]")
_MAX_WORD_BYTES = 1 << 16
_SPACING = "values must be numbers with one space between them."


@dataclasses.dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Args:
        words: tuple of str, each once.
        vectors: float32 array `(num_words, vector_dim)`, in the order of the words.
        source: str. Path of the file.

    Attributes:
        channels: str. How `keras_recbert.layers.word_embeddings.WordEmbeddings` uses
            them unless told otherwise.
    """

    # Kim 2014, section 3.1: given vectors, as they are and trained.
    channels: ClassVar[str] = "multichannel"

    words: tuple
    vectors: np.ndarray
    source: str = "memory"

    @property
    def vector_dim(self):
        """Width of the vectors."""
        return self.vectors.shape[1]

    def checksum(self):
        """sha256 checksum of words and vectors, as hexadecimal digits."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        digest.update(np.ascontiguousarray(self.vectors, "<f4").tobytes())
        return digest.hexdigest()


def read_word_vectors(path, words=None, max_words=None, report=print):
    """Reads the vectors of words; of a file of gigabytes only what is asked for.

    Formats, by their content: text with a vector a line, as GloVe writes it, or below a
    header of two numbers, as fastText (`.vec`) and word2vec do; word2vec's binary.
    What ends in `.gz` is decompressed. Files have the most frequent words first. A word
    may hold spaces, as some of GloVe 840B do.

    Args:
        path: str or path.
        words: iterable of str, those to read; None for all.
        max_words: int. Reads the first ones of the file only.
        report: function of a str. Takes a note on words that stand there twice; the
            first vector counts.

    Returns:
        `WordVectors`, in the order of the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line has another number of values, a value is no finite number,
            a word is not UTF-8, or the file ends early; names file and line (of a
            binary file the number of the word). If none of `words` is there.
    """
    path = os.fspath(path)
    if max_words is not None:
        check_positive(max_words=max_words)
    wanted = None if words is None else set(words)
    most = max_words if wanted is None else min(len(wanted), max_words or len(wanted))
    found, repeated = {}, []
    for place, word, values in _records(path):
        if wanted is not None and word not in wanted:
            continue
        if word in found:
            repeated.append((word, place))
            continue
        found[word] = _numbers(values, place)
        if len(found) == most:
            break
    if not found:
        raise ValueError(
            f"{path} has a vector for none of the {len(wanted or ())} words. Is it of "
            "another language, or are its words cased where yours are lower-case "
            "(lowercase=False, --no-lowercase)?"
        )
    if repeated:
        word, place = repeated[0]
        report(
            f"{path}: {len(repeated):,} words stand there more than once, the first is "
            f"{word!r} ({place}). The first vector of each counts."
        )
    return WordVectors(tuple(found), np.stack(list(found.values())), path)


def words_of_vectors(path):
    """Yields the words of a file of vectors, in its order, as they stand there.

    Args:
        path: str or path.

    Raises:
        FileNotFoundError, ValueError: as `read_word_vectors`; values are not read.
    """
    for _, word, _ in _records(os.fspath(path)):
        yield word


def check_word_vectors(path):
    """Raises what is wrong with the first vectors of a file; returns their width.

    Before long work: of the first 10,000 lines, or of all that a smaller file has.

    Raises:
        FileNotFoundError, ValueError: as `read_word_vectors`; of the values, those of
            the first vector are read.
    """
    for _ in itertools.islice(_records(os.fspath(path)), _CHECKED):
        pass
    return read_word_vectors(path, max_words=1).vector_dim


def _records(path):
    """Yields place, word and unread values of each vector of a file."""
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder. Name a file of word vectors in it.")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"There is no file of word vectors at {path}.")
    is_gzip = path.endswith(".gz")
    try:
        with gzip.open(path) if is_gzip else open(path, "rb") as file:
            first = file.readline(_CHUNK)
            if not first:
                raise ValueError(f"{path} is empty. Expected word vectors.")
            header = _HEADER.fullmatch(first)
            if header is None:
                yield from _text_records(path, file, first)
                return
            count, width = map(int, header.groups())
            if not count or not width:
                raise ValueError(
                    f"{path}:1: the header must be the number of words and the width "
                    f"of their vectors, both above 0. Received: {first.decode()!r}."
                )
            begin = file.read(_CHUNK)
            if _BINARY.search(begin):
                yield from _binary_records(path, file, begin, count, width)
            else:
                file.seek(len(first))
                yield from _text_records(path, file, b"", count, width)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no whole gzip file: {error}.") from None


def _text_records(path, file, first, count=None, width=None):
    """Vectors of a file of text; `first` is its first line where there is no header."""
    number = begin = 1 if count is None else 2
    for number, line in enumerate(_chained(first, file), start=begin):
        place = f"{path}:{number}"
        line = line.rstrip(b" \t\r\n")
        if not line:
            raise ValueError(f"{place}: the line is empty. Remove it.")
        if width is None:
            width = _width_of(line, place)
        word, *values = line.replace(b"\t", b" ").rsplit(b" ", width)
        if len(values) != width or not word:
            raise ValueError(
                f"{place}: expected a word and {width} values, as in the lines before. "
                f"Received {len(values) + bool(word)} fields: {line[:60]!r} ..."
            )
        *_, last = word.rpartition(b" ")
        if not last:
            raise ValueError(f"{place}: {_SPACING} Received: {line[:60]!r}.")
        if last != word and _is_number(last):
            raise ValueError(
                f"{place}: expected a word and {width} values, as in the lines before. "
                f"Received more: {line[:60]!r} ..."
            )
        yield place, decode_line(word, path, number), values
    if count is not None and number != count + 1:
        raise ValueError(
            f"{path}: the header announces {count:,} words, and the file has "
            f"{number - 1:,} lines below it. Is it whole? Copy it again."
        )


def _chained(first, file):
    if first:
        yield first
    yield from file


def _width_of(line, place):
    """Values of the first line: the numbers behind the word, which may be one too."""
    fields = line.replace(b"\t", b" ").split(b" ")
    width = 0
    while width < len(fields) - 1 and _is_number(fields[-1 - width]):
        width += 1
    if not width:
        raise ValueError(
            f"{place}: expected a word and its values, such as 'film 0.1 -0.2', or a "
            f"header of two whole numbers. Received: {line[:60]!r}. Word vectors are "
            "word2vec's (.bin), GloVe's (.txt) or fastText's (.vec)."
        )
    return width


def _binary_records(path, file, held, count, width):
    """Vectors of word2vec's binary: the word, a space, and 32-bit floats."""
    size, begin = 4 * width, 0
    for number in range(1, count + 1):
        place = f"{path}, word {number} of {count}"
        while (space := held.find(b" ", begin)) < 0 or len(held) < space + 1 + size:
            more = file.read(max(_CHUNK, size))
            if not more or (space < 0 and len(held) - begin > _MAX_WORD_BYTES):
                raise ValueError(
                    f"{place}: the file ends inside it, or its vectors are not "
                    f"{width} floats of 32 bits. Copy it again."
                )
            held, begin = held[begin:] + more, 0
        word = held[begin:space].removeprefix(b"\n")
        begin = space + 1 + size
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{place}: {word[:40]!r} is not valid UTF-8 ({error.reason}). Is it "
                "word2vec's binary format, and in UTF-8?"
            ) from None
        yield place, text, held[space + 1 : begin]
    rest = held[begin:].strip()
    while not rest and (more := file.read(_CHUNK)):
        rest = more.strip()
    if rest:
        raise ValueError(
            f"{path}: the header announces {count:,} words of {width} values, and the "
            f"file has more behind the last: {rest[:40]!r}. Correct the header, or "
            "copy the file again."
        )


def _numbers(values, place):
    """Values of a line, or bytes of a binary file, as float32."""
    if isinstance(values, bytes):
        numbers = np.frombuffer(values, "<f4").astype(np.float32)
    else:
        try:
            with np.errstate(over="ignore"):  # what overflows is told below
                numbers = np.array(list(map(float, values)), np.float32)
        except ValueError:
            wrong = next(value for value in values if not _is_number(value))
            raise ValueError(f"{place}: {_SPACING} Received: {wrong[:40]!r}.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{place}: values must be finite. Received: {numbers}.")
    return numbers


def _is_number(field):
    try:
        float(field)
    except ValueError:
        return False
    return True
