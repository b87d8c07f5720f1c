"""Texts with the logits of a teacher, in shards on disk."""

import contextlib
import dataclasses
import hashlib
import itertools
import pathlib
import time

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_recbert.core.folders import locked_folder, new_file
from keras_recbert.core.json_files import file_sha256, read_json, write_json

FORMAT_VERSION = 1
DESCRIPTION = "transfer_set.json"
SHARD_RECORDS = 16_384
KEY_BYTES = 16
AGAIN = "Make it again: remove the folder, and repeat the command."


@dataclasses.dataclass(frozen=True, eq=False)
class TransferSet:
    """A transfer set that is whole.

    A record has a text or a pair, the teacher's logits, the label if there is one, and
    a key: a hash of teacher, tokenizer and texts, so that logits and texts cannot be
    exchanged without notice.

    Args:
        folder: path.
        fields: tuple of str. The texts of a record, by their names.
        num_logits: int. Logits of a record.
        num_records: int.
        num_labels: int. Records that have a label.
        made_from: dict of JSON, what it was made from, with `teacher`, the checksum of
            the teacher and its tokenizer.
        measured: dict of JSON: `seconds` and `texts_per_second` of the teacher.
        shards: tuple of dicts with `name`, `records` and `sha256`.
    """

    folder: pathlib.Path
    fields: tuple[str, ...]
    num_logits: int
    num_records: int
    num_labels: int
    made_from: dict
    measured: dict
    shards: tuple

    @property
    def paths(self):
        """Paths of the shards, a list of str."""
        return [str(self.folder / shard["name"]) for shard in self.shards]

    @property
    def features(self):
        """What `tf.io.parse_example` takes to read the records."""
        text = tf.io.FixedLenFeature([], tf.string)
        return {
            **dict.fromkeys(self.fields, text),
            "key": text,
            "logits": tf.io.FixedLenFeature([self.num_logits], tf.float32),
            "label": tf.io.FixedLenFeature([], tf.float32, float("nan")),
        }

    def sha256(self):
        """Checksum of the checksums of all shards."""
        sums = " ".join(shard["sha256"] for shard in self.shards)
        return hashlib.sha256(sums.encode()).hexdigest()

    def records(self):
        """Yields the records, in the order of the shards.

        Yields:
            Tuple of the texts, a tuple of str; the logits, float32 `(num_logits,)`; and
            the label, float, NaN where there is none.

        Raises:
            ValueError: if a key is not that of its texts; names file and record.
        """
        teacher = self.made_from["teacher"]
        for path in self.paths:
            records = tf.data.TFRecordDataset(path).batch(1024).prefetch(1)
            place = itertools.count()
            for batch in records:
                found = tf.io.parse_example(batch, self.features)
                columns = [found[name].numpy().tolist() for name in self.fields]
                for *texts, key, logits, label in zip(
                    *columns,
                    found["key"].numpy().tolist(),
                    found["logits"].numpy(),
                    found["label"].numpy().tolist(),
                    strict=True,
                ):
                    number = next(place)
                    texts = tuple(text.decode() for text in texts)
                    if key != record_key(teacher, texts):
                        raise ValueError(
                            f"{path}, record {number}, counted from 0: the key is not "
                            f"that of the text {texts[0]!r}. {AGAIN}"
                        )
                    yield texts, logits, label


def record_key(teacher, texts):
    """Key of a record: 16 bytes.

    Args:
        teacher: str. Checksum of the teacher and its tokenizer.
        texts: sequence of str.
    """
    digest = hashlib.blake2b(teacher.encode(), digest_size=KEY_BYTES)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.digest()


def open_transfer_set(folder):
    """Opens a transfer set, once its shards are what they were.

    Args:
        folder: str or path.

    Returns:
        `TransferSet`.

    Raises:
        FileNotFoundError: if there is none, or a shard is missing.
        ValueError: if it is unfinished, damaged or of another version; names the file.
    """
    folder = pathlib.Path(folder)
    path = folder / DESCRIPTION
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} holds no transfer set: there is no {DESCRIPTION}. Make one: "
            "recbert distill --teacher FOLDER."
        )
    description = _read_description(path)
    if not description["finished"]:
        raise ValueError(
            f"{folder} holds an unfinished transfer set. Repeat the command that makes "
            "it: it resumes."
        )
    for shard in description["shards"]:
        _check_shard(folder / shard["name"], shard)
    return _opened(folder, description)


def made_from(folder):
    """What the transfer set in a folder is made from, finished or not; {} without one.

    Raises:
        ValueError: if its description is damaged.
    """
    path = pathlib.Path(folder) / DESCRIPTION
    return _read_description(path)["made_from"] if path.is_file() else {}


def _opened(folder, description):
    names = ("num_logits", "num_records", "num_labels", "made_from", "measured")
    values = {name: description[name] for name in names}
    shards = tuple(description["shards"])
    return TransferSet(folder, tuple(description["fields"]), shards=shards, **values)


def _read_description(path):
    try:
        description = read_json(path)
        version = description["format_version"]
        keys = ("finished", "fields", "num_logits", "made_from", "shards", "measured")
        for key in (*keys, "num_records", "num_labels"):
            description[key]
        total = sum(shard["records"] for shard in description["shards"])
        if total != description["num_records"]:
            raise ValueError(
                f"{description['num_records']} records, and {total} in the shards"
            )
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}. {AGAIN}") from None
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}; this version of keras_recbert reads "
            f"{FORMAT_VERSION}. {AGAIN}"
        )
    return description


def _check_shard(path, shard):
    if not path.is_file():
        raise FileNotFoundError(f"The shard {path} is missing. {AGAIN}")
    if file_sha256(path) != shard["sha256"]:
        raise ValueError(
            f"{path} is damaged or cut short: its SHA-256 sum is not the one in "
            f"{DESCRIPTION}. {AGAIN}"
        )


