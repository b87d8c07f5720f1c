"""Prints the progress of a pre-training run, a line a checkpoint interval."""

import keras


class ProgressLine(keras.callbacks.ProgbarLogger):
    """Keras's progress bar, or its line an epoch, with a few of the scores.

    Epochs of a pre-training run are the intervals between its checkpoints, so this
    prints "Steps 1 to 500 of 2,000 (checkpoint interval 1 of 4)" for "Epoch 1/4".

    A run has dozens of scores, which fill a terminal. This prints the training loss,
    the speed, and of each validation corpus the perplexity, or the loss where no
    objective has a perplexity. It takes the place of the bar that `fit` would add.
    Put it after the callbacks that add scores to the logs.

    Args:
        validation: names of the validation corpora.
        path: path of the file that holds all scores; named once.
        steps: int. Optimizer steps of the run.
        steps_per_epoch: int. Optimizer steps between two checkpoints.
        accumulation_steps: int. Batches of an optimizer step, which the bar counts.
    """

    def __init__(self, validation, path, steps, steps_per_epoch, accumulation_steps=1):
        super().__init__()
        self.validation = tuple(validation)
        self.path = path
        self.steps = steps
        self.steps_per_epoch = steps_per_epoch
        self.accumulation_steps = accumulation_steps
        self._named = False

    def set_params(self, params):
        # Of one epoch Keras prints no number.
        super().set_params({**params, "epochs": 1})

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        if not self.verbose:
            return
        done, number = epoch * self.steps_per_epoch, self.steps // self.steps_per_epoch
        calls = self.accumulation_steps
        batches = f", {calls} batches each" if calls > 1 else ""
        print(
            f"Steps {done + 1:,} to {done + self.steps_per_epoch:,} of {self.steps:,}"
            f"{batches} (checkpoint interval {epoch + 1} of {number})",
            flush=True,
        )

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, self._shown(logs or {}))

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, self._shown(logs or {}))
        if self.verbose and not self._named:
            print(f"All scores are in {self.path}.", flush=True)
            self._named = True

    def _shown(self, logs):
        names = ["loss", "tokens_per_second"]
        for corpus in self.validation:
            perplexities = [
                f"val_{corpus}_{objective}_perplexity"
                for objective in ("masked_lm", "causal_lm")
            ]
            found = [name for name in perplexities if name in logs]
            names += found or [f"val_{corpus}_loss"]
        return {name: logs[name] for name in names if name in logs}
