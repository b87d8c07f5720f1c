"""Callbacks of a training run."""

import csv
import pathlib

import keras
import numpy as np

from keras_recbert.folders import new_file
from keras_recbert.metrics.glue import glue_scores


class DevScores(keras.callbacks.Callback):
    """Scores the model on every dev split at the end of each epoch.

    Adds `<split>_loss` and `<split>_<metric>` to the logs, where the progress bar
    and the callbacks after this one find them. Put it first.

    Args:
        splits: dict of split name to `(batches, labels)`.
        metrics: sequence of metric names.
    """

    def __init__(self, splits, metrics):
        super().__init__()
        self.splits = splits
        self.metrics = tuple(metrics)

    def on_epoch_end(self, epoch, logs=None):
        for split, (batches, labels) in self.splits.items():
            logits = self.model.predict(batches, verbose=0)
            logs[f"{split}_loss"] = float(self.model.loss(labels, logits))
            predictions = class_ids(logits) if logits.ndim == 2 else logits
            for name, score in glue_scores(self.metrics, labels, predictions).items():
                logs[f"{split}_{name}"] = score


class EpochLogs(keras.callbacks.Callback):
    """Keeps the logs of all epochs in a CSV file, across a stop too.

    `keras.callbacks.CSVLogger` adds a column `val_...` for every score, and does not
    read back what it wrote before a stop. Put this one before what keeps them.

    Args:
        path: path of the CSV, one row an epoch; written whole, then renamed.
        epochs_done: int. Epochs before the stop; that many rows are read back.

    Attributes:
        history: dict of name to list of float, one an epoch.

    Raises:
        ValueError: if the file lacks rows of the epochs before the stop.
    """

    def __init__(self, path, epochs_done=0):
        super().__init__()
        self.path = pathlib.Path(path)
        self.history = {}
        if epochs_done:
            self._read(epochs_done)

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

    def _read(self, epochs_done):
        rows = []
        if self.path.is_file():
            with self.path.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))[:epochs_done]
        if len(rows) < epochs_done:
            raise ValueError(
                f"The run was stopped after epoch {epochs_done}, but {self.path} has "
                f"{len(rows)} epochs. Remove the folder backup beside it to start anew."
            )
        for name in rows[0]:
            if name != "epoch":
                self.history[name] = [float(row[name]) for row in rows]


class EpochSeeds(keras.callbacks.Callback):
    """Makes the dropout of an epoch depend on nothing but the seed and its number.

    Weight files hold no state of random generators, so a run that goes on after a
    stop would drop other units than one that was not stopped.
    """

    def on_train_begin(self, logs=None):
        self._first = [
            (variable, variable.numpy())
            for variable in self.model.non_trainable_variables
            if variable.name == "seed_generator_state"
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
        every: int. Steps between two readings.

    Attributes:
        steps: list of int, steps since the run began.
        losses: list of float, mean loss of the steps since the reading before.
    """

    def __init__(self, every=20):
        super().__init__()
        self.every = every
        self.steps = []
        self.losses = []
        self._step = 0

    def on_train_begin(self, logs=None):
        self._step = int(self.model.optimizer.iterations)  # not 0 after a stop

    def on_epoch_begin(self, epoch, logs=None):
        self._read_batches, self._read_total = 0, 0.0

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        batches = batch + 1
        if batches % self.every == 0:
            total = float(logs["loss"]) * batches
            self.steps.append(self._step)
            self.losses.append(
                (total - self._read_total) / (batches - self._read_batches)
            )
            self._read_batches, self._read_total = batches, total


def class_ids(logits):
    """Likeliest class of each row of logits, int64."""
    return np.argmax(logits, axis=-1)