def write_transfer_set(
    folder, fields, num_logits, examples, score, made_from, shard_records=SHARD_RECORDS
):
    """Makes a transfer set, or the rest of one that was stopped, or finds it made.

    A shard is written whole or not at all, so a stop costs the work of one shard.

    Args:
        folder: str or path.
        fields: sequence of str. Names of the texts of a record.
        num_logits: int. Logits that `score` gives an example.
        examples: function without arguments that gives an iterator of tuples of texts,
            a tuple of str, and label, a number or None; the same each time. Without
            `score` the logits, a list of float, come third.
        score: function from a list of lists of str, a column for each field, to float
            `(num_examples, num_logits)`; None for logits that are there already.
        made_from: dict of JSON, all that decides what the records are; `teacher` is the
            checksum of the teacher and its tokenizer.
        shard_records: int. Records of a shard.

    Returns:
        `TransferSet`.

    Raises:
        ValueError: if the folder holds one that was made from something else, naming
            what; if it is damaged; if there is no example, or a logit is NaN or
            infinite, naming the text.
        RuntimeError: if another process is making it.
        OSError: if it cannot be written.
    """
    folder = pathlib.Path(folder)
    with locked_folder(folder):
        description = _begun(folder, fields, num_logits, made_from)
        if description["finished"]:
            for shard in description["shards"]:
                _check_shard(folder / shard["name"], shard)
            return _opened(folder, description)
        done = description["num_records"]
        for shard in description["shards"]:
            _check_shard(folder / shard["name"], shard)
        rest = itertools.islice(examples(), done, None)
        if done:
            print(f"Resuming the transfer set after record {done:,}.", flush=True)
        bar = tqdm(
            desc="Teacher", initial=done, unit=" texts", disable=None, mininterval=1.0
        )
        with bar:
            while chunk := list(itertools.islice(rest, shard_records)):
                _add_shard(folder, description, chunk, score)
                bar.update(len(chunk))
                if bar.disable:  # of a log, a line a shard
                    print(f"Teacher: {description['num_records']:,} texts.", flush=True)
        if not description["num_records"]:
            raise ValueError(f"There is no text to make {folder} from.")
        seconds = description["measured"]["seconds"]
        rate = description["num_records"] / max(seconds, 1e-9)
        description["measured"]["texts_per_second"] = round(rate, 1)
        description["finished"] = True
        write_json(folder / DESCRIPTION, description)
    return _opened(folder, description)


def _begun(folder, fields, num_logits, made_from):
    """The description of what is there, or of an empty set."""
    path = folder / DESCRIPTION
    if not path.is_file():
        return {
            "format_version": FORMAT_VERSION,
            "finished": False,
            "fields": list(fields),
            "num_logits": num_logits,
            "num_records": 0,
            "num_labels": 0,
            "made_from": made_from,
            "measured": {"seconds": 0.0},
            "shards": [],
        }
    description = _read_description(path)
    there = {
        **description["made_from"],
        "fields": description["fields"],
        "num_logits": description["num_logits"],
    }
    now = {**made_from, "fields": list(fields), "num_logits": num_logits}
    changed = [
        f"{name}={there.get(name)!r} (now {now.get(name)!r})"
        for name in {**there, **now}
        if there.get(name) != now.get(name)
    ]
    if changed:
        raise ValueError(
            f"{folder} holds a transfer set that was made from something else: "
            f"{', '.join(changed)}. Choose another folder (--transfer-set), or remove "
            "this one."
        )
    return description


def _add_shard(folder, description, chunk, score):
    """Scores some examples and writes them as the next shard."""
    start = time.monotonic()
    if score is None:
        found = [example[2] for example in chunk]
    else:
        texts = (example[0] for example in chunk)
        found = score([list(column) for column in zip(*texts, strict=True)])
    logits = np.asarray(found, np.float32)
    shape = (len(chunk), description["num_logits"])
    if logits.shape != shape:
        raise ValueError(
            f"The teacher must give {shape[1]} logits a text. Received: logits of "
            f"shape {logits.shape} for {shape[0]} texts."
        )
    wrong = np.flatnonzero(~np.isfinite(logits).all(1))
    if len(wrong):
        raise ValueError(
            f"The teacher gives {logits[wrong[0]].tolist()} for the text "
            f"{chunk[wrong[0]][0][0]!r}: a logit must be finite."
        )
    name = f"transfer-{len(description['shards']):05d}.tfrecord"
    teacher = description["made_from"]["teacher"]
    with new_file(folder / name) as written:
        with contextlib.closing(tf.io.TFRecordWriter(str(written))) as writer:
            for (texts, label, *_), row in zip(chunk, logits, strict=True):
                key = record_key(teacher, texts)
                named = zip(description["fields"], texts, strict=True)
                writer.write(_record(dict(named), key, row, label))
        sha256 = file_sha256(written)
    labels = sum(example[1] is not None for example in chunk)
    description["shards"].append(
        {"name": name, "records": len(chunk), "sha256": sha256}
    )
    description["num_records"] += len(chunk)
    description["num_labels"] += labels
    description["measured"]["seconds"] += time.monotonic() - start
    write_json(folder / DESCRIPTION, description)


def _record(texts, key, logits, label):
    def of_bytes(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def of_floats(values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    feature = {name: of_bytes(text.encode()) for name, text in texts.items()}
    feature |= {"key": of_bytes(key), "logits": of_floats(logits)}
    if label is not None:
        feature["label"] = of_floats([label])
    return tf.train.Example(
        features=tf.train.Features(feature=feature)
    ).SerializeToString()
