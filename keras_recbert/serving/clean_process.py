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
    request = {"path": str(path), "signature": signature, "inputs": inputs}
    process = subprocess.run(
        # Isolated: no current folder, no PYTHONPATH, no user packages.
        [sys.executable, "-I", str(STANDALONE)],
        input=json.dumps(request),
        capture_output=True,
        text=True,
    )
    if process.returncode:
        raise RuntimeError(
            f"The SavedModel at {path} did not answer in a fresh process:\n"
            f"{process.stderr[-2000:]}"
        )
    return json.loads(process.stdout)
