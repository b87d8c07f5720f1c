"""Small files of word vectors, in every format."""

import gzip
import struct

import numpy as np

WORDS = ["the", ",", "film", "né", "name@domain.com", "7"]
VECTORS = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")


def text(words=WORDS, vectors=VECTORS, header=False, end="\n"):
    """Lines as GloVe (and, with a header, fastText) has them, as bytes."""
    lines = [f"{len(words)} {vectors.shape[1]}{end}"] if header else []
    for word, row in zip(words, vectors, strict=True):
        lines.append(f"{word} {' '.join(map(repr, map(float, row)))}{end}")
    return "".join(lines).encode()


def binary(words=WORDS, vectors=VECTORS, end=b"\n"):
    """word2vec's binary format."""
    records = [
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end
        for word, row in zip(words, vectors, strict=True)
    ]
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(records)


def write(path, content):
    """Writes bytes, compressed where the name ends so; the path."""
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def vectors_of(words, width=4, seed=0):
    """A vector for each word: liked words point one way, disliked ones the other."""
    rng = np.random.default_rng(seed)
    rows = 0.1 * rng.normal(size=(len(words), width))
    for word, row in zip(words, rows, strict=True):
        row[0] += {"good": 1, "fine": 1, "warm": 1}.get(word, 0)
        row[0] -= {"bad": 1, "dull": 1, "cold": 1}.get(word, 0)
    return rows.astype("float32")
