"""Callbacks of a pre-training run, whose epochs end at checkpoints."""

import math
import time

import keras
import numpy as np


class IntervalScores(keras.callbacks.Callback):
    """Adds speed and validation scores to the logs of an epoch.

    `seconds` are those of the clock; `tokens_per_second` counts all positions of the
    batches, and `seconds_per_step` is the median. Scores of the validation corpora are
    those of `evaluate`.

    Args:
        validation: dict of name to a dataset for `model.evaluate`.
        tokens: function of an epoch to the positions of its batches.
        clock: `TrainingClock` of the run. Put this callback after it.
        accumulation_steps: int. Batches of an optimizer step.
    """

    def __init__(self, validation, tokens, clock, accumulation_steps=1):
        super().__init__()
        self.validation = validation
        self.tokens = tokens
        self.clock = clock
        self.accumulation_steps = accumulation_steps
        self._batch_seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        self._batch_begin = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self._batch_seconds.append(time.perf_counter() - self._batch_begin)

    def on_epoch_end(self, epoch, logs=None):
        logs["seconds"] = self.clock.seconds
        logs["tokens_per_second"] = self.tokens(epoch) / self.clock.epoch_seconds
        steps = np.reshape(self._batch_seconds, (-1, self.accumulation_steps)).sum(1)
        logs["seconds_per_step"] = float(np.median(steps))
        self._batch_seconds = []
        logs |= evaluate(self.model, self.validation)


def evaluate(model, validation, prefix="val", verbose=0):
    """Scores of a model on validation corpora: a dict of `val_NAME_SCORE`.

    `loss`, and of each objective means over all its predictions, such as
    `masked_lm_cross_entropy`; of masked_lm and causal_lm `exp` of it, the perplexity.
    (The losses of single objectives, which Keras averages over batches of whatever
    size, are left out.)

    Args:
        model: compiled `Pretrainer`.
        validation: dict of name to a dataset for `model.evaluate`.
        prefix: str. What the names of the scores begin with.
        verbose: int. As for `model.evaluate`.
    """
    scores = {}
    for name, batches in validation.items():
        found = model.evaluate(batches, verbose=verbose, return_dict=True)
        for key, value in found.items():
            if key.endswith("_loss"):
                continue
            scores[f"{prefix}_{name}_{key}"] = value
            if key.endswith("lm_cross_entropy"):
                key = key.replace("cross_entropy", "perplexity")
                scores[f"{prefix}_{name}_{key}"] = math.exp(min(value, 700.0))
    return scores


class FreezeNextSentence(keras.callbacks.Callback):
    """Lower NSP-Freeze: at a step, or when the validation loss stops falling.

    Aksoy et al. 2020, section 3. Put it after `IntervalScores`.

    Args:
        objective: `NextSentence`.
        monitor: str. The validation loss, in the logs; needed for patience.
        state: dict of an earlier part of the run, see `state`.
        steps_before: int. Optimizer steps before this part of the run.
        accumulation_steps: int. Batches of an optimizer step.

    Attributes:
        state: dict: `frozen_at`, step or None; `best`, lowest loss so far; `waited`,
            validations since.
    """

    def __init__(self, objective, monitor, state, steps_before, accumulation_steps):
        super().__init__()
        self.objective = objective
        self.monitor = monitor
        self.state = dict(state)
        self._calls = steps_before * accumulation_steps
        self._accumulation_steps = accumulation_steps

    def on_train_batch_begin(self, batch, logs=None):
        step = self._calls // self._accumulation_steps
        at = self.objective.freeze_at_step
        if at is not None and step >= at and self.state["frozen_at"] is None:
            self._freeze(step)
        self._calls += 1

    def on_epoch_end(self, epoch, logs=None):
        patience = self.objective.freeze_patience
        if patience is None or self.state["frozen_at"] is not None:
            return
        loss = logs[self.monitor]
        if self.state["best"] is None or loss < self.state["best"]:
            self.state |= {"best": loss, "waited": 0}
            return
        self.state["waited"] += 1
        if self.state["waited"] >= patience:
            self._freeze(self._calls // self._accumulation_steps)

    def _freeze(self, step):
        self.model.freeze_next_sentence()
        self.state["frozen_at"] = step
        print(f"\nWhat feeds next_sentence is frozen from step {step} on.", flush=True)
