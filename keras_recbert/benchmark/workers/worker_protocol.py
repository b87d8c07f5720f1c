"""The worker's side of the talk with `recbert benchmark`: JSON, one object a line.

    worker: {"imported": ...}                 after the imports
    parent: {"prepare": job}
    worker: {"ready": ...}                    built, compiled, warmed up
    parent: {"time": iterations}              as often as it likes
    worker: {"seconds": [...], "peak_bytes": ...}
    parent: closes the pipe, or {"stop": true}

Standard library only: this file runs in environments that hold nothing of ours.
"""

import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback

# Shorter steps than this are repeated in a turn, after one that is not counted:
# waking up from the others' turns costs a part of a millisecond.
TURN_SECONDS = 0.5
MAX_ITERATIONS = 200


def serve(load, prepare):
    """Answers the parent until it closes the pipe.

    Args:
        load: function without arguments that does the heavy imports and returns the
            names of the distributions whose versions matter.
        prepare: function from a job (dict) to `(step, facts)`: a function without
            arguments that does the work once and ends when it is done, and a dict
            for the report (`parameters`, and `items` that one step works off).
    """
    requests, answers = _private_pipes()

    def answer(**message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        names = load()
        rss = memory_bytes("VmRSS")
        answer(imported={"versions": versions(names), "rss_bytes": rss})
        step = None
        for line in requests:
            request = json.loads(line)
            if "prepare" in request:
                step, facts = prepare(request["prepare"])
                facts["iterations"] = _warm_up(step)
                answer(ready={**facts, "peak_bytes": memory_bytes("VmHWM")})
            elif "time" in request:
                seconds = _time(step, request["time"])
                answer(seconds=seconds, peak_bytes=memory_bytes("VmHWM"))
            elif "stop" in request:
                break
    except Exception as error:
        traceback.print_exc()
        answer(error=f"{type(error).__name__}: {error}")
        sys.exit(1)


def versions(names):
    """Versions of distributions, and of Python."""
    found = {"python": platform.python_version()}
    for name in names:
        found[name] = importlib.metadata.version(name)
    return found


def memory_bytes(field):
    """`VmRSS`, what the process holds now, or `VmHWM`, the most it ever held."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return 1024 * int(line.split()[1])
    except FileNotFoundError:  # not Linux
        pass
    return None


def _private_pipes():
    """The pipes to the parent, out of reach of libraries that print or read."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return requests, answers


def _warm_up(step):
    """Runs the step until it is compiled; returns how often to run it in a turn."""
    step()
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    return max(1, min(MAX_ITERATIONS, round(TURN_SECONDS / max(seconds, 1e-9))))


def _time(step, iterations):
    if iterations > 1:
        step()
    seconds = []
    for _ in range(iterations):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return seconds
