"""Commands as processes: started, watched, killed, finished.

Each is forked off one process that has imported TensorFlow and computed nothing, as the
import takes longer than many a run.
"""

import math
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import types

from keras_recbert.train import table_runs

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "keras_recbert.cli",
        "keras_recbert.train.fine_tuning",
        "keras_recbert.train.pretraining_run",
        "tensorflow_text",
    ]
)
PATH = [*sys.path]  # without the folders that tests put there


def fork(function, arguments, output, **environment):
    """Starts a function as a process in this folder; what it returns is the status.

    Args:
        function: function of a module.
        arguments: tuple.
        output: path, or connection that can be written to.
        **environment: variables that it has beside those of this process.

    Returns:
        `multiprocessing.Process`.
    """
    environment = {**os.environ, **environment}
    arguments = (function, arguments, environment, PATH, os.getcwd(), output)
    process = CONTEXT.Process(target=_begin, args=arguments, daemon=True)
    process.start()
    return process


def _begin(function, arguments, environment, path, folder, output):
    with output if hasattr(output, "fileno") else open(output, "ab") as written:
        os.dup2(written.fileno(), 1)
        os.dup2(written.fileno(), 2)
    os.chdir(folder)
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment)  # not that of the first process that was forked
    raise SystemExit(function(*arguments))


def _recbert(argv, eagerly=False):
    import keras

    from keras_recbert.cli import main

    if eagerly:
        always = property(lambda model: True, lambda model, value: None)
        keras.Model.run_eagerly = always
    return main(argv)


class Command:
    """A process that runs `recbert`, with the methods of `subprocess.Popen`."""

    def __init__(self, argv, environment):
        reader, writer = CONTEXT.Pipe(duplex=False)
        self._process = fork(_recbert, (argv,), writer, **environment)
        writer.close()
        self._output = os.fdopen(os.dup(reader.fileno()), errors="replace")
        reader.close()
        self.pid = self._process.pid

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def communicate(self, timeout=None):
        """Waits for the end of the process; what it printed, and None."""
        read = []
        reading = threading.Thread(target=lambda: read.append(self._output.read()))
        reading.start()
        reading.join(timeout)
        if reading.is_alive():
            raise subprocess.TimeoutExpired("recbert", timeout)
        self._process.join()
        return "".join(read), None


class Popen:
    """What tables use of `subprocess.Popen`. Models train op by op: few steps."""

    def __init__(self, command, stdin, stdout, stderr, env):
        argv = command[command.index("keras_recbert.cli") + 1 :]
        self._process = fork(_recbert, (argv, True), stdout.name, **(env or {}))
        self.terminate = self._process.terminate
        self.kill = self._process.kill

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self._process.exitcode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self._process.is_alive():
            raise subprocess.TimeoutExpired("recbert", timeout)


def fork_runs_of_tables(monkeypatch):
    """Has `recbert table` fork the processes of its runs: they import nothing."""
    names = ("DEVNULL", "STDOUT", "TimeoutExpired")
    used = {name: getattr(subprocess, name) for name in names}
    monkeypatch.setattr(
        table_runs, "subprocess", types.SimpleNamespace(Popen=Popen, **used)
    )


def start(*argv, **environment):
    """Starts `recbert` with these arguments; what it prints is read by `finish`."""
    return Command([*map(str, argv)], environment)


def finish(process, status=0):
    """Waits for the end of a process, checks its status; what it printed."""
    output = process.communicate(timeout=600)[0]
    assert process.returncode == status, output[-3000:]
    return output


def wait_for(process, there, seconds=math.inf):
    """Until `there()` is true, or so many seconds; the process must not end before."""
    until = time.monotonic() + seconds
    while not there() and time.monotonic() < until:
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(0.002)
