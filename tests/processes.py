"""Commands as processes: started, watched, killed, finished."""

import math
import subprocess
import sys
import time


def start(*argv, **kwargs):
    """Starts `recbert` with these arguments; what it prints is read by `finish`."""
    return subprocess.Popen(
        [sys.executable, "-m", "keras_recbert.cli", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **kwargs,
    )


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
