"""Texts with the logits of a teacher, in shards on disk."""

import dataclasses
import hashlib
import itertools
import os
import pathlib
import shutil

import tensorflow as tf
from tqdm import tqdm

from keras_recbert.core.folders import locked_folder
from keras_recbert.core.json_files import file_sha256, read_json, write_json
from keras_recbert.data.transfer_shards import (
    PARTS,
    ShardWriter,
    record_key,
    shard_name,
)

FORMAT_VERSION = 1
DESCRIPTION = "transfer_set.json"
SHARD_RECORDS = 8192
AGAIN = "Make it again: remove the folder, and repeat the command."
# What a difference of checksums means.
CHANGES = {
    "teacher": "another teacher or tokenizer",
    "texts": (
        "other texts (split_seed, --split-seed, says which are held out, and goes by "
        "the seed where it is not given)"
    ),
    "held_out": "other texts held out (split_seed, --split-seed, says which)",
}


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
        measured: dict of JSON: `seconds` of work, those of several workers added up,
            and `texts_per_second`, of one worker.
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
        if not isinstance(description, dict):
            raise ValueError(f"expected an object of JSON, not {description!r:.60}")
        version = description["format_version"]
        keys = ("finished", "fields", "num_logits", "made_from", "shards", "measured")
        for key in (*keys, "num_records", "num_labels"):
            description[key]
        total = sum(shard["records"] for shard in description["shards"])
        if total != description["num_records"]:
            raise ValueError(
                f"{description['num_records']} records, and {total} in the shards"
            )
    except KeyError as error:
        (name,) = error.args
        raise ValueError(f"{path} is damaged: there is no {name!r}. {AGAIN}") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}. {AGAIN}") from None
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
    folder,
    fields,
    num_logits,
    examples,
    score,
    made_from,
    shard_records=SHARD_RECORDS,
    share_out=None,
    overwrite=False,
):
    """Makes a transfer set, or the rest of one that was stopped, or finds it made.

    A shard is written whole or not at all, so a stop costs the work of one shard a
    process. The shards are the same, whoever writes them.

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
        share_out: optional function of a `ShardWriter` and a list of int, the numbers
            of shards, that has workers call `ShardWriter.work` for each of them, in any
            order and any process. Default: this process scores them.
        overwrite: bool. Whether one that was made from something else is replaced.

    Returns:
        `TransferSet`.

    Raises:
        ValueError: if the folder holds one that was made from something else, naming
            what, and `overwrite` is False; if it is damaged; if there is no example, or
            a logit is NaN or infinite, naming the text.
        RuntimeError: if another process is making it.
        OSError: if it cannot be written.
    """
    folder = pathlib.Path(folder)
    with locked_folder(folder):
        description = _begun(folder, fields, num_logits, made_from, overwrite)
        for shard in description["shards"]:
            _check_shard(folder / shard["name"], shard)
        if not description["finished"]:
            for unfinished in folder.glob(".transfer-*.tfrecord*"):
                unfinished.unlink()  # of a process that was killed
            place, teacher = os.path.abspath(folder), made_from["teacher"]
            writer = ShardWriter(place, tuple(fields), num_logits, teacher)
            chunks = _rest(examples, description, shard_records)
            if share_out is None:
                _write(folder, description, writer, chunks, score)
            else:
                _have_written(folder, description, writer, chunks, share_out)
            _finish(folder, description)
    return _opened(folder, description)


def _rest(examples, description, shard_records):
    """Yields number, first record and examples of the shards that are not there."""
    done, number = description["num_records"], len(description["shards"])
    if done:
        print(f"Resuming the transfer set after record {done:,}.", flush=True)
    rest = itertools.islice(examples(), done, None)
    while chunk := list(itertools.islice(rest, shard_records)):
        yield number, done, chunk
        number, done = number + 1, done + len(chunk)


def _write(folder, description, writer, chunks, score):
    """Writes the shards in this process, one after the other."""
    bar = progress_bar(description["num_records"])
    with bar:
        for number, start, chunk in chunks:
            described = writer.finished(number, start, len(chunk))
            _add(description, described or writer.write(number, chunk, score))
            write_json(folder / DESCRIPTION, description)
            show_progress(bar, description["num_records"])


def _have_written(folder, description, writer, chunks, share_out):
    """Has the shards written by others, and takes them in order."""
    os.makedirs(writer.parts, exist_ok=True)
    write_json(folder / DESCRIPTION, description)  # what resumes must be made from it
    shards, missing = [], []
    for number, start, chunk in chunks:
        shards.append((number, start, len(chunk)))
        if writer.finished(*shards[-1]) is None:
            writer.give(number, start, chunk)
            missing.append(number)
    if missing:
        share_out(writer, missing)
    for shard in shards:
        described = writer.finished(*shard)
        if described is None:
            raise RuntimeError(
                f"The workers have ended, and {shard_name(shard[0])} is not in "
                f"{folder}. They must see that folder under the same path. Repeat the "
                "command: it resumes."
            )
        _add(description, described)


def _add(description, described):
    shard = {name: described[name] for name in ("name", "records", "sha256")}
    description["shards"].append(shard)
    description["num_records"] += described["records"]
    description["num_labels"] += described["labels"]
    description["measured"]["seconds"] += described["seconds"]


def _finish(folder, description):
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    if not description["num_records"]:
        (folder / DESCRIPTION).unlink(missing_ok=True)
        raise ValueError(f"There is no text to make {folder} from.")
    seconds = description["measured"]["seconds"]
    rate = description["num_records"] / max(seconds, 1e-9)
    description["measured"]["texts_per_second"] = round(rate, 1)
    description["finished"] = True
    write_json(folder / DESCRIPTION, description)


def progress_bar(num_records):
    """A bar of texts that the teacher has scored."""
    return tqdm(
        desc="Teacher", initial=num_records, unit=" texts", disable=None, mininterval=1
    )


def show_progress(bar, num_records):
    """Moves a bar to a number of texts; of a log, writes a line."""
    if bar.disable:
        print(f"Teacher: {num_records:,} texts.", flush=True)
    else:
        bar.update(num_records - bar.n)


def _begun(folder, fields, num_logits, made_from, overwrite):
    """The description of what is there, or of an empty set."""
    path = folder / DESCRIPTION
    description = {
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
    if not path.is_file():
        return description
    found = _read_description(path)
    there, now = (
        {**one["made_from"], "fields": one["fields"], "num_logits": one["num_logits"]}
        for one in (found, description)
    )
    changed = [
        CHANGES.get(name, f"{name}={there.get(name)!r} (now {now.get(name)!r})")
        for name in {**there, **now}
        if there.get(name) != now.get(name)
    ]
    if not changed:
        return found
    if not overwrite:
        raise ValueError(
            f"{folder} holds a transfer set that was made from something else: "
            f"{', '.join(changed)}. Choose another folder (--transfer-set), or remove "
            "this one."
        )
    path.unlink()
    for shard in found["shards"]:
        (folder / shard["name"]).unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    return description
