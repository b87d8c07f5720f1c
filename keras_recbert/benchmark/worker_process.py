"""The parent's side of a worker: a process that does one kind of step on request."""

import collections
import json
import os
import pathlib
import queue
import re
import subprocess
import tempfile
import threading

WORKERS = pathlib.Path(__file__).with_name("workers")
STDERR_LINES = 15
# What decides, before a framework is imported, how many threads it starts.
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


class WorkerError(RuntimeError):
    """A worker failed, died or did not answer."""


def environment_of(own, threads=None, variables=None):
    """Environment variables of a process that is measured.

    Args:
        own: bool. Whether it runs in the interpreter of this process: others must not
            see its PYTHONPATH.
        threads: int or None. How many threads compute; None leaves it to the process.
        variables: dict of str to str. What it has besides.

    Returns:
        dict of str.
    """
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # Processors are compared: some of the peers could not use a GPU here.
    environment["CUDA_VISIBLE_DEVICES"] = ""
    environment["TOKENIZERS_PARALLELISM"] = "false" if threads == 1 else "true"
    environment["HF_HUB_OFFLINE"] = "1"
    if threads is not None:
        environment |= dict.fromkeys(THREADS, str(threads))
    if not own:
        environment.pop("PYTHONPATH", None)
    return environment | (variables or {})


def cpu_seconds(pid):
    """Processor time that all threads of a process took; None where nobody says."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:  # not Linux
        return None
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def rss_bytes(pid):
    """Memory that a process holds now; None where nobody says."""
    try:
        pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    except FileNotFoundError:  # not Linux
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """A process of its own, which starts with its imports at once.

    Args:
        label: str. What messages call it.
        script: str or path. File in `workers`, or any path.
        python: str. Interpreter of the environment to run it in.
        own: bool. Whether that is the interpreter of this process: others must not
            see its PYTHONPATH.
        timeout: float. Seconds after which a request counts as failed.
        threads, variables: as for `environment_of`.

    Used as a context, the process is gone at the end, whatever happened.
    """

    def __init__(
        self,
        label,
        script,
        python,
        own=True,
        timeout=900.0,
        threads=None,
        variables=None,
    ):
        self.label = label
        self.timeout = timeout
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        self._process = subprocess.Popen(
            [python, str(WORKERS / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment_of(own, threads, variables),
            text=True,
            encoding="utf-8",
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def imported(self):
        """Waits for the imports; returns `versions` and `rss_bytes`."""
        return self._answer("imported", "import its framework")

    def prepare(self, job):
        """Builds and warms up; returns the facts of `worker_protocol.serve`."""
        self._ask(prepare=job)
        return self._answer("ready", "build and warm up")

    def time(self, iterations):
        """Runs the step; returns the seconds of each time, and the peak memory."""
        self._ask(time=iterations)
        answer = self._answer(None, f"run {iterations} steps")
        return answer["seconds"], answer["peak_bytes"]

    def cpu_seconds(self):
        """Processor time that all its threads took so far; None where nobody says."""
        return cpu_seconds(self._process.pid)

    def close(self):
        """Ends the process: asks it, and kills it if it does not go."""
        process = self._process
        if process.poll() is None:
            process.kill()  # nothing of it is to be kept
        process.wait()
        process.stdin.close()
        self._stderr.close()

    def _read(self):
        with self._process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _ask(self, **request):
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._fail("ended before it was asked anything")

    def _answer(self, key, what):
        try:
            line = self._lines.get(timeout=self.timeout)
        except queue.Empty:
            self._fail(f"took longer than {self.timeout:g} seconds to {what}")
        if line is None:
            status = self._process.wait()
            self._fail(f"ended with status {status} when it was to {what}")
        answer = json.loads(line)
        if "error" in answer:
            self._fail(f"could not {what}: {answer['error']}")
        return answer if key is None else answer[key]

    def _fail(self, why):
        end = self._end_of_stderr()
        self.close()
        shown = f" The end of what it printed:\n{end}" if end else ""
        message = f"The worker of {self.label} {why}.{shown}"
        raise WorkerError(re.sub(r"\x1b\[[\d;]*m", "", message))  # Keras's bold

    def _end_of_stderr(self):
        # Through a descriptor of our own: the worker's must not move.
        with open(os.dup(self._stderr.fileno()), "rb") as stderr:
            size = os.fstat(stderr.fileno()).st_size
            text = os.pread(stderr.fileno(), 20000, max(0, size - 20000))
        lines = text.decode("utf-8", "replace").splitlines()
        return "\n".join(collections.deque(lines, maxlen=STDERR_LINES))
