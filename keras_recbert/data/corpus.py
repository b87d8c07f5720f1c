"""A tokenised corpus in memory, from the folder that `recbert prepare` wrote."""

import dataclasses
import hashlib
import json
import pathlib

import numpy as np
import tensorflow as tf

from keras_recbert.core.json_files import file_sha256
from keras_recbert.text.vocabulary import load_vocabulary

FORMAT_VERSION = 1
DESCRIPTION = "corpus.json"
VOCABULARY = "vocab.txt"
_TOKENS_PER_BATCH = 1 << 21  # 16 MB as they are parsed


@dataclasses.dataclass(frozen=True, eq=False)
class Corpus:
    """Documents, split into sentences and tokenized.

    Sentence `s` is `token_ids[sentence_starts[s]:sentence_starts[s + 1]]`; document
    `d` is the sentences from `document_starts[d]` to `document_starts[d + 1]`. There
    are no special tokens, no empty sentences and no empty documents.

    Args:
        token_ids: `(num_tokens,)`; uint16 where the vocabulary has at most 65,536
            pieces, int32 otherwise.
        sentence_starts: int64 `(num_sentences + 1,)`, offsets into `token_ids`.
        document_starts: int64 `(num_documents + 1,)`, indices of sentences.
        vocabulary: tuple of str, the pieces.
        lowercase: bool. Whether the text was lower-cased.
        strip_accents: bool or None, as for `WordPieceTokenizer`.
        path: `pathlib.Path` of the folder.
        sha256: str. Checksum of the checksums of vocabulary and shards.
    """

    token_ids: np.ndarray
    sentence_starts: np.ndarray
    document_starts: np.ndarray
    vocabulary: tuple[str, ...]
    lowercase: bool
    strip_accents: bool | None
    path: pathlib.Path
    sha256: str = ""


def load_corpus(folder, check=True):
    """Reads a corpus into memory: 2 bytes a word piece, 8 a sentence, 8 a document.

    Args:
        folder: path of a folder that `recbert prepare` wrote.
        check: bool. Whether to compare the SHA-256 sum of each shard too; damage
            inside a record is noticed without it.

    Returns:
        `Corpus`, its documents in the order of shards and records.

    Raises:
        FileNotFoundError: if the folder, or a file of it, is missing.
        ValueError: naming the file, if one is damaged or is not that of corpus.json.
    """
    folder = pathlib.Path(folder)
    description = _read_description(folder)
    vocabulary = _read_vocabulary(folder, description)
    for shard in description["shards"]:
        path = folder / shard["name"]
        if not path.is_file():
            raise FileNotFoundError(
                f"The shard {path} is missing; {folder / DESCRIPTION} names it. Copy "
                "the folder again, or prepare it again."
            )
    counts = description["counts"]
    narrow = len(vocabulary) <= np.iinfo(np.uint16).max + 1
    token_ids = np.empty(counts["tokens"], np.uint16 if narrow else np.int32)
    # Lengths first; their running sums are the starts.
    sentence_starts = np.zeros(counts["sentences"] + 1, np.int64)
    document_starts = np.zeros(counts["documents"] + 1, np.int64)
    arrays = (token_ids, sentence_starts[1:], document_starts[1:])
    filled = [0, 0, 0]
    for shard in description["shards"]:
        path = folder / shard["name"]
        filled = _read_shard(path, shard, len(vocabulary), arrays, filled)
        if check and file_sha256(path) != shard["sha256"]:
            raise ValueError(
                f"{path} is not the shard that {DESCRIPTION} describes: its SHA-256 "
                "sum differs. Copy the folder again, or prepare it again."
            )
    np.cumsum(sentence_starts, out=sentence_starts)
    np.cumsum(document_starts, out=document_starts)
    options = description["options"]
    return Corpus(
        token_ids,
        sentence_starts,
        document_starts,
        tuple(vocabulary),
        options["lowercase"],
        options["strip_accents"],
        folder,
        corpus_sha256(folder),
    )


def corpus_sha256(folder):
    """Checksum of a corpus: that of the checksums of its vocabulary and shards.

    Args:
        folder: path of a folder that `recbert prepare` wrote.

    Returns:
        str. Read from corpus.json, so that it takes no time.

    Raises:
        FileNotFoundError, ValueError: as `load_corpus`.
    """
    description = _read_description(pathlib.Path(folder))
    sums = [part["sha256"] for part in description["shards"]]
    sums.append(description["vocabulary"]["sha256"])
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()


