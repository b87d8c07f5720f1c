"""The Apache Beam pipeline that predicts for lines of JSON."""

import dataclasses
import json
import os
import pathlib
import sys
import time

import apache_beam as beam
import tensorflow as tf
from apache_beam.coders import BytesCoder
from apache_beam.metrics import Metrics
from apache_beam.ml.inference.base import ModelHandler, PredictionResult, RunInference

from keras_recbert.core.os_errors import in_words
from keras_recbert.data.rows import read_object
from keras_recbert.serving.answers import savedmodel_predictor
from keras_recbert.serving.predict_file import (
    ADDED,
    JsonLines,
    added_values,
    check_added,
)
from keras_recbert.serving.text_columns import text_columns_of

REJECTED = "rejected"
COUNTERS = ("recbert", ("predicted", REJECTED))
_SECONDS_BETWEEN_COUNTS = 0.5
# Of a text, and not of the machine, which the runner tries again.
_OF_A_ROW = (ValueError, tf.errors.InvalidArgumentError)


@dataclasses.dataclass(frozen=True)
class PredictJob:
    """What workers need to know.

    Args:
        model: str. Path of a SavedModel that every worker sees.
        head: str. The head that answers, where the model has several.
        pattern: str. Files of JSON lines, as Beam's file systems know them.
        prefix: str. Path of the output, without ending.
        ending: str. Ending of the output.
        text_columns: tuple of str.
        fields, list_fields: tuples of str, those of the model's `Predictor`.
        batch_size: int. Rows that are answered at a time.
        progress: str. A folder in which workers of this machine tell how far they are;
            None of others.
    """

    model: str
    head: str | None
    pattern: str
    prefix: str
    ending: str
    text_columns: tuple[str, ...]
    fields: tuple[str, ...]
    list_fields: tuple[str, ...]
    batch_size: int
    progress: str | None = None


def build_pipeline(pipeline, job):
    """Adds to a pipeline what answers each line of the input exactly once."""
    read = (
        pipeline
        | "Read" >> beam.io.ReadFromTextWithFilename(job.pattern, coder=BytesCoder())
        | "Parse" >> beam.ParDo(_Parse(job)).with_outputs(REJECTED, main="rows")
    )
    answered = (
        read.rows
        | "Share" >> beam.Reshuffle()  # also the rows of one large file
        | "Batch" >> _batches(job)
        | "Predict" >> RunInference(SavedModelHandler(job).with_no_batching())
        | "Format" >> beam.ParDo(_Format()).with_outputs(REJECTED, main="rows")
    )
    _ = answered.rows | "Write" >> beam.io.WriteToText(
        job.prefix, job.ending, coder=BytesCoder()
    )
    _ = (
        (read[REJECTED], answered[REJECTED])
        | beam.Flatten()
        | "Write rejected"
        >> beam.io.WriteToText(
            f"{job.prefix}.{REJECTED}",
            job.ending,
            num_shards=1,
            coder=BytesCoder(),
            skip_if_empty=True,
        )
    )


def _batches(job):
    """Puts rows of like length together, of those that a worker has at a time.

    Beam's `batch_length_fn` would gather them in a stage of its own, of which one
    worker may get nearly all.
    """
    return beam.SortAndBatchElements(
        min_batch_size=1,
        max_batch_size=job.batch_size,
        max_batch_weight=sys.maxsize,  # the model cuts what is too long
        element_size_fn=_NumCharacters(job.text_columns),
    )


class SavedModelHandler(ModelHandler):
    """Runs a SavedModel of raw strings, loaded with TensorFlow and TF Text alone.

    Beam's own handler for TensorFlow loads models by Keras 2. Where a batch fails for
    one of its rows, each is asked alone, so that the others get their answers.

    Args:
        job: `PredictJob`.

    Call arguments of `run_inference`:
        batch: sequence of tuples of the name of a file and a row, a dict of JSON.
        model: `keras_recbert.serving.answers.Predictor`.

    Returns of `run_inference`:
        List of `PredictionResult`, whose inference is a tuple of the values of
        `prediction` and `score`, or a str: why there is none.
    """

    def __init__(self, job):
        super().__init__()
        self._job = job
        self._answered, self._told = 0, 0.0

    def load_model(self):
        return savedmodel_predictor(self._job.model, self._job.head)

    def run_inference(self, batch, model, inference_args=None):
        try:
            answers = self._answers(batch, model)
        except _OF_A_ROW:
            answers = [self._answer_alone(example, model) for example in batch]
        self._tell(len(batch))
        return list(map(PredictionResult, batch, answers))

    def _answers(self, batch, predictor):
        texts = text_columns_of(predictor, self._job.text_columns, batch)
        answers = zip(predictor(texts), texts[0], strict=True)
        return [added_values(*answer, str(text)) for answer, text in answers]

    def _answer_alone(self, example, predictor):
        try:
            return self._answers([example], predictor)[0]
        except _OF_A_ROW as error:
            return in_words(error)

    def _tell(self, number):
        """Notes, now and then, how many rows this process has answered."""
        self._answered += number
        now = time.monotonic()
        if self._job.progress and now - self._told > _SECONDS_BETWEEN_COUNTS:
            path = pathlib.Path(self._job.progress, f"{os.getpid()}-{id(self)}")
            path.write_text(str(self._answered), encoding="utf-8")
            self._told = now


class _NumCharacters:
    """How long the texts of a row are."""

    def __init__(self, text_columns):
        self._text_columns = text_columns

    def __call__(self, example):
        _, row = example
        return sum(len(str(row[name])) for name in self._text_columns)


class _Parse(beam.DoFn):
    """Lines to rows; what is no row is rejected."""

    def __init__(self, job):
        self._job = job

    def process(self, element):
        path, line = element
        if not line.strip():
            return
        try:
            row = read_object(path, line.decode("utf-8"))
            check_added(path, row)
            text_columns_of(self._job, self._job.text_columns, [(path, row)])
            yield path, row
        except ValueError as error:
            yield _rejected(path, line.decode("utf-8", "backslashreplace"), str(error))


class _Format(beam.DoFn):
    """Answers to lines."""

    def __init__(self):
        self._predicted = Metrics.counter(COUNTERS[0], COUNTERS[1][0])

    def process(self, result):
        path, row = result.example
        if isinstance(result.inference, str):
            yield _rejected(path, json.dumps(row, ensure_ascii=False), result.inference)
            return
        self._predicted.inc()
        row = row | dict(zip(ADDED, result.inference, strict=True))
        yield JsonLines().rows((), [row]).removesuffix(b"\n")


def _rejected(path, record, reason):
    """A line of what has no answer: the file, the record as it was, and why."""
    Metrics.counter(*(COUNTERS[0], COUNTERS[1][1])).inc()
    row = {"input": path, "record": record, "reason": reason}
    line = JsonLines().rows((), [row]).removesuffix(b"\n")
    return beam.pvalue.TaggedOutput(REJECTED, line)
