"""Several processes, or machines, that a teacher scores texts in."""

import contextlib
import os
import threading

from keras_recbert.core.beam_options import read_beam_options
from keras_recbert.core.extras import check_installed
from keras_recbert.data.prepare_progress import quiet
from keras_recbert.data.transfer_set import progress_bar, show_progress

_SECONDS_BETWEEN_LOOKS = 0.5


def check_workers(config):
    """Checks, before work starts, that the workers of a run can be had.

    Args:
        config: `keras_recbert.config.DistillationConfig`.

    Raises:
        ImportError: if they need Apache Beam, and it is not installed.
        ValueError: for an option that Beam or its runner does not take.
    """
    if _needs_beam(config):
        check_installed("`teacher_workers`", "prepare", "apache_beam")
        with quiet():
            from keras_recbert.data.beam_runs import check_options
        check_options(_beam_options(config))


def sharing(config, teacher, precision):
    """The `share_out` of `write_transfer_set` for a run.

    Args:
        config: `keras_recbert.config.DistillationConfig`.
        teacher: `TeacherEnsemble`, which each worker loads from its paths.
        precision: `Precision` of the teacher.

    Returns:
        Function as `write_transfer_set` takes it; None for one process.
    """
    if not _needs_beam(config):
        return None

    def share_out(writer, numbers):
        with quiet():
            from keras_recbert.train import teacher_pipeline
        job = teacher_pipeline.TeacherJob(
            writer,
            tuple(
                teacher_pipeline.Member(
                    os.path.abspath(member.teacher.path),
                    tuple(member.places),
                    member.head_name,
                )
                for member in teacher.members
            ),
            precision.chosen,
            config.teacher_batch_size,
        )
        with _watch(writer):
            teacher_pipeline.run_pipeline(
                job, numbers, config.teacher_workers, _beam_options(config)
            )

    return share_out


def _needs_beam(config):
    return config.teacher_workers > 1 or bool(config.beam_options)


def _beam_options(config):
    number = config.teacher_workers
    return read_beam_options(config.beam_options, number, "teacher_workers")


@contextlib.contextmanager
def _watch(writer):
    """Shows how many texts the workers have scored."""
    finished = threading.Event()
    thread = threading.Thread(target=_show, args=(writer, finished), daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _show(writer, finished):
    shown = writer.num_records()  # of workers that were stopped
    with progress_bar(shown) as bar:
        while True:
            is_last = finished.wait(_SECONDS_BETWEEN_LOOKS)
            scored = writer.num_records()
            if scored != shown:
                shown = scored
                show_progress(bar, shown)
            if is_last:
                return
