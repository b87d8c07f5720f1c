"""Checks the folder of a run: whether a run begins in it, resumes, or is refused."""

import dataclasses
import shutil

from keras_recbert.convert.preset_files import FILES as PRESET_FILES
from keras_recbert.core.folders import check_folder
from keras_recbert.core.json_files import read_json
from keras_recbert.train.checkpoints import Checkpoints

RESULTS = "results.json"  # written last: it makes a run a finished one
CHECKPOINTS = "checkpoints"
MODEL, PRESET, HISTORY = "model.keras", "preset", "history.csv"
TENSORBOARD = "tensorboard"
SHARED_FILES = (RESULTS, MODEL, PRESET, HISTORY, TENSORBOARD, CHECKPOINTS)
WAY_OUT = "pass overwrite=True (--overwrite)"


@dataclasses.dataclass(frozen=True)
class RunKind:
    """A kind of run, as its folder shows it.

    Args:
        name: str, such as `"fine-tuning"`. Stands in checkpoints and results.
        own_files: tuple of str. What it writes beside `SHARED_FILES`.
        own_folders: dict of each folder among them to the files that it holds.
        next_step: str. What to do with a finished run; `{}` stands for its folder.
        keeps_checkpoints: bool. Whether those of a finished run stay.
    """

    name: str
    own_files: tuple
    own_folders: dict
    next_step: str
    keeps_checkpoints: bool = False

    @property
    def files(self):
        """Names of all that a run writes into its folder, and nothing else."""
        return (*SHARED_FILES, *self.own_files)

    @property
    def folders(self):
        """dict of each folder that is replaced as a whole to the files it holds."""
        return {PRESET: PRESET_FILES, **self.own_folders}


def find_state(config, kind, checkpoints):
    """Finds the run in a folder that is to resume. Changes nothing.

    Args:
        config: `keras_recbert.config.RunConfig`.
        kind: `RunKind`.
        checkpoints: `Checkpoints` of the folder.

    Returns:
        dict, the state of its latest checkpoint; None to begin a new run.

    Raises:
        FileExistsError, ValueError: as `keras_recbert.train.run.open_run`.
    """
    folder = checkpoints.folder.parent
    for name, files in kind.folders.items():
        check_folder(folder / name, files, overwrite=True)
    if (folder / RESULTS).exists():
        _check_kind(_read_results(folder / RESULTS), folder, kind)
        if not config.overwrite:
            raise FileExistsError(
                f"{folder} holds a finished run. Choose another output_dir "
                f"(--output-dir), or {WAY_OUT} to replace it. "
                f"{kind.next_step.format(folder)}"
            )
        return None
    if checkpoints.steps():
        state = checkpoints.read_state()
        if state is not None:
            _check_kind(state, folder, kind)
        elif not config.overwrite:
            raise ValueError(
                f"None of the {len(checkpoints.steps())} checkpoints in "
                f"{checkpoints.folder} can be read: {WAY_OUT} to start anew."
            )
        return same_run(state, config, folder)
    if not checkpoints.folder.is_dir() and not config.overwrite:
        foreign = [name for name in kind.files if (folder / name).exists()]
        if foreign:
            raise FileExistsError(
                f"{folder / foreign[0]} is there already, and not of a run that can "
                f"resume. Choose another output_dir (--output-dir), or {WAY_OUT} to "
                "replace it."
            )
    return None


def same_run(state, config, folder, checksums=None):
    """Checks that the run in a folder is one of these options and texts.

    Args:
        state: dict of its latest checkpoint, or None if there is none.
        config: `keras_recbert.config.RunConfig`.
        folder: path.
        checksums: JSON. Of the texts; None before they are read.

    Returns:
        `state`; None if it is of another run, which may be overwritten.

    Raises:
        ValueError: if it is of another run, which may not.
    """
    if state is None:
        return None
    changed = config.changes(state["options"])
    if not changed and checksums is not None and checksums != state["checksums"]:
        changed = "another text in the files to learn from or to score on"
    if not changed:
        return state
    if config.overwrite:
        return None
    raise ValueError(
        f"{folder} holds a run with other options: {changed}. Repeat the options to "
        f"resume it, {WAY_OUT} to start anew, or choose another output_dir."
    )


def clear_folder(folder, kind):
    """Makes a folder that of a new run: removes what a run of this kind wrote there.

    Args:
        folder: path, which `find_state` has checked.
        kind: `RunKind`.
    """
    # First, so that it is a run's folder at any moment that follows.
    (folder / CHECKPOINTS).mkdir(exist_ok=True)
    for name in kind.files:
        _remove(folder / name)
    (folder / CHECKPOINTS).mkdir(exist_ok=True)


def _read_results(path):
    """What a finished run wrote; None if the file is not what a run writes."""
    try:
        return read_json(path)
    except ValueError:  # no JSON, or no text
        return None


def _check_kind(held, folder, kind):
    """Raises `FileExistsError` unless a state or results are of this kind of run."""
    held = held if isinstance(held, dict) else {}
    if held.get("kind") == kind.name:
        return
    if "kind" not in held and held.keys() & {"config", "options"}:
        raise FileExistsError(
            f"{folder} holds a run of an older version of keras_recbert, which this "
            "one neither resumes nor replaces. Remove the folder, or choose another "
            "output_dir (--output-dir)."
        )
    raise FileExistsError(
        f"{folder} holds something that is not a {kind.name} run, which is not "
        "replaced. Choose another output_dir (--output-dir)."
    )


def _remove(path):
    """Removes what a run wrote there, and nothing else."""
    if path.name == CHECKPOINTS:
        Checkpoints(path).clear()
    elif path.name == TENSORBOARD:
        for events in path.rglob("events.out.tfevents.*"):
            events.unlink()
        for folder in (path / "train", path):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    elif path.is_dir():  # checked by `find_state`
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
