"""On another backend of Keras the package says so at once, and how to switch."""

import json
import os
import subprocess
import sys
import types

import pytest

from keras_recbert.keras_backend import require_tensorflow

REFUSED = r"""
import importlib, os, sys
import keras_recbert
from keras_recbert.cli import main

assert "swish_tiny" in keras_recbert.list_models()
assert keras_recbert.get_card("swish_tiny").num_parameters
assert main(["list", "swish_*"]) == 0

def refused(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except ImportError as error:
        message = str(error)
        assert "runs on TensorFlow" in message and "'torch'" in message, message
        assert "KERAS_BACKEND=tensorflow" in message and "keras.json" in message
    else:
        raise AssertionError(f"{function} {args} is not refused")

for name in ("layers", "tasks", "text", "train", "serving", "layers.dense"):
    refused(importlib.import_module, f"keras_recbert.{name}")
refused(getattr, keras_recbert, "layers")
refused(keras_recbert.build, "swish_tiny")
refused(keras_recbert.load, "model.keras")
refused(keras_recbert.count_parameters, "swish_tiny")
refused(keras_recbert.explain, "swish_tiny")
assert main(["explain", "swish_tiny"]) == 2
assert main(["quickstart"]) == 2
assert main(["predict", "savedmodel", "A text."]) == 2
loaded = {"keras", "tensorflow", "torch"} & set(sys.modules)
assert not loaded, loaded

# As nothing was imported, it can be set right.
os.environ["KERAS_BACKEND"] = "tensorflow"
assert "SwishRNN" in dir(keras_recbert.layers)
"""


def test_other_backend_is_refused_before_anything_is_imported():
    result = subprocess.run(
        [sys.executable, "-c", REFUSED],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if "TRACEBACK" not in line]
    assert len(lines) == 3  # one for each command
    assert all(line.startswith("recbert: error: keras_recbert runs") for line in lines)


@pytest.fixture
def before_keras(monkeypatch, tmp_path):
    """As in a process that has not imported Keras; returns its folder of settings."""
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    return tmp_path


def test_settings_file_of_keras_is_read(before_keras, monkeypatch):
    require_tensorflow()  # there is none
    path = before_keras / "keras.json"
    for text in ('{"backend": "tensorflow"}', '{"floatx": "float32"}', "no JSON"):
        path.write_text(text)
        require_tensorflow()
    path.write_text(json.dumps({"backend": "jax"}))
    with pytest.raises(ImportError, match="'jax', set in .*keras.json. Set it before"):
        require_tensorflow()
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    require_tensorflow()


def test_settings_file_stands_in_the_home_folder(before_keras, monkeypatch):
    monkeypatch.delenv("KERAS_HOME")
    monkeypatch.setenv("HOME", str(before_keras))
    (before_keras / ".keras").mkdir()
    (before_keras / ".keras" / "keras.json").write_text('{"backend": "torch"}')
    with pytest.raises(ImportError, match="'torch', set in .*keras.json"):
        require_tensorflow()


def test_keras_that_is_imported_counts(before_keras, monkeypatch):
    keras = types.ModuleType("keras")
    keras.config = types.SimpleNamespace(backend=lambda: "jax")
    monkeypatch.setitem(sys.modules, "keras", keras)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")  # set too late
    with pytest.raises(ImportError, match="'jax', with which .* Restart Python"):
        require_tensorflow()
