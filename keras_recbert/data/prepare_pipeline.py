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
import re
import shlex
import shutil
import socket
import sys
import time
import uuid
import zlib

import apache_beam as beam
import tensorflow as tf
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from keras_recbert.core.os_errors import in_words
from keras_recbert.data.documents import DocumentError, Reading, read_documents
from keras_recbert.data.prepare_progress import quiet
from keras_recbert.data.prepare_tokens import DocumentTokenizer, to_record

_NAMESPACE = "recbert"
_CHARACTERS_PER_BATCH = 1 << 20
_FAILURES = (DocumentError, OSError, tf.errors.OpError)
_ROOM = 4096
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
        """File that says why a worker could not continue."""
        return os.path.join(self.parts, "failure")

    def make_room(self):
        """Makes `fail` possible where the disk is full."""
        pathlib.Path(self._room).write_bytes(b" " * _ROOM)

    def fail(self, error):
        """Ends the work; the main process raises, where no traceback buries it."""
        # Users know no parts and no temporary folder, only what is to be written.
        text = re.sub(
            rf"{re.escape(self.folder)}[^\s:;'\"]*", self.output, in_words(error)
        )
        message = text.encode("utf-8", "replace")
        try:
            with open(self._room, "r+b") as file:
                file.write(message[:_ROOM])
            os.replace(self._room, self.failure)
        except FileNotFoundError:
            pass  # another worker failed first

    @property
    def _room(self):
        return os.path.join(self.parts, "room-for-failure")

    def part(self, item, shard):
        return os.path.join(self.parts, f"part-{item:06d}-{shard:05d}")


class WriteParts(beam.DoFn):
    """Cuts an item of work into word pieces, and writes a file for each shard."""

    def __init__(self, job):
        self._job = job
        self._main_process = _process()

    def setup(self):
        if _process() != self._main_process:
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
            self._job.fail(error)

    def _write(self, number, item):
        job = self._job
        counts = dict.fromkeys(_SIZES, 0)
        # Work that is done again, after a worker was lost, must not meet itself.
        attempt = uuid.uuid4().hex
        writers, sizes = {}, {}
        said = time.monotonic()
        if os.path.exists(job.failure):
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
                if os.path.exists(job.failure):
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
        _replace(path, json.dumps({name: int(counts[name]) for name in _SIZES}))


class JoinParts(beam.DoFn):
    """Joins the parts of a shard in the order of the work, and describes it.

    TFRecord files have neither head nor foot: one after the other they are one.
    """

    def __init__(self, job):
        self._job = job

    def process(self, shard_and_parts):
        if os.path.exists(self._job.failure):
            return
        try:
            self._join(*shard_and_parts)
        except _FAILURES as error:
            self._job.fail(error)

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
        _replace(described, json.dumps(description))


def check_options(beam_options):
    """Checks options of Beam, which itself leaves out what it does not know.

    Args:
        beam_options: list of str.

    Raises:
        ValueError: for an option that Beam or its runner does not take.
    """

    def refuse(message):
        raise ValueError(
            f"`beam_options`: {message}. Received: {shlex.join(beam_options)!r}. See "
            "https://beam.apache.org/documentation/runners/capability-matrix/ for "
            "runners and their options."
        )

    if {"-h", "--help"} & set(beam_options):
        refuse("Beam's help is no work to do")

    def check(parser):
        parser.error = refuse
        _, unknown = parser.parse_known_args(beam_options)
        if unknown:
            refuse(f"Beam has no option {shlex.join(unknown)}")

    options = PipelineOptions(beam_options)
    with quiet():
        options.get_all_options(add_extra_args_fn=check)
        if options.view_as(StandardOptions).runner:
            try:
                beam.Pipeline(options=options)  # checks the runner and what it needs
            except ValueError as error:
                refuse(" ".join(str(error).split()))


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
    job.make_room()
    options = PipelineOptions(beam_options)
    if options.view_as(StandardOptions).runner:
        return _run(job, items, beam.Pipeline(options=options))
    # Beam's own name for this runner, DirectRunner, would first try Prism, a program
    # that it downloads.
    environment = None
    if num_workers > 1:
        options.view_as(DirectOptions).direct_num_workers = num_workers
        command = f"{shlex.quote(sys.executable)} -m keras_recbert.data.prepare_worker"
        environment = SubprocessSDKEnvironment.from_command_string(command)
    pipeline = beam.Pipeline(runner=FnApiRunner(environment), options=options)
    with quiet():
        return _run(job, items, pipeline)


def _run(job, items, pipeline):
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
    result = pipeline.run()
    result.wait_until_finish()
    failure = pathlib.Path(job.failure)
    if failure.exists():
        message = failure.read_bytes().decode("utf-8", "replace").strip()
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


def _replace(path, text):
    temporary = f"{path}.{uuid.uuid4().hex}"
    pathlib.Path(temporary).write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _process():
    return socket.gethostname(), os.getpid()
