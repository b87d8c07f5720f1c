"""The Apache Beam pipeline behind `prepare`.

Beam passes pieces of work and counts around; the documents themselves go through files
in the output folder. So a corpus need not fit into memory, which Beam's direct runner
would keep it in, and its order does not depend on the workers.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import time
import uuid
import zlib

import apache_beam as beam
import tensorflow as tf
from apache_beam.metrics import Metrics, MetricsFilter

from keras_recbert.core.folders import replace_file
from keras_recbert.data.beam_runs import Failure, run, this_process
from keras_recbert.data.documents import DocumentError, Reading, read_documents
from keras_recbert.data.prepare_tokens import DocumentTokenizer, to_record

_NAMESPACE = "recbert"
_CHARACTERS_PER_BATCH = 1 << 20
_FAILURES = (DocumentError, OSError, tf.errors.OpError)
_SIZES = ("documents", "sentences", "tokens")


@dataclasses.dataclass(frozen=True)
class Job:
    """What workers need to know.

    Args:
        output: str. Folder that users know.
        folder: str. Where shards are written for it; every worker must see it.
        parts: str. Folder of intermediate files.
        num_shards: int.
        vocabulary: tuple of str.
        lowercase: bool.
        strip_accents: bool or None.
        sentences: str, as for `DocumentTokenizer`.
        reading: `Reading`.
    """

    output: str
    folder: str
    parts: str
    num_shards: int
    vocabulary: tuple[str, ...]
    lowercase: bool
    strip_accents: bool | None
    sentences: str
    reading: Reading

    def shard_name(self, shard):
        return f"corpus-{shard:05d}-of-{self.num_shards:05d}.tfrecord"

    def shard_of(self, source, position):
        """Shard of a document; even, and the same whatever the workers."""
        return zlib.crc32(f"{source}:{position}".encode()) % self.num_shards

    @property
    def failure(self):
        """`Failure`, which says why a worker could not continue."""
        # Users know no parts and no temporary folder, only what is to be written.
        return Failure(self.parts, {self.folder: self.output})

    def part(self, item, shard):
        return os.path.join(self.parts, f"part-{item:06d}-{shard:05d}")


class WriteParts(beam.DoFn):
    """Cuts an item of work into word pieces, and writes a file for each shard."""

    def __init__(self, job):
        self._job = job
        self._main_process = this_process()

    def setup(self):
        if this_process() != self._main_process:
            # Strings stay on the CPU, and the memory of a GPU is for who trains.
            tf.config.set_visible_devices([], "GPU")
        job = self._job
        self._tokenizer = DocumentTokenizer(
            job.vocabulary, job.lowercase, job.strip_accents, job.sentences
        )

    def process(self, numbered_item):
        """Yields `(shard, (number of the item, sizes of its part))`."""
        try:
            yield from self._write(*numbered_item)
        except _FAILURES as error:
            self._job.failure.tell(error)

    def _write(self, number, item):
        job = self._job
        counts = dict.fromkeys(_SIZES, 0)
        # Work that is done again, after a worker was lost, must not meet itself.
        attempt = uuid.uuid4().hex
        writers, sizes = {}, {}
        said = time.monotonic()
        if job.failure.is_there():
            return
        for keys, paragraphs, lines in _batches(item, job.reading):
            cut, new = self._tokenizer(paragraphs)
            for name, count in {**new, **lines}.items():
                counts[name] = counts.get(name, 0) + count
            for key, (token_ids, sentence_lengths) in zip(keys, cut, strict=True):
                if not len(token_ids):
                    continue
                shard = job.shard_of(*key)
                if shard not in writers:
                    path = f"{job.part(number, shard)}.{attempt}"
                    writers[shard] = tf.io.TFRecordWriter(path)
                    sizes[shard] = [0, 0, 0]
                writers[shard].write(to_record(token_ids, sentence_lengths))
                sizes[shard][0] += 1
                sizes[shard][1] += len(sentence_lengths)
                sizes[shard][2] += len(token_ids)
                Metrics.distribution(_NAMESPACE, "document_tokens").update(
                    len(token_ids)
                )
            if time.monotonic() - said > 0.5:
                if job.failure.is_there():
                    return
                self._say(number, counts)
                said = time.monotonic()
        for shard, writer in writers.items():
            writer.close()
            path = job.part(number, shard)
            os.replace(f"{path}.{attempt}", path)
            yield shard, (number, sizes[shard])
        self._say(number, counts)
        for name, count in counts.items():
            Metrics.counter(_NAMESPACE, name).inc(int(count))

    def _say(self, number, counts):
        path = os.path.join(self._job.parts, f"progress-{number:06d}.json")
        replace_file(path, json.dumps({name: int(counts[name]) for name in _SIZES}))


class JoinParts(beam.DoFn):
    """Joins the parts of a shard in the order of the work, and describes it.

    TFRecord files have neither head nor foot: one after the other they are one.
    """

    def __init__(self, job):
        self._job = job

    def process(self, shard_and_parts):
        if self._job.failure.is_there():
            return
        try:
            self._join(*shard_and_parts)
        except _FAILURES as error:
            self._job.failure.tell(error)

    def _join(self, shard, parts):
        name = self._job.shard_name(shard)
        path = os.path.join(self._job.folder, name)
        temporary = os.path.join(self._job.parts, f"{name}.{uuid.uuid4().hex}")
        sizes = [0, 0, 0]
        with open(temporary, "wb") as joined:
            for item, part_sizes in sorted(part for part in parts if part is not None):
                with open(self._job.part(item, shard), "rb") as part:
                    shutil.copyfileobj(part, joined, 1 << 20)
                sizes = [a + b for a, b in zip(sizes, part_sizes, strict=True)]
        with open(temporary, "rb") as joined:
            digest = hashlib.file_digest(joined, "sha256").hexdigest()
        description = {
            "name": name,
            **dict(zip(_SIZES, sizes, strict=True)),
            "bytes": os.path.getsize(temporary),
            "sha256": digest,
        }
        os.replace(temporary, path)
        described = os.path.join(self._job.parts, f"shard-{shard:05d}.json")
        replace_file(described, json.dumps(description))


def run_pipeline(job, items, num_workers, beam_options):
    """Runs the pipeline.

    Args:
        job: `Job`.
        items: list of items of work, see `divide`.
        num_workers: int. Processes of the direct runner.
        beam_options: list of str, options of Beam; `--runner` names another runner.

    Returns:
        list of the descriptions of the shards; and a dict of counts.

    Raises:
        DocumentError: where a worker could not read or write.
    """
    job.failure.make_room()

    def build(pipeline):
        parts = (
            pipeline
            | "Work" >> beam.Create(list(enumerate(items)), reshuffle=False)
            | "Spread" >> beam.Reshuffle()
            | "Tokenize" >> beam.ParDo(WriteParts(job))
        )
        # So that shards without documents are there too.
        every = pipeline | "Shards" >> beam.Create(
            [(shard, None) for shard in range(job.num_shards)], reshuffle=False
        )
        (
            (parts, every)
            | beam.Flatten()
            | beam.GroupByKey()
            | "Join" >> beam.ParDo(JoinParts(job))
        )

    result = run(build, num_workers, beam_options)
    message = job.failure.message()
    if message is not None:
        raise DocumentError(message)
    found = result.metrics().query(MetricsFilter().with_namespace(_NAMESPACE))
    counts = {counter.key.metric.name: counter.result for counter in found["counters"]}
    (lengths,) = found["distributions"] or [None]
    counts["longest_document"] = lengths.result.max if lengths else 0
    shards = [
        json.loads(
            pathlib.Path(job.parts, f"shard-{shard:05d}.json").read_text("utf-8")
        )
        for shard in range(job.num_shards)
    ]
    return shards, counts


def _batches(item, reading):
    """Yields keys and paragraphs of some documents, and counts of lines."""

    def nothing():
        return [], [], {"bad_lines": 0, "long_lines": 0}, 0

    keys, paragraphs, lines, size = nothing()
    for source, start, end in item:
        for document in read_documents(source, reading, start, end):
            keys.append((source.number, document.position))
            paragraphs.append(document.paragraphs)
            lines["bad_lines"] += document.bad_lines
            lines["long_lines"] += document.long_lines
            size += sum(map(len, document.paragraphs)) + 1
            if size >= _CHARACTERS_PER_BATCH:
                yield keys, paragraphs, lines
                keys, paragraphs, lines, size = nothing()
    if keys:
        yield keys, paragraphs, lines
