"""Shards of a transfer set: examples scored and written, by whichever process."""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import time
import uuid

import numpy as np
import tensorflow as tf

from keras_recbert.core.folders import replace_file
from keras_recbert.core.json_files import file_sha256, read_json
from keras_recbert.core.os_errors import naming

KEY_BYTES = 16
PARTS = "parts"


@dataclasses.dataclass(frozen=True)
class ShardWriter:
    """What it takes to write a shard; goes to other processes.

    Args:
        folder: str. Folder of the transfer set; every process must see it.
        fields: tuple of str. Names of the texts of a record.
        num_logits: int. Logits of a record.
        teacher: str. Checksum of the teacher and its tokenizer.
    """

    folder: str
    fields: tuple[str, ...]
    num_logits: int
    teacher: str

    @property
    def parts(self):
        """Folder of what workers are given and say of their shards."""
        return os.path.join(self.folder, PARTS)

    def write(self, number, examples, score):
        """Scores some examples and writes them as a shard, whole or not at all.

        Args:
            number: int. Place of the shard.
            examples: list of tuples as for `write_transfer_set`.
            score: as for `write_transfer_set`.

        Returns:
            dict of JSON: `name`, `records`, `sha256`, `labels` and `seconds`.

        Raises:
            ValueError: if the logits are not as they should be, naming the text.
            OSError: if it cannot be written.
        """
        start = time.monotonic()
        logits = self._logits(examples, score)
        name = shard_name(number)
        path = pathlib.Path(self.folder, name)
        # A name of its own: a process that was thought dead may still write.
        temporary = path.with_name(f".{name}.{uuid.uuid4().hex}")
        try:
            with naming(path, temporary):
                with contextlib.closing(tf.io.TFRecordWriter(str(temporary))) as writer:
                    for (texts, label, *_), row in zip(examples, logits, strict=True):
                        key = record_key(self.teacher, texts)
                        named = zip(self.fields, texts, strict=True)
                        writer.write(_record(dict(named), key, row, label))
                sha256 = file_sha256(temporary)
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return {
            "name": name,
            "records": len(examples),
            "sha256": sha256,
            "labels": sum(example[1] is not None for example in examples),
            "seconds": time.monotonic() - start,
        }

    def _logits(self, examples, score):
        if score is None:
            found = [example[2] for example in examples]
        else:
            texts = (example[0] for example in examples)
            found = score([list(column) for column in zip(*texts, strict=True)])
        logits = np.asarray(found, np.float32)
        shape = (len(examples), self.num_logits)
        if logits.shape != shape:
            raise ValueError(
                f"The teacher must give {shape[1]} logits a text. Received: logits of "
                f"shape {logits.shape} for {shape[0]} texts."
            )
        wrong = np.flatnonzero(~np.isfinite(logits).all(1))
        if len(wrong):
            raise ValueError(
                f"The teacher gives {logits[wrong[0]].tolist()} for the text "
                f"{examples[wrong[0]][0][0]!r}: a logit must be finite."
            )
        return logits

    def give(self, number, start, examples):
        """Leaves the examples of a shard, from the `start`th on, to `work`."""
        given = {"start": start, "examples": examples}
        replace_file(self._examples(number), json.dumps(given))

    def work(self, number, score):
        """Writes the shard of what `give` left, and says so for `finished`."""
        given = read_json(self._examples(number))
        described = self.write(number, given["examples"], score)
        described["start"] = given["start"]
        replace_file(self._described(number), json.dumps(described))

    def finished(self, number, start, num_records):
        """What `write` returned for a shard that `work` wrote; None if it is not there.

        Args:
            number: int. Place of the shard.
            start, num_records: int. Which records of the transfer set it has.
        """
        path = pathlib.Path(self._described(number))
        if not path.is_file():
            return None
        described = read_json(path)
        shard = pathlib.Path(self.folder, described["name"])
        is_whole = (
            (described["start"], described["records"]) == (start, num_records)
            and shard.is_file()
            and file_sha256(shard) == described["sha256"]
        )
        return described if is_whole else None

    def num_records(self):
        """Records that `work` has written."""
        paths = pathlib.Path(self.parts).glob("shard-?????.json")
        return sum(read_json(path)["records"] for path in paths)

    def _examples(self, number):
        return os.path.join(self.parts, f"examples-{number:05d}.json")

    def _described(self, number):
        return os.path.join(self.parts, f"shard-{number:05d}.json")


def shard_name(number):
    """Name of the file of a shard."""
    return f"transfer-{number:05d}.tfrecord"


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


def _record(texts, key, logits, label):
    def of_bytes(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    def of_floats(values):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))

    feature = {name: of_bytes(text.encode()) for name, text in texts.items()}
    feature |= {"key": of_bytes(key), "logits": of_floats(logits)}
    if label is not None:
        feature["label"] = of_floats([label])
    features = tf.train.Features(feature=feature)
    # Else the order of the features would differ from process to process.
    return tf.train.Example(features=features).SerializeToString(deterministic=True)
