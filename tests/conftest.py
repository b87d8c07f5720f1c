"""Markers, what runs by default, and the folder of real data."""

import gc
import os
import pathlib
import sys

# Before TensorFlow is imported by anything: its C++ side logs from then on.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import pytest  # noqa: E402

MARKERS = {
    "slow": "real data, real weights, or more than about 10 seconds",
    "benchmark": "measures time; runs only when -m names it",
    "gpu": "needs a GPU; runs only when -m names it",
}
ON_REQUEST = ("benchmark", "gpu")


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(config, items):
    """Leaves out what runs on request, unless `-m` asks for it by name.

    So `-m "not slow"` runs no benchmark either, and `-m gpu` runs the GPU tests.
    """
    left_out = {name for name in ON_REQUEST if name not in config.option.markexpr}
    deselected = [item for item in items if _markers(item) & left_out]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not _markers(item) & left_out]


def pytest_collection_finish():
    """What imports made stays: no collection of garbage looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind():
    """Frees the graphs of a file of tests.

    TensorFlow keeps the gradient of each call of a `tf.custom_gradient` in a registry
    for ever, with the graph it was traced in (its issue 97697): 12 GB in the end.
    """
    yield
    if "tensorflow" not in sys.modules:
        return
    from tensorflow.python.framework import ops

    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()


def _markers(item):
    return {marker.name for marker in item.iter_markers()}


@pytest.fixture(scope="session")
def data_dir():
    """`pathlib.Path` of the real data, from RECBERT_DATA_DIR."""
    folder = os.environ.get("RECBERT_DATA_DIR")
    if not folder:
        pytest.skip("needs real data: set RECBERT_DATA_DIR to a folder that holds it")
    if not pathlib.Path(folder).is_dir():
        pytest.skip(f"needs real data: RECBERT_DATA_DIR={folder} is no folder")
    return pathlib.Path(folder)
