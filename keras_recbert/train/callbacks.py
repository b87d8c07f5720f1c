"""Callbacks of a training run."""

import keras
import numpy as np

from keras_recbert.metrics.glue import glue_scores


class DevScores(keras.callbacks.Callback):
    """Scores the model on every dev split at the end of each epoch.

    Adds `<split>_loss` and `<split>_<metric>` to the logs, where the progress bar
    and the callbacks after this one find them. Put it first.

    Args:
        splits: dict of split name to `(batches, labels)`.
        metrics: sequence of metric names.
        batch_size: int. Only used for packed ids that are no dataset.
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


class TrainingLoss(keras.callbacks.Callback):
    """Keeps the training loss during the epochs, for the learning curve.

    Args:
        every: int. Steps between two readings.
    """

    def __init__(self, every=20):
        super().__init__()
        self.every = every
        self.steps = []
        self.losses = []
        self._step = 0

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        if self._step % self.every == 0:
            self.steps.append(self._step)
            self.losses.append(float(logs["loss"]))  # mean since the epoch began


def class_ids(logits):
    """Likeliest class of each row of logits, int64."""
    return np.argmax(logits, axis=-1)
