"""The folder of a fine-tuning run: one process, one run, nothing lost unasked."""

import contextlib
import dataclasses
import json
import pathlib
import shutil

from keras_recbert.config import FineTuningConfig
from keras_recbert.convert.preset_files import FILES as PRESET_FILES
from keras_recbert.folders import (
    check_folder,
    check_place,
    locked_folder,
    remove_unfinished,
)
from keras_recbert.serving.savedmodel import FILES as SAVEDMODEL_FILES
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.resume import check_same_run

# What a run writes, and nothing else. The first comes last: it makes a run finished.
RESULTS = "results.json"
CHECKPOINTS = "checkpoints"  # while it trains
OWN_DATA_FILES = (
    "predictions.csv",
    *(
        name.format(split)
        for split in ("dev", "test")
        for name in (
            "report_{}.md",
            "confusion_{}.png",
            "scatter_{}.png",
            "mistakes_{}.csv",
        )
    ),
)
RUN_FILES = (
    RESULTS,
    "vocab.txt",
    "model.keras",
    "preset",
    "savedmodel",
    "history.csv",
    "learning_curve.png",
    "tensorboard",
    *OWN_DATA_FILES,
    "best.weights.h5",  # of earlier versions
    CHECKPOINTS,
)
FOLDERS = {"preset": PRESET_FILES, "savedmodel": SAVEDMODEL_FILES}
KEPT_CHECKPOINTS = 2
WAY_OUT = "pass overwrite=True (--overwrite)"


@dataclasses.dataclass
class Run:
    """A run whose folder this process has.

    Args:
        config: `FineTuningConfig`.
        folder: path.
        checkpoints: `Checkpoints`.
        state: dict of the latest checkpoint of the run that resumes, or None.
    """

    config: FineTuningConfig
    folder: pathlib.Path
    checkpoints: Checkpoints
    state: dict | None

    def check_texts(self, checksums):
        """Checks that a run that resumes reads the texts it has read.

        Raises:
            ValueError: if it does not, unless it may be overwritten.
        """
        self.state = _same_run(self.state, self.config, self.folder, checksums)

    def begin(self, model, state):
        """Makes the model what it was, or the folder ready for a new run.

        Args:
            model: compiled `keras.Model` whose optimizer is built.
            state: dict of a new run.

        Returns:
            The state that the run resumes with, or `state`.

        Raises:
            ValueError: if there are checkpoints of the run, and none can be read.
        """
        if self.state is not None:
            return self.checkpoints.restore(model)
        self.checkpoints.folder.mkdir(exist_ok=True)  # from now on it is a run's folder
        for name in RUN_FILES:
            _remove(self.folder / name)
        self.checkpoints.folder.mkdir(exist_ok=True)
        return state


@contextlib.contextmanager
def open_run(config):
    """Gives the run of a folder that no other process works in. Writes nothing.

    Args:
        config: `FineTuningConfig`.

    Returns:
        `Run`.

    Raises:
        FileExistsError: if the folder holds a finished run, or a file of the name of
            one that this run will write, and `config.overwrite` is not set; if it
            holds a run of another kind, or something foreign where a folder is to be
            replaced.
        RuntimeError: if another process works in it.
        ValueError: if it holds a stopped run with other options, as above, or one whose
            checkpoints cannot be read.
    """
    folder = pathlib.Path(config.run_dir())
    check_place(folder)
    with locked_folder(folder):
        checkpoints = Checkpoints(folder / CHECKPOINTS, KEPT_CHECKPOINTS)
        for name, files in FOLDERS.items():
            check_folder(folder / name, files, overwrite=True)
        state = _found_state(config, folder, checkpoints)
        for name in FOLDERS:
            remove_unfinished(folder / name)
        checkpoints.remove_unfinished()
        yield Run(config, folder, checkpoints, state)


def _found_state(config, folder, checkpoints):
    """State of the run in a folder that is to resume; None to begin anew."""
    if (folder / RESULTS).exists():
        check_own(read_options(folder / RESULTS), folder)
        if not config.overwrite:
            raise FileExistsError(
                f"{folder} holds a finished run. Choose another output_dir "
                f"(--output-dir), or {WAY_OUT} to replace it. `recbert export` writes "
                "a SavedModel of its model.keras."
            )
        return None
    if checkpoints.steps():
        state = checkpoints.read_state()
        if state is None and not config.overwrite:
            raise ValueError(
                f"None of the {len(checkpoints.steps())} checkpoints in "
                f"{checkpoints.folder} can be read: {WAY_OUT} to start anew."
            )
        if state is not None:
            check_own(state["options"], folder)
        return _same_run(state, config, folder, None)
    if not checkpoints.folder.is_dir() and not config.overwrite:
        foreign = [name for name in RUN_FILES if (folder / name).exists()]
        if foreign:
            raise FileExistsError(
                f"{folder / foreign[0]} is there already, and not of a run that can "
                f"resume. Choose another output_dir (--output-dir), or {WAY_OUT} to "
                "replace it."
            )
    return None


def _same_run(state, config, folder, checksums):
    """`state`, or None if it is of another run that may be overwritten."""
    try:
        check_same_run(state, config, checksums, folder, WAY_OUT)
    except ValueError:
        if not config.overwrite:
            raise
        return None
    return state


def read_options(path):
    """Options of a finished run; None if the file is not what a run writes."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))["config"]
    except (ValueError, LookupError, TypeError):
        return None


def check_own(options, folder, kind="fine-tuning", its_option="epochs"):
    """Raises `FileExistsError` unless options are those of a run of this kind."""
    if not isinstance(options, dict) or its_option not in options:
        raise FileExistsError(
            f"{folder} holds something that is not a {kind} run, which is not "
            "replaced. Choose another output_dir (--output-dir)."
        )


def _remove(path):
    """Removes what a run wrote there, and nothing else."""
    if path.name == CHECKPOINTS:
        Checkpoints(path).clear()
    elif path.name == "tensorboard":
        for events in path.rglob("events.out.tfevents.*"):
            events.unlink()
        for folder in (path / "train", path):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    elif path.is_dir():  # checked by `open_run`
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