def _read_description(folder):
    path = folder / DESCRIPTION
    if not folder.is_dir():
        there = "this is a file" if folder.exists() else "there is no such folder"
        raise FileNotFoundError(
            f"No corpus at {folder}: {there}. Make one: recbert prepare."
        )
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} holds no {DESCRIPTION}. Expected a folder that a run of "
            "`recbert prepare` has finished. Make one: recbert prepare."
        )
    try:
        description = json.loads(path.read_bytes())
        version = description["format_version"]
        counts, shards = description["counts"], description["shards"]
        for name in ("documents", "sentences", "tokens"):
            if sum(shard[name] for shard in shards) != counts[name]:
                raise ValueError(
                    f"`{name}` is {counts[name]:,} in `counts`, and "
                    f"{sum(shard[name] for shard in shards):,} in the shards"
                )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}. Prepare it again.") from None
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}; this version of keras_recbert reads "
            f"{FORMAT_VERSION}. Prepare the corpus again."
        )
    return description


def _read_vocabulary(folder, description):
    path = folder / VOCABULARY
    vocabulary = load_vocabulary(path)
    if file_sha256(path) != description["vocabulary"]["sha256"]:
        raise ValueError(
            f"{path} is not the vocabulary that the corpus was cut with: its SHA-256 "
            f"sum is not the one in {DESCRIPTION}. Copy the folder again."
        )
    return vocabulary


def _read_shard(path, shard, vocabulary_size, arrays, filled):
    """Fills `arrays` from the indices `filled` on; returns those after them."""
    names = ("tokens", "sentences", "documents")
    ends = [start + shard[name] for start, name in zip(filled, names, strict=True)]
    try:
        for document_tokens, *values in _batches(path, shard):
            ids, lengths, sentences = values
            new = [
                start + len(value) for start, value in zip(filled, values, strict=True)
            ]
            wrong = _disagreement(document_tokens, *values, vocabulary_size)
            if any(have > end for have, end in zip(new, ends, strict=True)):
                wrong = f"it holds more than {DESCRIPTION} says"
            if wrong:
                raise ValueError(f"{path} is damaged: {wrong}. Prepare it again.")
            for array, start, end, value in zip(
                arrays, filled, new, values, strict=True
            ):
                array[start:end] = value
            filled = new
    except tf.errors.DataLossError as error:
        raise ValueError(
            f"{path} is damaged at record {_count_good_records(path)}, counted from "
            f"0: {error.message.partition(' [Op')[0]}. Copy the folder again, or "
            "prepare it again."
        ) from None
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            f"{path} holds records that are no documents: "
            f"{error.message.splitlines()[0]}. Prepare it again."
        ) from None
    if filled != ends:
        raise ValueError(
            f"{path} is damaged: it holds fewer documents, sentences or word pieces "
            f"than {DESCRIPTION} says. Copy the folder again, or prepare it again."
        )
    return filled


def _batches(path, shard):
    """Yields the values of some records as arrays.

    They are: word pieces of each document, all ids, word pieces of each sentence,
    sentences of each document.
    """
    features = {
        "token_ids": tf.io.RaggedFeature(tf.int64),
        "sentence_lengths": tf.io.RaggedFeature(tf.int64),
    }

    length = shard["tokens"] // max(shard["documents"], 1)
    num_records = max(_TOKENS_PER_BATCH // max(length, 1), 1)
    dataset = tf.data.TFRecordDataset(str(path), buffer_size=8 << 20)
    for records in dataset.batch(num_records).prefetch(1):
        parsed = tf.io.parse_example(records, features)
        ids, lengths = parsed["token_ids"], parsed["sentence_lengths"]
        yield (
            ids.row_lengths().numpy(),
            ids.flat_values.numpy(),
            lengths.flat_values.numpy(),
            lengths.row_lengths().numpy(),
        )


def _disagreement(document_tokens, ids, lengths, sentences, vocabulary_size):
    """What is wrong with the values of records, or None."""
    sentence_ends = np.cumsum(sentences)
    token_ends = np.concatenate([[0], np.cumsum(lengths)])
    if not np.array_equal(token_ends[sentence_ends], np.cumsum(document_tokens)):
        return "lengths of sentences do not add up to the word pieces"
    if len(lengths) and lengths.min() < 1:
        return "a sentence is empty"
    if len(ids) and not 0 <= ids.min() <= ids.max() < vocabulary_size:
        return (
            f"ids from {ids.min()} to {ids.max()}, and {vocabulary_size} word pieces "
            f"in {VOCABULARY}"
        )
    return None


def _count_good_records(path):
    count = 0
    try:
        for _ in tf.data.TFRecordDataset(str(path)):
            count += 1
    except tf.errors.DataLossError:
        pass  # the one that is being reported
    return count
