"""What the Apache Beam pipelines of this package have in common."""

import os
import pathlib
import re
import shlex
import socket
import sys
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from keras_recbert.core.machine import num_cores
from keras_recbert.core.os_errors import in_words
from keras_recbert.data.prepare_progress import quiet

_ROOM = 4096


class Failure:
    """Why a worker could not continue, told where no traceback buries it.

    Args:
        folder: str. Folder of intermediate files, which every worker sees.
        names: dict of str to str. Folders that users do not know, with those that they
            know, for the message.
    """

    def __init__(self, folder, names):
        self.path = os.path.join(folder, "failure")
        self._room = os.path.join(folder, "room-for-failure")
        self._names = names

    def make_room(self):
        """Makes `tell` possible where the disk is full; forgets an earlier failure."""
        pathlib.Path(self.path).unlink(missing_ok=True)
        pathlib.Path(self._room).write_bytes(b" " * _ROOM)

    def tell(self, error):
        """Ends the work; the main process raises."""
        text = in_words(error)
        for written, known in self._names.items():
            text = re.sub(rf"{re.escape(written)}[^\s:;'\"]*", known, text)
        message = text.encode("utf-8", "replace")
        try:
            with open(self._room, "r+b") as file:
                file.write(message[:_ROOM])
            os.replace(self._room, self.path)
        except FileNotFoundError:
            pass  # another worker failed first

    def is_there(self):
        """Whether a worker failed."""
        return os.path.exists(self.path)

    def message(self):
        """What the first worker that failed said, or None."""
        if not self.is_there():
            return None
        text = pathlib.Path(self.path).read_bytes().decode("utf-8", "replace")
        return text.strip()


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


def run(build, num_workers, beam_options, variables=None):
    """Runs a pipeline to its end.

    Args:
        build: function of a `beam.Pipeline`, which it adds transforms to.
        num_workers: int. Processes of the runner on this machine.
        beam_options: list of str, options of Beam; `--runner` names another runner.
        variables: dict of str to str, variables of the environment of these processes.

    Returns:
        Beam's result.
    """
    options = PipelineOptions(beam_options)
    if options.view_as(StandardOptions).runner:
        return _run(build, beam.Pipeline(options=options))
    # Beam's own name for this runner, DirectRunner, would first try Prism, a program
    # that it downloads.
    environment = None
    if num_workers > 1:
        options.view_as(DirectOptions).direct_num_workers = num_workers
        words = [f"{name}={value}" for name, value in (variables or {}).items()]
        words += [sys.executable, "-m", "keras_recbert.data.beam_worker"]
        command = shlex.join(words)
        environment = SubprocessSDKEnvironment.from_command_string(command)
    pipeline = beam.Pipeline(runner=FnApiRunner(environment), options=options)
    with quiet():
        return _run(build, pipeline)


def _run(build, pipeline):
    # In a notebook Beam would name transforms after cells, by modules of its own that
    # fail to import beside pandas 3.
    with mock.patch.object(beam.pipeline, "alter_label_if_ipython"):
        build(pipeline)
        result = pipeline.run()
        result.wait_until_finish()
    return result


def this_process():
    """Machine and number of this process."""
    return socket.gethostname(), os.getpid()


def share_of_cores(num_workers):
    """Variables of the environment that give each process its share of the cores."""
    share = str(max(1, num_cores() // num_workers))
    names = ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS")
    return {name: os.environ.get(name, share) for name in names}
