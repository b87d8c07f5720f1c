"""What tests of data files share."""

import gzip
import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from prepared_corpora import VOCABULARY

from keras_recbert.data.corpus import Corpus
from keras_recbert.text.vocabulary import load_vocabulary, save_vocabulary
from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer


@pytest.fixture
def write(tmp_path):
    """Writes a file below `tmp_path` and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode("utf-8") if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def inputs(write, tmp_path):
    pytest.importorskip("apache_beam")
    pytest.importorskip("nupunkt")
    write(
        "in/a.txt",
        b"The windmills turn. A windmill is old.\n\n\x00\n\nOld \xff wind.\n",
    )
    lines = [{"text": f"The wind is {n}.\nTurn."} for n in range(40)] + [{"text": " "}]
    write("in/b.jsonl", "\n".join(map(json.dumps, lines)))
    save_vocabulary(VOCABULARY, tmp_path / "vocab.txt")
    return tmp_path / "in"


@pytest.fixture(scope="module")
def corpus(data_dir):
    """Articles of SQuAD 1.1: 442 documents of 2.9 M pieces."""
    path = data_dir / "squad" / "train-v1.1.reconstructed.json.gz"
    with gzip.open(path) as file:
        articles = json.load(file)["data"]
    vocabulary = load_vocabulary(data_dir / "vocab" / "bert-base-uncased-vocab.txt")
    sentences, document_starts = [], [0]
    for article in articles:
        for paragraph in article["paragraphs"]:
            parts = re.split(r"(?<=[.!?])\s+", paragraph["context"])
            sentences += [part for part in parts if part.strip()]
        document_starts.append(len(sentences))
    ids = WordPieceTokenizer(vocabulary)(tf.constant(sentences))
    lengths = ids.row_lengths().numpy()
    assert lengths.min() > 0
    return Corpus(
        token_ids=ids.values.numpy().astype(np.uint16),
        sentence_starts=np.cumsum([0, *lengths]),
        document_starts=np.array(document_starts),
        vocabulary=tuple(vocabulary),
        lowercase=True,
        strip_accents=None,
        path=pathlib.Path("squad"),
    )
