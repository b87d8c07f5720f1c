"""Fine-tuning runs that stop where a test wants them to."""

from keras_recbert.train import training_run
from keras_recbert.train.checkpoints import Checkpoints


class Stopped(Exception):
    pass


def stop_after(monkeypatch, epoch):
    """Makes the next runs stop in the middle of the epoch after `epoch`."""

    class Stop(training_run.TrainingLoss):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if self.passed == epoch and batch == 1:
                raise Stopped

        def on_train_begin(self, logs=None):
            super().on_train_begin(logs)
            self.passed = 0

        def on_epoch_end(self, epoch, logs=None):
            self.passed = epoch + 1

    monkeypatch.setattr(training_run, "TrainingLoss", Stop)


def stop_at(monkeypatch, step):
    """Makes the next runs stop after the checkpoint of a step."""
    save = Checkpoints.save

    def save_then_stop(self, model, at, state):
        save(self, model, at, state)
        if at == step:
            raise Stopped

    monkeypatch.setattr(Checkpoints, "save", save_then_stop)
