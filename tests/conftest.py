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
    "benchmark": "measures time, or scores beside others; runs only when -m names it",
    "gpu": "needs a GPU; runs only when -m names it",
}
ON_REQUEST = ("benchmark", "gpu")


# Files that take longest. Workers that begin with them end at the same time.
LONGEST_FIRST = (
    "train/test_two_devices.py",
    "test_docs_commands.py",
    "train/test_multi_worker.py",
    "train/test_pretraining_restart.py",
    "train/test_pretraining_workers.py",
    "convert/test_minilm.py",
    "train/test_fine_tuning_restart.py",
    "train/test_quickstart.py",
    "train/test_distillation.py",
    "train/test_several_tasks.py",
    "train/test_run.py",
    "data/test_task_contract.py",
    "tasks/test_pretrainer.py",
    "train/test_own_data_runs.py",
    "models/test_gradient_checkpointing.py",
    "test_readme.py",
    "test_notebooks.py",
    "serving/test_savedmodel.py",
    "tasks/test_multiple_choice.py",
    "tasks/test_question_answering.py",
    "train/test_training_run.py",
    "tasks/test_text_model.py",
    "tasks/test_token_classifier.py",
    "test_extending.py",
    "models/test_model_contract.py",
)


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    if config.option.durations is None:
        config.option.durations = 40  # what a faster suite would begin with
    # Tracing makes many objects that stay while a file of tests runs: to look through
    # them again and again takes a twentieth of its time.
    gc.set_threshold(100_000, 50, 1_000)
    # xdist would begin with the files of most tests, which are those of short ones.
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(config, items):
    """Leaves out what runs on request, unless `-m` asks for it by name.

    So `-m "not slow"` runs no benchmark either, and `-m gpu` runs the GPU tests.
    """
    left_out = {name for name in ON_REQUEST if name not in config.option.markexpr}
    deselected = [item for item in items if _markers(item) & left_out]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not _markers(item) & left_out]
    folder = pathlib.Path(__file__).parent
    place = {folder / name: index for index, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


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
    gc.freeze()  # what is alive now is of modules, and stays


def _markers(item):
    return {marker.name for marker in item.iter_markers()}


@pytest.fixture
def eager_steps(monkeypatch):
    """Models train and predict op by op: tracing takes longer than a few steps."""
    import keras

    always = property(lambda model: True, lambda model, value: None)
    monkeypatch.setattr(keras.Model, "run_eagerly", always)


@pytest.fixture(scope="module")
def eager_module():
    """As `eager_steps`, for fixtures of the module too."""
    import keras

    with pytest.MonkeyPatch.context() as patch:
        always = property(lambda model: True, lambda model, value: None)
        patch.setattr(keras.Model, "run_eagerly", always)
        yield


@pytest.fixture(scope="session")
def data_dir():
    """`pathlib.Path` of the real data, from RECBERT_DATA_DIR."""
    folder = os.environ.get("RECBERT_DATA_DIR")
    if not folder:
        pytest.skip("needs real data: set RECBERT_DATA_DIR to a folder that holds it")
    if not pathlib.Path(folder).is_dir():
        pytest.skip(f"needs real data: RECBERT_DATA_DIR={folder} is no folder")
    return pathlib.Path(folder)
