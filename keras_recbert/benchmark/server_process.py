"""A server that is measured: a process that says its address when it listens."""

import os
import re
import signal
import subprocess
import tempfile
import time

from keras_recbert.benchmark.worker_process import (
    WorkerError,
    cpu_seconds,
    environment_of,
    rss_bytes,
)

# What both servers print once they listen.
LISTENS = re.compile(r"^Serving .* at (http://\S+)$", re.MULTILINE)
SHOWN = 2000  # characters of its output that an error quotes
STOPS_WITHIN = 40  # seconds


class ServerProcess:
    """A server in a process of its own, which starts at once.

    Args:
        label: str. What messages call it.
        command: list of str, the interpreter first.
        own: bool. Whether that is the interpreter of this process.
        threads: int or None. How many threads a call of the model has; None leaves it
            to the server.
        timeout: float. Seconds until it must listen.

    Attributes:
        url: str. Its address, once `wait` has returned.

    Used as a context, the process is gone at the end, whatever happened.
    """

    def __init__(self, label, command, own, threads, timeout):
        self.label = label
        self.url = None
        self._timeout = timeout
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=environment_of(own, threads),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait(self):
        """Waits until it listens.

        Raises:
            WorkerError: if it ends instead, or takes too long.
        """
        end = time.monotonic() + self._timeout
        while self.url is None:
            self.check()
            if time.monotonic() > end:
                self._fail(f"does not listen after {self._timeout:g} seconds")
            time.sleep(0.05)
            found = LISTENS.search(self._printed())
            self.url = found and found[1]

    def check(self):
        """Raises `WorkerError` if the process has ended."""
        status = self._process.poll()
        if status is not None:
            self._fail(f"ended with status {status}")

    def cpu_seconds(self):
        """Processor time that it took so far; None where nobody says."""
        return cpu_seconds(self._process.pid)

    def rss_bytes(self):
        """Memory that it holds now; None where nobody says."""
        return rss_bytes(self._process.pid)

    def close(self):
        """Ends the process: asks it, and kills it if it does not go."""
        process = self._process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOPS_WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        self._output.close()

    def _printed(self):
        # By its place, as the process writes at the position they share.
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode("utf-8", "replace")

    def _fail(self, why):
        printed = self._printed().strip()[-SHOWN:]
        shown = f" The end of what it printed:\n{printed}" if printed else ""
        raise WorkerError(f"The server of {self.label} {why}.{shown}")
