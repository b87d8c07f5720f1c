"""Files of word vectors: each format gives the same words and numbers."""

import gzip

import numpy as np
import pytest
from word_vector_files import VECTORS, WORDS, binary, text, write

from keras_recbert.text import read_word_vectors, word_vectors
from keras_recbert.text.word_vectors import check_word_vectors, words_of_vectors


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", text()),
        ("glove.txt.gz", text()),
        ("windows.txt", text(end="\r\n")),
        ("tabs.txt", text().replace(b" ", b"\t")),
        ("wiki.vec", text(header=True, end=" \n")),
        ("wiki.vec.gz", text(header=True)),
        ("news.bin", binary()),
        ("news.bin.gz", binary()),
        ("no_line_ends", binary(end=b"")),
    ],
)
def test_every_format_gives_the_same(name, content, tmp_path):
    path = write(tmp_path / name, content)
    found = read_word_vectors(path)
    assert found.words == tuple(WORDS)
    assert found.vectors.dtype == "float32"
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert (found.vector_dim, found.source) == (4, str(path))
    assert list(words_of_vectors(path)) == WORDS
    some = read_word_vectors(path, words=["film", "né", "nowhere"])
    assert some.words == ("film", "né")
    np.testing.assert_array_equal(some.vectors, VECTORS[[2, 3]])
    first = read_word_vectors(path, max_words=2)
    assert first.words == ("the", ",")
    assert first.checksum() != some.checksum() != found.checksum()


def test_words_with_spaces_are_words(tmp_path):
    words = ["the", ". . .", "at name@domain.com", "\u00a0", "\u2028", "of"]
    for header in (False, True):
        path = write(tmp_path / "glove.txt", text(words, header=header))
        found = read_word_vectors(path)
        assert found.words == tuple(words)
        np.testing.assert_array_equal(found.vectors, VECTORS)


def test_a_file_may_begin_with_a_number(tmp_path):
    path = write(tmp_path / "glove.txt", text(["7", "8", "the"], VECTORS[:3]))
    assert read_word_vectors(path).words == ("7", "8", "the")


def test_reading_stops_where_all_is_found(tmp_path):
    """What comes after is not read: gigabytes, or here a line that is wrong."""
    path = write(tmp_path / "glove.txt", text() + b"wrong\n")
    assert read_word_vectors(path, words=["film"]).words == ("film",)
    assert read_word_vectors(path, max_words=6).words == tuple(WORDS)
    for read in (read_word_vectors, check_word_vectors):
        with pytest.raises(ValueError, match="glove.txt:7: expected a word and 4 val"):
            read(path)


@pytest.mark.parametrize("make", [text, binary])
def test_a_check_looks_at_the_begin(make, tmp_path, monkeypatch):
    monkeypatch.setattr(word_vectors, "_CHECKED", 3)
    path = write(tmp_path / "vectors", make(WORDS, VECTORS)[:-1] + b" wrong")
    assert check_word_vectors(path) == 4
    monkeypatch.setattr(word_vectors, "_CHECKED", 100)
    with pytest.raises(ValueError, match="vectors"):
        check_word_vectors(path)


@pytest.mark.parametrize("make", [text, binary])
def test_the_first_of_two_vectors_counts_and_that_is_said(make, tmp_path):
    path = write(tmp_path / "twice", make(["a", "b", "a", "b"], VECTORS[:4]))
    notes = []
    found = read_word_vectors(path, report=notes.append)
    np.testing.assert_array_equal(found.vectors, VECTORS[:2])
    (note,) = notes
    assert "2 words stand there more than once, the first is 'a'" in note
    assert (":3" if make is text else "word 3 of 4") in note


WRONG = [
    (b"", "is empty"),
    (b"the 0.1 0.2\nof 0.1\n", r"v:2: expected a word and 2 values.*Received 2 fields"),
    (b"the 0.1 0.2\nof 0.1 0.2 0.3\n", "v:2: expected a word and 2 val.*Received more"),
    (b"the 0.1 0.2\n 0.1 0.2\n", "v:2: expected a word and 2 values"),
    (b"the 0.1 0.2\n\nof 0.1 0.2\n", "v:2: the line is empty"),
    (b"the 0.1 0.2\nof 0,1 0.2\n", "v:2: values must be numbers.*Received: b'0,1'"),
    (b"the 0.1 0.2\nof nan 0.2\n", "v:2: values must be finite"),
    (b"the 0.1 0.2\nof 1e39 0.2\n", "v:2: values must be finite"),
    (b"film  0.1  0.2 \n", "v:1: values must be numbers with one space .*b'film  0.1"),
    (b"the 0.1 0.2\nof  0.1 0.2\n", "v:2: values must be numbers with one space"),
    (b"1 2\nfilm  0.1 0.2\n", "v:2: values must be numbers with one space between"),
    (b"the 0.1\ncaf\xe9 0.2\n", "v:2: not valid UTF-8 .byte 0xe9.*iconv"),
    (b"A line of prose.\n", "v:1: expected a word and its values"),
    (b"3 2\nthe 0.1 0.2\nof 0.1 0.2\n", "announces 3 words, and the file has 2 lines"),
    (b"0 2\n", "v:1: the header must be"),
    (binary()[:-3], "v, word 6 of 6: the file ends inside it"),
    (binary()[:-25], "v, word 5 of 6: the file ends inside it"),
    (binary().replace("né".encode(), b"n\xe9x"), "v, word 4 of 6: .* is not valid UTF"),
    (
        binary() + b"more \0\0\0\0",
        "v: the header announces 6 words of 4 values, and the",
    ),
    (gzip.compress(text())[:-9], "v.gz is no whole gzip file"),
    (text(), "v.gz is no whole gzip file"),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("content", "message"), WRONG)
def test_what_is_wrong_is_told_with_its_place(content, message, tmp_path):
    path = tmp_path / ("v.gz" if "gzip" in message else "v")
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_word_vectors(path)


def test_white_space_may_end_a_binary_file(tmp_path):
    path = write(tmp_path / "news.bin", binary() + b"\n \n")
    assert read_word_vectors(path).words == tuple(WORDS)


def test_words_that_are_not_there_and_no_file(tmp_path):
    path = write(tmp_path / "glove.txt", text())
    with pytest.raises(ValueError, match="a vector for none of the 2 words.*cased"):
        read_word_vectors(path, words=["Film", "zzz"])
    with pytest.raises(FileNotFoundError, match="no file of word vectors at .*nope"):
        read_word_vectors(tmp_path / "nope")
    with pytest.raises(ValueError, match="is a folder"):
        read_word_vectors(tmp_path)
    with pytest.raises(ValueError, match="`max_words` must be a whole number"):
        read_word_vectors(path, max_words=0)


def test_real_vectors(data_dir):
    path = data_dir / "vectors/glove.840B.300d.top596.txt"
    found = read_word_vectors(path)
    assert found.vectors.shape == (596, 300)
    assert found.words[:5] == (",", ".", "the", "and", "to")
    with path.open(encoding="utf-8") as file:
        for word, row, line in zip(found.words, found.vectors, file, strict=True):
            fields = line.rstrip("\n").split(" ")
            assert word == fields[0]
            np.testing.assert_array_equal(row, np.array(fields[1:], "float32"))
