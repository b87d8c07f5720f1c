"""Asks a SavedModel in a fresh process that cannot import this package."""

import json
import pathlib
import subprocess
import sys

STANDALONE = pathlib.Path(__file__).with_name("standalone.py")


def ask_in_clean_process(path, inputs, signature="serving_default"):
    """Loads a SavedModel in a new Python and returns its answers.

    Args:
        path: str or path. Folder of the SavedModel.
        inputs: dict of input name to list of values, such as `{"text": [...]}`.
        signature: str. Which signature to ask.

    Returns:
        dict of output name to list of values, one an example.

    Raises:
        RuntimeError: if the process fails; with the end of what it printed.
    """
    (answer,) = replay_in_clean_process(path, [(signature, inputs)])["answers"]
    return answer


def replay_in_clean_process(path, requests):
    """Loads a SavedModel in a new Python and asks it one request after the other.

    Args:
        path: str or path. Folder of the SavedModel.
        requests: list of tuples of the name of a signature and a dict of input name to
            list of values.

    Returns:
        dict of `answers`, a list of dicts of output name to list of values; `seconds`,
        those of each request; and `ops`, names of those that TensorFlow has without
        TF Text.

    Raises:
        RuntimeError: if the process fails; with the end of what it printed.
    """
    process = subprocess.run(
        # Isolated: no current folder, no PYTHONPATH, no user packages.
        [sys.executable, "-I", str(STANDALONE)],
        input=json.dumps({"path": str(path), "requests": requests}),
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise RuntimeError(
            f"The SavedModel at {path} did not answer in a fresh process:\n"
            f"{process.stderr[-2000:]}"
        )
    return json.loads(process.stdout)
