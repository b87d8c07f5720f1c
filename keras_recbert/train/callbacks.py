"""Callbacks of a training run."""

import csv
import pathlib
import time

import keras
import numpy as np

from keras_recbert.core.folders import new_file


class TrainingClock(keras.callbacks.Callback):
    """Counts the seconds of training, across a stop too. Put it first.

    The ends of epochs, where scores are computed and checkpoints written, do not count.

    Args:
        seconds: float. Seconds before the stop.

    Attributes:
        epoch_seconds: float. Seconds of the last whole epoch, since a stop inside it.
    """

    def __init__(self, seconds=0.0):
        super().__init__()
        self._before = seconds
        self._begin = None

    @property
    def seconds(self):
        """Seconds of training since the run began."""
        if self._begin is None:
            return self._before
        return self._before + time.perf_counter() - self._begin

    def on_epoch_begin(self, epoch, logs=None):
        self._begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.epoch_seconds = time.perf_counter() - self._begin
        self._before += self.epoch_seconds
        self._begin = None


class ValidationScores(keras.callbacks.Callback):
    """Scores the model on every validation split at the end of each epoch.

    Adds `<split>_loss` and `<split>_<metric>` to the logs, where the progress bar
    and the callbacks after this one find them.

    Args:
        splits: dict of split name to `ValidationSplit`.
        metrics: sequence of metric names.
    """

    def __init__(self, splits, metrics):
        super().__init__()
        self.splits = splits
        self.metrics = tuple(metrics)

    def on_epoch_end(self, epoch, logs=None):
        for split, examples in self.splits.items():
            scores = examples.scores(self.model, self.metrics)
            logs |= {f"{split}_{name}": score for name, score in scores.items()}


class EpochLogs(keras.callbacks.Callback):
    """Keeps the logs of all epochs, and in a CSV file, across a stop too.

    `keras.callbacks.CSVLogger` adds a column `val_...` for every score, and does not
    know what was before a stop. Put this one before what keeps them.

    Args:
        path: path of the CSV, one row an epoch; written whole, then renamed.
        history: optional dict of the epochs before the stop; added to.

    Attributes:
        history: dict of name to list of float, one an epoch.
    """

    def __init__(self, path, history=None):
        super().__init__()
        self.path = pathlib.Path(path)
        self.history = {} if history is None else history

    def on_epoch_end(self, epoch, logs=None):
        for name, value in logs.items():
            self.history.setdefault(name, []).append(float(value))
        rows = enumerate(zip(*self.history.values(), strict=True), start=1)
        with (
            new_file(self.path) as written,
            written.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(["epoch", *self.history])
            writer.writerows([number, *row] for number, row in rows)


class StopEarly(keras.callbacks.Callback):
    """Ends a run after epochs without a better score, across a stop too.

    `keras.callbacks.EarlyStopping` forgets at a stop how many there were. Put it after
    `EpochLogs` and `PlaceInEpoch`.

    Args:
        history: dict of name to list of float, one an epoch: that of `EpochLogs`.
        monitor: str. Name of the score; higher is better.
        patience: optional int. Epochs; None never ends a run.
    """

    def __init__(self, history, monitor, patience):
        super().__init__()
        self.history = history
        self.monitor = monitor
        self.patience = patience

    def is_due(self):
        """Whether the run ends here."""
        scores = self.history.get(self.monitor)
        if self.patience is None or not scores:
            return False
        return len(scores) - best_epoch(scores) >= self.patience

    def on_epoch_end(self, epoch, logs=None):
        if self.is_due():
            scores = self.history[self.monitor]
            self.model.stop_training = True
            print(
                f"Stopping early: no better {self.monitor.replace('_', ' ')} since "
                f"epoch {best_epoch(scores)}.",
                flush=True,
            )


class EpochSeeds(keras.callbacks.Callback):
    """Makes the dropout of an epoch depend on nothing but the seed and its number.

    Weight files hold no state of random generators, so a run that resumes after a
    stop would drop other units than one that was not stopped.
    """

    def on_train_begin(self, logs=None):
        self._first = [
            (variable, variable.numpy()) for variable in seed_states(self.model)
        ]

    def on_epoch_begin(self, epoch, logs=None):
        for variable, (seed, counter) in self._first:
            # More steps than any epoch has between the counters of two epochs, and
            # another seed when the counters come round, after 256 epochs.
            turns, place = divmod(epoch, 256)
            variable.assign(
                [
                    (int(seed) + turns * 0x9E3779B1) % 2**32,
                    (int(counter) + place * 2**24) % 2**32,
                ]
            )


class TrainingLoss(keras.callbacks.Callback):
    """Keeps the training loss during the epochs, for the learning curve.

    Keras logs the mean since the epoch began. This takes it apart into the means of
    `every` steps, as if all batches were of one size.

    Args:
        place: `PlaceInEpoch` of the run, which stands before this one.
        every: int. Steps between two readings.
        state: optional dict that `state` gave before a stop.

    Attributes:
        step: int. Steps since the run began.
        steps: list of int, the steps of the readings.
        losses: list of float, mean loss of the steps since the reading before.
    """

    def __init__(self, place, every=20, state=None):
        super().__init__()
        self.place = place
        self.every = every
        state = state or {"step": 0, "steps": [], "losses": [], "read": [0, 0.0]}
        self.step, self.steps, self.losses = (
            state[name] for name in ("step", "steps", "losses")
        )
        self._read = state["read"]  # batches and total loss of this epoch

    def on_epoch_begin(self, epoch, logs=None):
        if self.place.batches == 0:
            self._read = [0, 0.0]

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        batches = self.place.batches
        if batches % self.every == 0:
            total = float(logs["loss"]) * batches
            read_batches, read_total = self._read
            self.steps.append(self.step)
            self.losses.append((total - read_total) / (batches - read_batches))
            self._read = [batches, total]

    def state(self):
        """What a run needs to resume. JSON."""
        kept = {name: getattr(self, name) for name in ("step", "steps", "losses")}
        return {**kept, "read": self._read}


def best_epoch(scores):
    """Number of the first epoch with the highest score, from 1; NaN is the lowest."""
    return 1 + int(np.argmax(np.nan_to_num(scores, nan=-np.inf)))


def seed_states(model):
    """The states of the generators of dropout."""
    return [
        variable
        for variable in model.non_trainable_variables
        if variable.name == "seed_generator_state"
    ]
