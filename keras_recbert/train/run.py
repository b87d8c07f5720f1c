"""Opens, resumes, trains and finishes a run: the rules of every kind of run.

A kind of run is one file with a `RunKind` and a function that tells what is particular
to it, in the order of the methods of `Run`:

    with open_run(config, KIND) as run:        # lock; finished, stopped or new?
        ...                                    # read the texts
        run.check_texts(checksums)             # those of the stopped run? seeds
        with run.strategy.scope():
            model = ...                        # built in run.precision, and compiled
        with run.begin(model, **own) as state: # checkpoint restored, or folder cleared
            loop = Loop(...)                   # epochs, batches, callbacks, own state
            state = run.fit(model, loop, state)
            results = run.results(state, ...)
            run.write_model(model, results, ...)
            ...                                # the picture, other files
            run.finish(results)
"""

import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_recbert.core.answering import check_may_train
from keras_recbert.core.folders import (
    check_place,
    locked_folder,
    new_file,
    remove_unfinished,
)
from keras_recbert.core.json_files import write_json
from keras_recbert.train.callbacks import EpochLogs, EpochSeeds, TrainingClock
from keras_recbert.train.checkpoint_callbacks import (
    PlaceInEpoch,
    SaveCheckpoints,
    StopAtNaN,
)
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.multi_worker import (
    check_workers_agree,
    is_chief,
    report_lost_workers,
)
from keras_recbert.train.precision import Precision, choose_precision
from keras_recbert.train.run_facts import device_name, versions
from keras_recbert.train.run_folder import (
    CHECKPOINTS,
    HISTORY,
    MODEL,
    PRESET,
    RESULTS,
    TENSORBOARD,
    clear_folder,
    find_state,
    same_run,
)
from keras_recbert.train.strategy import make_strategy, steps_done


@contextlib.contextmanager
def open_run(config, kind, keep_checkpoints=2):
    """Gives the run of a folder that no other process works in. Writes nothing.

    Args:
        config: `keras_recbert.config.RunConfig`.
        kind: `keras_recbert.train.run_folder.RunKind`.
        keep_checkpoints: int. How many of the latest checkpoints to keep.

    Returns:
        `Run`.

    Raises:
        FileExistsError: if the folder holds a finished run, or a file of the name of
            one that this run will write, and `config.overwrite` is not set; if it
            holds a run of another kind or an older version, or something foreign where
            a folder is to be replaced.
        RuntimeError: if another process works in it, a device is missing, or, of
            several workers, one is lost.
        ValueError: if it holds a stopped run with other options, unless
            `config.overwrite` is set, or one whose checkpoints cannot be read; or if
            this process only answers, see `check_may_train`.
    """
    check_may_train()
    folder = pathlib.Path(config.run_dir())
    check_place(folder)
    strategy = make_strategy(config.strategy)
    writes = is_chief(strategy)
    with (
        report_lost_workers(strategy),
        locked_folder(folder) if writes else contextlib.nullcontext(),
    ):
        checkpoints = Checkpoints(folder / CHECKPOINTS, keep_checkpoints)
        state = find_state(config, kind, checkpoints)
        if writes:
            for name in kind.folders:
                remove_unfinished(folder / name)
            checkpoints.remove_unfinished()
        yield Run(config, kind, strategy, checkpoints, state)


@dataclasses.dataclass(frozen=True)
class Loop:
    """What `Run.fit` goes through.

    Args:
        epochs, steps_per_epoch: int. Optimizer steps; an epoch ends with scores and a
            checkpoint.
        batches: function from the steps done to a `tf.data.Dataset` of the rest.
        scoring: list of callbacks that add scores to the logs of an epoch, or read
            them before they are kept.
        own_state: function without arguments that gives what is kept in a checkpoint
            beside what all runs keep: a dict, JSON.
        logged: list of callbacks that read the history of all epochs, which is
            `state["history"]`.
        place: optional `PlaceInEpoch`, for checkpoints inside epochs.
        checkpoint_every: optional int. Steps between two of these, see
            `SaveCheckpoints`.
        has_ended: function without arguments. Whether a run that resumes has ended
            before its last epoch.
        accumulation_steps: int. Batches of an optimizer step.
        class_weight: as `fit` takes it.
        scope: function without arguments that gives a context manager around `fit`.
    """

    epochs: int
    steps_per_epoch: int
    batches: Callable
    scoring: list
    own_state: Callable
    logged: list = dataclasses.field(default_factory=list)
    place: PlaceInEpoch | None = None
    checkpoint_every: int | None = None
    has_ended: Callable = lambda: False
    accumulation_steps: int = 1
    class_weight: dict | None = None
    scope: Callable = contextlib.nullcontext


