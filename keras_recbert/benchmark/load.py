"""Load on a server: the parent's side of `workers/load_generator.py`."""

import collections
import contextlib
import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
import threading

import numpy as np

from keras_recbert.benchmark.measuring import Others
from keras_recbert.benchmark.worker_process import WORKERS, WorkerError

GENERATOR = WORKERS / "load_generator.py"
PERCENTILES = (50, 95, 99)


@dataclasses.dataclass(frozen=True)
class Turn:
    """What a server did in a turn.

    Attributes:
        rate: float. Answers a second.
        latency: dict of percentile, of `PERCENTILES`, to milliseconds.
        requests: int. Answers of status 200.
        failed: dict of reason to number of the other requests.
        server_cores: float or None. Processor time of the server in a second.
        load_cores: float. That of the load generator.
        others: float or None. Part of the processors that the rest of the machine took.
    """

    rate: float
    latency: dict
    requests: int
    failed: dict
    server_cores: float | None
    load_cores: float
    others: float | None


def body_of(texts):
    """A request for some texts, which both servers take."""
    return json.dumps({"instances": list(texts)})


def run_load(job, timeout, on_window=lambda window: None):
    """Runs the load generator in a process of its own.

    Args:
        job: dict, see `workers/load_generator.py`.
        timeout: float. Seconds after which it is ended.
        on_window: function of the dict of each window, called when it is over.

    Returns:
        List of dict, the windows.

    Raises:
        WorkerError: if it fails, or takes too long.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, str(GENERATOR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        limit = threading.Timer(timeout, process.kill)
        limit.start()
        windows = []
        try:
            # Where it ended before it read all, its status says more.
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(json.dumps(job) + "\n")
            for line in process.stdout:
                windows.append(json.loads(line))
                on_window(windows[-1])
            status = process.wait()
        finally:
            limit.cancel()
            process.kill()
            process.wait()
            process.stdout.close()
        if status:
            errors.seek(0)
            shown = errors.read().decode("utf-8", "replace")[-2000:]
            raise WorkerError(
                f"The load generator of {job['url']} ended with status {status} "
                f"({timeout:g} seconds are its limit). {shown}"
            )
    return windows


def measure_turn(server, job, timeout):
    """A turn of a server under load.

    Args:
        server: `ServerProcess`.
        job: dict as for `run_load`, without windows.
        timeout: float. Seconds.

    Returns:
        `Turn`.

    Raises:
        WorkerError: if the load generator or the server ends, or nothing is answered.
    """
    before = server.cpu_seconds()
    with Others(_WithLoad(server)) as others:
        (window,) = run_load(job, timeout)
    server.check()
    if not window["latencies"]:
        raise WorkerError(
            f"The server of {server.label} answered no request. Failed: "
            f"{window['failed']}."
        )
    seconds = window["seconds"]
    taken = None if before is None else (server.cpu_seconds() - before) / seconds
    return Turn(
        rate=len(window["latencies"]) / seconds,
        latency=percentiles(window["latencies"]),
        requests=len(window["latencies"]),
        failed=window["failed"],
        server_cores=taken,
        load_cores=window["cpu_seconds"] / seconds,
        others=others.share,
    )


class _WithLoad:
    """A server and the load generator, for `Others`: both belong to the turn."""

    def __init__(self, server):
        self._server = server

    def cpu_seconds(self):
        own = self._server.cpu_seconds()
        # Of processes that ended, as the load generator has after its turn.
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return None if own is None else own + ended.ru_utime + ended.ru_stime


def percentiles(latencies):
    """dict of percentile, of `PERCENTILES`, to milliseconds; empty without any."""
    if not latencies:
        return {}
    values = 1000 * np.percentile(latencies, PERCENTILES)
    return dict(zip(PERCENTILES, values.tolist(), strict=True))


def all_failed(turns):
    """dict of reason to the number of failed requests of some turns."""
    failed = collections.Counter()
    for turn in turns:
        failed.update(turn.failed)
    return dict(failed)


def mean_of_passes(window, size):
    """Seconds of a request, from walks of one client through the same requests.

    Args:
        window: dict of `run_load`, of one client.
        size: int. Requests of a walk.

    Returns:
        float, the median of the walks of the mean of each.

    Raises:
        WorkerError: if a request failed.
    """
    if window["failed"]:
        raise WorkerError(f"Requests of one client failed: {window['failed']}.")
    walks = np.reshape(window["latencies"], (-1, size))
    return float(np.median(walks.mean(axis=1)))
