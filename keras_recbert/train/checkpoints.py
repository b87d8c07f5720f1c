"""Checkpoints of a run: whole or not there, and checked when they are read."""

import contextlib
import errno
import hashlib
import json
import pathlib
import shutil

import tensorflow as tf

from keras_recbert.core.folders import remove_unfinished, write_folder
from keras_recbert.core.json_files import read_json
from keras_recbert.core.os_errors import error_number, in_words

_STATE, _VARIABLES = "state.json", "variables"
_INDEX = f"{_VARIABLES}.index"
_FILES = (_STATE, _INDEX, f"{_VARIABLES}.data-00000-of-00001")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Checkpoints:
    """The latest checkpoints of a run in a folder, one folder each.

    Each has all weights, all variables of the optimizer, and what else the run needs
    to resume. TensorFlow keeps a checksum of every tensor in its index; one checksum
    of the step, the state and that index says that they belong together.

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
        """Writes a checkpoint, then removes those that are not needed any more.

        Needed are the latest, and those that their states name under the key `needs`.
        Later steps than `step` are of a past that was damaged and left.

        Args:
            model: compiled `keras.Model` whose optimizer is built.
            step: int. Optimizer steps done.
            state: what else the run needs; JSON.

        Raises:
            OSError: if it cannot be written, such as on a full disk; those before are
                left as they are.
            RuntimeError: if a weight is not finite; nothing is written.
        """
        self._check_finite(model, step)
        try:
            with write_folder(self._path(step), _FILES, overwrite=True) as written:
                _checkpoint(model).write(str(written / _VARIABLES))
                text = json.dumps(state)
                checksum = _checksum(step, text, (written / _INDEX).read_bytes())
                (written / _STATE).write_text(
                    json.dumps({"sha256": checksum, "state": text}), encoding="utf-8"
                )
        except (OSError, tf.errors.OpError) as error:
            raise OSError(
                f"The checkpoint of step {step} could not be written: {in_words(error)}"
            ) from error
        held = [earlier for earlier in self.steps() if earlier <= step][-self.keep :]
        needed = set(held)
        for kept in held:
            with contextlib.suppress(*_UNREADABLE):  # `restore` says it
                needed.update(self._state(kept).get("needs", []))
        for other in self.steps():
            if other not in needed:
                shutil.rmtree(self._path(other))

    def clear(self):
        """Removes all checkpoints, and the folder if nothing else is in it."""
        for step in self.steps():
            shutil.rmtree(self._path(step))
        self.remove_unfinished()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def remove_unfinished(self):
        """Removes what a process left that was killed while it wrote a checkpoint."""
        if self.folder.is_dir():
            for path in list(self.folder.glob(".step_*.*")):
                name = path.name.removeprefix(".").partition(".")[0]
                remove_unfinished(self.folder / name)

    @contextlib.contextmanager
    def report_write_errors(self):
        """Reports, when a file of the run cannot be written, how to resume it.

        Raises:
            OSError: in place of what was raised.
        """
        try:
            yield
        except Exception as error:
            # Not the cause, which Keras cuts off what it lets through.
            numbers = [error_number(one) for one in (error, error.__context__)]
            if not isinstance(error, OSError) and numbers[0] is None:
                raise  # something else than a file
            is_full = any(number in _DISK_FULL for number in numbers)
            first = "make room, and " if is_full else ""
            steps = self.steps()
            left = (
                f"The checkpoint of step {steps[-1]} is intact: {first}run the same "
                "command again to resume from there."
                if steps
                else f"There is no checkpoint yet: {first}start again."
            )
            raise OSError(
                f"The run in {self.folder.parent} has ended: "
                f"{in_words(error).rstrip('.')}. {left}"
            ) from error

    def divergence(self, what, step):
        """The error for a run that found NaN or infinity.

        Args:
            what: str, such as `"the loss is nan"`.
            step: int. Optimizer steps done.
        """
        steps = self.steps()
        held = (
            f"The checkpoint of step {steps[-1]} is kept, nothing was written since. "
            if steps
            else "Nothing was written. "
        )
        return RuntimeError(
            f"Training has diverged: {what} after step {step}. {held}Start anew in "
            "another folder with a lower learning_rate or a longer warm-up."
        )

    def read_state(self):
        """State of the latest checkpoint whose state can be read, or None."""
        for step in reversed(self.steps()):
            with contextlib.suppress(*_UNREADABLE):  # `restore` says it
                return self._state(step)
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
            state = self.restore_step(model, step)
            if state is not None:
                return state
        if steps:
            raise ValueError(
                f"None of the {len(steps)} checkpoints in {self.folder} can be read. "
                "Remove the folder to start anew."
            )
        return None

    def restore_step(self, model, step):
        """Puts the checkpoint of one step into a model and its optimizer.

        Returns:
            The state it was saved with, or None if it is damaged, which is printed.
        """
        try:
            state = self._state(step)
            path = str(self._path(step) / _VARIABLES)
            _checkpoint(model).read(path).assert_consumed()
            return state
        except (
            *_UNREADABLE,
            AssertionError,  # variables that are not this model's
            tf.errors.OpError,
        ) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            print(
                f"The checkpoint {self._path(step)} is damaged and not used: {reason}",
                flush=True,
            )
            return None

    def _check_finite(self, model, step):
        for variable in [*model.weights, *model.optimizer.variables]:
            value = tf.convert_to_tensor(variable.value)
            if value.dtype.is_floating and not tf.reduce_all(tf.math.is_finite(value)):
                what = f"{variable.path} holds NaN or infinite numbers"
                raise self.divergence(what, step)

    def _path(self, step):
        return self.folder / f"step_{step:08d}"

    def _state(self, step):
        folder = self._path(step)
        held = read_json(folder / _STATE)
        found = _checksum(step, held["state"], (folder / _INDEX).read_bytes())
        if found != held["sha256"]:
            raise ValueError(
                f"{_STATE} and {_INDEX} are not what was written together for this "
                "step."
            )
        return json.loads(held["state"])


# What reading a state raises: a file that is not there, not JSON, or too short.
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)


def _checkpoint(model):
    return tf.train.Checkpoint(
        weights=[variable.value for variable in model.weights],
        optimizer=[variable.value for variable in model.optimizer.variables],
    )


def _checksum(step, state, index):
    return hashlib.sha256(f"{step}\n{state}\n".encode() + index).hexdigest()
