"""Callbacks that let a run stop at any step and resume there."""

import math
import time

import keras

from keras_recbert.train.callbacks import seed_states
from keras_recbert.train.strategy import steps_done

# A checkpoint is written so rarely that it costs at most a twentieth of the time.
SECONDS_BETWEEN, SHARE = 60.0, 0.05


class StopAtNaN(keras.callbacks.Callback):
    """Ends a run at the first step whose loss is not finite.

    The loss that Keras logs is the mean since the epoch began, which stays NaN or
    infinite once it is. Put it after the callbacks that add scores to the logs, and
    before `SaveCheckpoints`.

    Args:
        checkpoints: `keras_recbert.train.checkpoints.Checkpoints`.

    Raises:
        RuntimeError: when a training step, or an epoch's scores, have such a loss.
    """

    def __init__(self, checkpoints):
        super().__init__()
        self.checkpoints = checkpoints

    def on_train_batch_end(self, batch, logs=None):
        self._check({"loss": logs["loss"]})

    def on_epoch_end(self, epoch, logs=None):
        self._check({k: v for k, v in logs.items() if k.rpartition("_")[2] == "loss"})

    def _check(self, losses):
        for name, value in losses.items():
            if not math.isfinite(value):
                name = name.replace("_", " ")
                step = steps_done(self.model.optimizer)
                raise self.checkpoints.divergence(f"the {name} is {value}", step)


class SaveCheckpoints(keras.callbacks.Callback):
    """Writes a checkpoint at the end of each epoch, and on request inside. Put it last.

    Args:
        checkpoints: `keras_recbert.train.checkpoints.Checkpoints`.
        state: function without arguments that gives what else to keep: a dict whose
            `step` is the number of optimizer steps done.
        place: optional `PlaceInEpoch`: writes inside the epochs, too.
        every: optional int. Steps between two of those inside; by default one a
            minute, or less often where writing takes long.
    """

    def __init__(self, checkpoints, state, place=None, every=None):
        super().__init__()
        self.checkpoints = checkpoints
        self.state = state
        self.place = place
        self.every = every
        self._wait = SECONDS_BETWEEN

    def on_train_begin(self, logs=None):
        self._last = time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        # The end of the epoch has its own, with scores.
        if self.place is not None and not self.place.at_end() and self._is_due():
            self._save()

    def on_epoch_end(self, epoch, logs=None):
        self._save()

    def _is_due(self):
        if self.every is not None:
            return self.place.batches % self.every == 0
        return time.monotonic() - self._last >= self._wait

    def _save(self):
        start = time.monotonic()
        state = self.state()
        self.checkpoints.save(self.model, state["step"], state)
        self._last = time.monotonic()
        self._wait = max(SECONDS_BETWEEN, (self._last - start) / SHARE)


class PlaceInEpoch(keras.callbacks.Callback):
    """Resumes inside an epoch, and says where in an epoch training is.

    Keras begins an epoch with its first batch and with empty metrics. This puts the
    metrics, and the states of the generators of dropout, back to what they were, and
    ends the first epoch early by the batches it had before the stop. Put it after
    `EpochSeeds`, and before what reads `batches`.

    Args:
        steps_per_epoch: int.
        state: dict that `state` gave, or None to begin with a whole epoch.

    Attributes:
        batches: int. Batches of this epoch that are done, before the stop too.
    """

    def __init__(self, steps_per_epoch, state=None):
        super().__init__()
        self.steps_per_epoch = steps_per_epoch
        self.batches = 0
        self._resumed = state

    def on_epoch_begin(self, epoch, logs=None):
        self.batches = 0
        if self._resumed is None:
            return
        self.batches = self._resumed["batches"]
        for name, variables in self._variables().items():
            for variable, value in zip(variables, self._resumed[name], strict=True):
                variable.assign(value)
        self._resumed = None

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.at_end():
            self.model.stop_training = True  # this epoch

    def on_epoch_end(self, epoch, logs=None):
        self.batches = 0
        self.model.stop_training = False

    def at_end(self):
        """Whether all batches of this epoch are done."""
        return self.batches == self.steps_per_epoch

    def state(self):
        """What resumes here; None between two epochs. JSON."""
        if self.batches == 0:
            return None
        values = {
            name: [variable.numpy().tolist() for variable in variables]
            for name, variables in self._variables().items()
        }
        return {"batches": self.batches, **values}

    def _variables(self):
        return {
            "seeds": seed_states(self.model),
            "metrics": self.model.metrics_variables,
        }