class Run:
    """A run whose folder this process has. `open_run` makes it.

    Attributes:
        config: `keras_recbert.config.RunConfig`, resolved: as the run that resumes had
            it.
        kind: `RunKind`.
        folder: path.
        strategy: `tf.distribute.Strategy`, to build the model in the scope of.
        writes: bool. Whether this process writes files; False for workers that are not
            the chief.
        checkpoints: `Checkpoints`.
        stopped: dict, the state of the run that resumes, or None.
        clock: `TrainingClock`, once the run has begun.
    """

    def __init__(self, config, kind, strategy, checkpoints, stopped):
        self._given = config
        self.config = config.resolved(stopped and stopped["options"])
        self.kind = kind
        self.folder = checkpoints.folder.parent
        self.strategy = strategy
        self.writes = is_chief(strategy)
        self.checkpoints = checkpoints
        self.stopped = stopped
        self._checksums = None

    def check_texts(self, checksums):
        """Checks that a run that resumes reads the texts it has read; sets the seeds.

        Args:
            checksums: JSON. Of all that the run reads.

        Raises:
            ValueError: if it does not, unless it may be overwritten.
        """
        self._checksums = checksums
        if same_run(self.stopped, self._given, self.folder, checksums) is None:
            self.stopped = None
            self.config = self._given.resolved()
        # Last, so that what follows does not depend on how the texts were read.
        keras.utils.set_random_seed(self.config.seed)

    @functools.cached_property
    def precision(self):
        """`Precision` of a new run, or that of the run that resumes."""
        if self.stopped is not None:
            # A busy machine may measure other rates than before the stop.
            return Precision(**self.stopped["precision"])
        precision = choose_precision(self.config.precision)
        if self.config.precision == "auto":
            print(f"Computing in {precision.chosen}: {precision.reason}.", flush=True)
        return precision

    @contextlib.contextmanager
    def begin(self, model, **own):
        """Makes the model what it was, or the folder ready for a new run.

        Nothing is written before the model stands: wrong arguments leave nothing
        behind. When a file cannot be written inside, the error tells how to resume.

        Args:
            model: compiled `keras.Model`.
            **own: what a new run keeps beside what all runs keep, see `Loop`.

        Returns:
            Context manager that gives the state the run begins or resumes with: a dict
            with `kind`, `options`, `checksums` and `precision`, which stay; `step`,
            `place`, `history` and `seconds`; and `own`.

        Raises:
            ValueError: if there are checkpoints of the run, and none can be read.
            OSError: if a file of the run cannot be written.
        """
        with self.strategy.scope():
            model.optimizer.build(model.trainable_variables)
            state = self.stopped and self.checkpoints.restore(model)
            variables = [*model.weights, *model.optimizer.variables]
            check_workers_agree(variables, self.strategy)
        with self.checkpoints.report_write_errors():
            if state is None:
                if self.writes:
                    clear_folder(self.folder, self.kind)
                state = {
                    "kind": self.kind.name,
                    "options": dataclasses.asdict(self.config),
                    "checksums": self._checksums,
                    "precision": dataclasses.asdict(self.precision),
                    "step": 0,
                    "place": None,
                    "history": {},
                    "seconds": 0.0,
                    **own,
                }
            self.clock = TrainingClock(state["seconds"])
            if state["step"]:
                print(f"Resuming after step {state['step']:,}.", flush=True)
            yield state

    def fit(self, model, loop, state):
        """Trains for the rest of the epochs, with checkpoints.

        Args:
            model: the one of `begin`.
            loop: `Loop`.
            state: dict of `begin`.

        Returns:
            dict, the state after the last epoch.

        Raises:
            OSError: if a checkpoint cannot be written.
            RuntimeError: if a loss or a weight is NaN or infinite.
        """

        def current_state():
            return {
                **state,
                "step": steps_done(model.optimizer),
                "place": loop.place and loop.place.state(),
                "seconds": self.clock.seconds,
                **loop.own_state(),
            }

        if state["step"] < loop.epochs * loop.steps_per_epoch and not loop.has_ended():
            batches = loop.batches(state["step"])
            with self._metrics_built(model, batches, loop.place), loop.scope():
                model.fit(
                    batches,
                    epochs=loop.epochs,
                    initial_epoch=state["step"] // loop.steps_per_epoch,
                    steps_per_epoch=loop.steps_per_epoch * loop.accumulation_steps,
                    callbacks=self._callbacks(loop, state["history"], current_state),
                    class_weight=loop.class_weight,
                    shuffle=False,  # they come shuffled
                    verbose=1 if sys.stdout.isatty() else 2,
                )
        else:  # stopped after the last checkpoint
            model.optimizer.finalize_variable_values(model.trainable_variables)
        return current_state()

    def _callbacks(self, loop, history, current_state):
        """All callbacks of `fit`, in the order in which they need each other."""
        callbacks = [self.clock, EpochSeeds()]
        if loop.place is not None:
            callbacks.append(loop.place)
        callbacks += loop.scoring
        if not self.writes:
            return [*callbacks, *loop.logged]
        return [
            *callbacks,
            StopAtNaN(self.checkpoints),
            EpochLogs(self.folder / HISTORY, history),
            keras.callbacks.TensorBoard(
                str(self.folder / TENSORBOARD), profile_batch=0
            ),
            *loop.logged,
            SaveCheckpoints(
                self.checkpoints, current_state, loop.place, loop.checkpoint_every
            ),
        ]

    @contextlib.contextmanager
    def _metrics_built(self, model, batches, place):
        """Makes the variables of the metrics, for a run that resumes inside an epoch.

        It gives them values before the first step. On several devices `fit` would make
        them from a batch that it takes, which uses up an order of the examples: each
        pass has the next one, whoever reads it.
        """
        if place is None:
            yield
            return
        batch = tf.nest.map_structure(
            lambda spec: keras.KerasTensor(tuple(spec.shape), spec.dtype.name),
            batches.element_spec,
        )
        with self.strategy.scope():
            model._symbolic_build(data_batch=batch)
        model._maybe_symbolic_build = lambda **_: None
        try:
            yield
        finally:
            del model._maybe_symbolic_build

    def results(self, state, **own):
        """What goes into `results.json`.

        Args:
            state: dict that `fit` gave.
            **own: what is particular to the kind of run, such as `scores`.

        Returns:
            dict, JSON.
        """
        return {
            "kind": self.kind.name,
            "model": self.config.model,
            **own,
            "steps": state["step"],
            "seconds": state["seconds"],
            "history": state["history"],
            "precision": {
                "policy": self.precision.policy,
                **dataclasses.asdict(self.precision),
            },
            "checksums": state["checksums"],
            "config": dataclasses.asdict(self.config),
            "versions": versions(),
            "device": device_name(),
        }

    def write_model(self, model, results, kept, source, preset_of=None):
        """Writes `model.keras` and `preset/`, each whole or not at all.

        Args:
            model: what was trained.
            results: dict that `results` gave.
            kept: names of the results that the card of the preset has.
            source: str, what the card says the weights were made from, or None.
            preset_of: what the preset is of; by default the model.
        """
        with new_file(self.folder / MODEL) as written:
            model.save(written)
        metrics = {
            **{name: results[name] for name in kept},
            "seed": self.config.seed,
            "precision": self.precision.chosen,
        }
        (preset_of or model).save_preset(
            self.folder / PRESET, metrics=metrics, source=source, overwrite=True
        )

    def finish(self, results):
        """Writes `results.json`, which ends the run."""
        write_json(self.folder / RESULTS, results)
        if not self.kind.keeps_checkpoints:
            self.checkpoints.clear()
