"""Checkpoints of a run: whole or not there, and checked when they are read."""

import contextlib
import hashlib
import json
import pathlib
import shutil

import tensorflow as tf

from keras_recbert.folders import write_folder

_STATE, _VARIABLES = "state.json", "variables"
_FILES = (_STATE, f"{_VARIABLES}.index", f"{_VARIABLES}.data-00000-of-00001")


class Checkpoints:
    """The latest checkpoints of a run in a folder, one folder each.

    Each has all weights, all variables of the optimizer, and what else the run needs
    to go on. TensorFlow keeps a checksum of every tensor.

    Args:
        folder: path.
        keep: int. How many of the latest to keep.
    """

    def __init__(self, folder, keep=3):
        self.folder = pathlib.Path(folder)
        self.keep = keep

    def steps(self):
        """Steps that there are checkpoints of, ascending."""
        if not self.folder.is_dir():
            return []
        names = [path.name for path in self.folder.iterdir() if path.is_dir()]
        return sorted(
            int(name.removeprefix("step_"))
            for name in names
            if name.startswith("step_") and name.removeprefix("step_").isdigit()
        )

    def save(self, model, step, state):
        """Writes a checkpoint, then removes those too many.

        Args:
            model: compiled `keras.Model` whose optimizer is built.
            step: int. Optimizer steps done.
            state: what else the run needs; JSON.

        Raises:
            OSError: if it cannot be written, such as on a full disk; those before are
                left as they are.
        """
        try:
            with write_folder(self._path(step), _FILES, overwrite=True) as written:
                _checkpoint(model).write(str(written / _VARIABLES))
                text = json.dumps(state)
                (written / _STATE).write_text(
                    json.dumps({"sha256": _sha256(text), "state": text}),
                    encoding="utf-8",
                )
        except (OSError, tf.errors.OpError) as error:
            reason = getattr(error, "message", None) or str(error)
            raise OSError(
                f"The checkpoint of step {step} could not be written: {reason}"
            ) from error
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self._path(old))

    @contextlib.contextmanager
    def naming_the_last(self):
        """Tells, when a file of the run cannot be written, what is left of the run.

        Raises:
            OSError: in place of what was raised.
        """
        try:
            yield
        except (OSError, tf.errors.ResourceExhaustedError) as error:
            reason = getattr(error, "message", None) or str(error)
            held = self.steps()
            left = (
                f"The checkpoint of step {held[-1]} is intact: make room, and run the "
                "same command again to go on from there."
                if held
                else "There is no checkpoint yet: make room, and start again."
            )
            raise OSError(
                f"The run in {self.folder.parent} has ended: {reason}. {left}"
            ) from error

    def read_state(self):
        """State of the latest checkpoint whose state can be read, or None."""
        for step in reversed(self.steps()):
            try:
                return self._state(step)
            except (OSError, ValueError, LookupError, TypeError):
                continue  # `restore` says it
        return None

    def restore(self, model):
        """Puts the latest good checkpoint into a model and its optimizer.

        Args:
            model: as for `save`.

        Returns:
            The state it was saved with, or None if there is no checkpoint.

        Raises:
            ValueError: if there are some, and none is good.
        """
        steps = self.steps()
        for step in reversed(steps):
            try:
                state = self._state(step)
                path = str(self._path(step) / _VARIABLES)
                _checkpoint(model).read(path).assert_consumed()
                return state
            except (
                OSError,
                ValueError,
                LookupError,  # a file that is too short
                TypeError,
                AssertionError,  # variables that are not this model's
                tf.errors.OpError,
            ) as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                print(
                    f"The checkpoint {self._path(step)} is damaged and not used: "
                    f"{reason}",
                    flush=True,
                )
        if steps:
            raise ValueError(
                f"None of the {len(steps)} checkpoints in {self.folder} can be read. "
                "Remove the folder to start anew."
            )
        return None

    def _path(self, step):
        return self.folder / f"step_{step:08d}"

    def _state(self, step):
        path = self._path(step) / _STATE
        held = json.loads(path.read_text(encoding="utf-8"))
        if _sha256(held["state"]) != held["sha256"]:
            raise ValueError(f"{path.name} is not what was written.")
        return json.loads(held["state"])


def _checkpoint(model):
    return tf.train.Checkpoint(
        weights=[variable.value for variable in model.weights],
        optimizer=[variable.value for variable in model.optimizer.variables],
    )


def _sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()
