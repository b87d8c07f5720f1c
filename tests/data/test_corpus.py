import hashlib
import json

import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.data.corpus import load_corpus
from keras_recbert.text.vocabulary import save_vocabulary

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefg"]
# Two shards; a document is a list of sentences.
SHARDS = [[[[5, 6], [7]], [[8]]], [[[9, 10, 11], [5, 5], [6]]]]


def record(token_ids, sentence_lengths):
    features = {"token_ids": token_ids, "sentence_lengths": sentence_lengths}
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in features.items()
            }
        )
    ).SerializeToString()


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def describe(folder, shards, vocabulary=VOCABULARY):
    """Writes vocab.txt and corpus.json beside the shards that are there."""
    save_vocabulary(vocabulary, folder / "vocab.txt")
    described = []
    for index, documents in enumerate(shards):
        sentences = sum(documents, [])
        path = folder / f"corpus-{index:05d}-of-{len(shards):05d}.tfrecord"
        described.append(
            {
                "name": path.name,
                "documents": len(documents),
                "sentences": len(sentences),
                "tokens": sum(map(len, sentences)),
                "sha256": sha256(path),
            }
        )
    names = ("documents", "sentences", "tokens")
    description = {
        "format_version": 1,
        "counts": {name: sum(shard[name] for shard in described) for name in names},
        "options": {"lowercase": False, "strip_accents": None},
        "vocabulary": {"sha256": sha256(folder / "vocab.txt")},
        "shards": described,
    }
    (folder / "corpus.json").write_text(json.dumps(description))


@pytest.fixture
def folder(tmp_path):
    for index, documents in enumerate(SHARDS):
        path = tmp_path / f"corpus-{index:05d}-of-00002.tfrecord"
        with tf.io.TFRecordWriter(str(path)) as writer:
            for sentences in documents:
                writer.write(record(sum(sentences, []), list(map(len, sentences))))
    describe(tmp_path, SHARDS)
    return tmp_path


def change(path, **changes):
    description = json.loads(path.read_text())
    for place, value in changes.items():
        *way, name = place.split("__")
        entry = description
        for key in way:
            entry = entry[int(key) if key.isdigit() else key]
        entry[name] = value
    path.write_text(json.dumps(description))


def test_a_corpus_comes_in_the_order_of_shards_and_records(folder):
    corpus = load_corpus(folder)
    assert corpus.token_ids.dtype == np.uint16
    assert corpus.token_ids.tolist() == [5, 6, 7, 8, 9, 10, 11, 5, 5, 6]
    assert corpus.sentence_starts.dtype == corpus.document_starts.dtype == np.int64
    assert corpus.sentence_starts.tolist() == [0, 2, 3, 4, 7, 9, 10]
    assert corpus.document_starts.tolist() == [0, 2, 3, 6]
    assert corpus.vocabulary == tuple(VOCABULARY)
    assert (corpus.lowercase, corpus.strip_accents) == (False, None)
    assert corpus.path == folder


@pytest.mark.parametrize("size, dtype", [(65_536, np.uint16), (65_537, np.int32)])
def test_ids_of_large_vocabularies_fit(folder, size, dtype):
    path = folder / "corpus-00001-of-00002.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(record([size - 1, 5], [2]))
    pieces = VOCABULARY + [f"w{n}" for n in range(size - len(VOCABULARY))]
    describe(folder, [SHARDS[0], [[[size - 1, 5]]]], pieces)
    corpus = load_corpus(folder)
    assert corpus.token_ids.dtype == dtype
    assert corpus.token_ids[-2:].tolist() == [size - 1, 5]


def test_what_is_missing_is_named(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="No corpus at .*no: there is no such"):
        load_corpus(tmp_path / "no")
    (folder / "corpus-00001-of-00002.tfrecord").rename(folder / "elsewhere")
    message = "The shard .*corpus-00001-of-00002.tfrecord is missing; .*corpus.json nam"
    with pytest.raises(FileNotFoundError, match=message):
        load_corpus(folder)
    (folder / "corpus.json").unlink()
    with pytest.raises(FileNotFoundError, match="no corpus.json.*recbert prepare"):
        load_corpus(folder)
    (folder / "corpus.json").mkdir()
    with pytest.raises(FileNotFoundError, match="no corpus.json"):
        load_corpus(folder)


def test_damaged_bytes_are_noticed_without_the_sums_too(folder):
    path = folder / "corpus-00000-of-00002.tfrecord"
    whole = path.read_bytes()
    for position in range(0, len(whole), 11):
        path.write_bytes(
            whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :]
        )
        with pytest.raises(ValueError, match=rf"{path} is damaged at record [01], "):
            load_corpus(folder, check=False)
    path.write_bytes(whole[:-3])
    with pytest.raises(ValueError, match="is damaged at record 1, counted from 0: "):
        load_corpus(folder)


def test_shards_of_another_corpus_are_noticed(folder):
    path = folder / "corpus-00000-of-00002.tfrecord"
    for documents, message in [
        ([[[5, 6], [7]], [[8]], [[8]]], "it holds more than corpus.json says"),
        ([[[5, 6], [7]]], "it holds fewer documents, sentences or word pieces"),
        ([[[5, 6], [7]], [[9]]], "its SHA-256 sum differs"),
        ([[[5, 6], [7]], [[12]]], "ids from 5 to 12, and 12 word pieces"),
        ([[[5, 6], [7]], [[-1]]], "ids from -1 to 7, and 12"),
    ]:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for sentences in documents:
                writer.write(record(sum(sentences, []), list(map(len, sentences))))
        with pytest.raises(ValueError, match=f"{path} .*{message}"):
            load_corpus(folder)
    for records, message in [
        ([record([5, 6, 7], [2, 2]), record([8], [])], "do not add up"),
        ([record([5, 6, 7], [3]), record([8], [0, 1])], "a sentence is empty"),
        ([b"nonsense", record([8], [1])], "holds records that are no documents: "),
    ]:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for one in records:
                writer.write(one)
        with pytest.raises(ValueError, match=f"{path} .*{message}"):
            load_corpus(folder)


def test_another_vocabulary_is_noticed(folder):
    save_vocabulary([*VOCABULARY[:-2], "g", "f"], folder / "vocab.txt")
    with pytest.raises(
        ValueError, match="vocab.txt is not the vocabulary that the corp"
    ):
        load_corpus(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(FileNotFoundError, match="vocab.txt"):
        load_corpus(folder)


def test_a_damaged_description_is_named(folder):
    path = folder / "corpus.json"
    whole = path.read_text()
    for content in ("{", "[]", '{"format_version": 1}', whole[:-40]):
        path.write_text(content)
        with pytest.raises(ValueError, match=f"{path} is damaged: "):
            load_corpus(folder)
    path.write_text(whole)
    change(path, counts__tokens=11)
    with pytest.raises(
        ValueError, match="`tokens` is 11 in `counts`, and 10 in the sh"
    ):
        load_corpus(folder)
    path.write_text(whole)
    change(path, format_version=2)
    with pytest.raises(ValueError, match="has format version 2.*reads 1"):
        load_corpus(folder)
