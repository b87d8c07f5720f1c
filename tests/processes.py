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

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["keras_recbert.cli", "keras_recbert.train.fine_tuning", "tensorflow_text"]
)
PATH = [*sys.path]  # without the folders that tests put there


class Command:
    """A process that runs `recbert`, with the methods of `subprocess.Popen`."""

    def __init__(self, argv, environment):
        reader, writer = CONTEXT.Pipe(duplex=False)
        arguments = (argv, {**os.environ, **environment}, PATH, writer)
        self._process = CONTEXT.Process(target=_run, args=arguments, daemon=True)
        self._process.start()
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


def _run(argv, environment, path, writer):
    os.dup2(writer.fileno(), 1)
    os.dup2(writer.fileno(), 2)
    writer.close()
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment)  # not that of the first process that was forked
    from keras_recbert.cli import main

    raise SystemExit(main(argv))


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
