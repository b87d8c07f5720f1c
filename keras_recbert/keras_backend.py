"""Whether Keras runs on TensorFlow, asked before anything slow is imported."""

import json
import os
import pathlib
import sys


def require_tensorflow():
    """Raises `ImportError` if Keras runs, or will run, on anything but TensorFlow.

    Reads what Keras will read, as importing Keras for another backend takes seconds
    and cannot be taken back.
    """
    backend, source = _backend()
    if backend == "tensorflow":
        return
    again = " Restart Python, and set it" if "keras" in sys.modules else " Set it"
    raise ImportError(
        "keras_recbert runs on TensorFlow only: its layers, models and tokenizers hold "
        f"TensorFlow ops. Received: the Keras backend {backend!r}, {source}.{again} "
        "before Keras is imported: `export KERAS_BACKEND=tensorflow` in a shell, "
        "os.environ['KERAS_BACKEND'] = 'tensorflow' in Python, or "
        '"backend": "tensorflow" in ~/.keras/keras.json.'
    )


def _backend():
    """Name of the backend, and where it was set."""
    if "keras" in sys.modules:
        return sys.modules[
            "keras"
        ].config.backend(), "with which Keras is imported already"
    if os.environ.get("KERAS_BACKEND"):
        return os.environ[
            "KERAS_BACKEND"
        ], "set by the environment variable KERAS_BACKEND"
    path = _config_folder() / "keras.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):  # which Keras ignores, too
        config = {}
    return config.get("backend", "tensorflow"), f"set in {path}"


def _config_folder():
    if "KERAS_HOME" in os.environ:
        return pathlib.Path(os.environ["KERAS_HOME"]).expanduser()
    home = pathlib.Path("~").expanduser()
    return (home if os.access(home, os.W_OK) else pathlib.Path("/tmp")) / ".keras"
