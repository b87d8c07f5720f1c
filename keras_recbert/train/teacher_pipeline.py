"""The Apache Beam pipeline that scores the texts of a transfer set.

Beam passes the numbers of shards around; texts and records go through files in the
folder of the transfer set.
"""

import dataclasses
import threading

import apache_beam as beam
import tensorflow as tf
from apache_beam.utils.shared import Shared

from keras_recbert.data.beam_runs import Failure, run, share_of_cores, this_process
from keras_recbert.data.transfer_shards import ShardWriter
from keras_recbert.train.precision import Precision
from keras_recbert.train.teacher import TaskTeacher, Teacher
from keras_recbert.train.teacher_ensemble import TeacherEnsemble

_FAILURES = (ValueError, OSError, tf.errors.OpError)


@dataclasses.dataclass(frozen=True)
class Member:
    """A teacher, as workers load it.

    Args:
        path: str. Every worker must see it.
        places: tuple of int. The teacher's logit of each of the student's.
        head_name: str. Which of several heads answers; None of one.
    """

    path: str
    places: tuple[int, ...]
    head_name: str | None = None


@dataclasses.dataclass(frozen=True)
class TeacherJob:
    """What workers need to know.

    Args:
        writer: `ShardWriter`.
        members: tuple of `Member`.
        precision: str. "float32" or "bfloat16".
        batch_size: int. Texts that the teacher reads at a time.
    """

    writer: ShardWriter
    members: tuple[Member, ...]
    precision: str
    batch_size: int

    @property
    def failure(self):
        """`Failure`, which says why a worker could not continue."""
        return Failure(self.writer.parts, {self.writer.parts: self.writer.folder})


class ScoreShards(beam.DoFn):
    """Has the teacher score shards. Each process loads it once."""

    def __init__(self, job):
        self._job = job
        self._main_process = this_process()
        self._shared = Shared()
        self._scorer = None

    def setup(self):
        host, process = self._main_process
        own_host, own_process = this_process()
        if own_host == host and own_process != process:
            # The processes of a machine cannot share its GPU, which the main one has.
            tf.config.set_visible_devices([], "GPU")
        try:
            self._scorer = self._shared.acquire(lambda: _Scorer(self._job))
        except _FAILURES as error:
            self._job.failure.tell(error)

    def process(self, number):
        if self._job.failure.is_there():
            return
        try:
            self._job.writer.work(number, self._scorer)
        except _FAILURES as error:
            self._job.failure.tell(error)


class _Scorer:
    """The teacher of a process, for one of its threads at a time."""

    def __init__(self, job):
        precision = Precision(job.precision, "that of the run")
        members = []
        for member in job.members:
            teacher = Teacher(member.path, precision, job.batch_size)
            model, name = teacher.model, member.head_name
            view = model if name is None else model.head_view(name)
            members.append(TaskTeacher(teacher, view, list(member.places), name))
        self._teacher = TeacherEnsemble(members)
        if self._teacher.checksum != job.writer.teacher:
            paths = ", ".join(member.path for member in job.members)
            raise ValueError(
                f"The teacher at {paths} changed while it was scoring texts. "
                "Put it back, or choose another folder (--transfer-set)."
            )
        self._lock = threading.Lock()

    def __call__(self, columns):
        with self._lock:
            return self._teacher.logits(columns)


def run_pipeline(job, numbers, num_workers, beam_options):
    """Has workers write shards, see `ShardWriter.work`.

    Args:
        job: `TeacherJob`.
        numbers: list of int. Numbers of the shards.
        num_workers: int. Processes of the runner on this machine.
        beam_options: list of str, options of Beam; `--runner` names another runner.

    Raises:
        RuntimeError: where a worker could not continue; says why.
    """
    job.failure.make_room()

    def build(pipeline):
        (
            pipeline
            | "Shards" >> beam.Create(numbers, reshuffle=False)
            | "Spread" >> beam.Reshuffle()
            | "Score" >> beam.ParDo(ScoreShards(job))
        )

    run(build, num_workers, beam_options, share_of_cores(num_workers))
    message = job.failure.message()
    if message is not None:
        raise RuntimeError(
            f"A worker of the teacher failed: {message} What is scored is kept; the "
            "same command resumes."
        )
