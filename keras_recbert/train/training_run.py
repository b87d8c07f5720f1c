"""One training run: from examples to a scored model and a folder of results."""

import contextlib
import dataclasses
import hashlib
import sys
import time

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.data.examples import texts_in
from keras_recbert.folders import new_file
from keras_recbert.tasks.compiling import compiling_where_it_pays
from keras_recbert.tasks.text_batches import bucketed_batches, ordered_batches
from keras_recbert.text.vocabulary import (
    save_vocabulary,
)
from keras_recbert.train.callbacks import (
    DevScores,
    EpochLogs,
    EpochSeeds,
    StopEarly,
    TrainingLoss,
    best_epoch,
)
from keras_recbert.train.checkpoint_callbacks import (
    PlaceInEpoch,
    SaveCheckpoints,
    StopAtNaN,
)
from keras_recbert.train.even_batches import (
    count_real_rows,
    even_batches,
    even_features,
)
from keras_recbert.train.learning_curve import save_learning_curve
from keras_recbert.train.resume import choose_run_precision, tell_step
from keras_recbert.train.run_facts import device_name, versions, write_json
from keras_recbert.train.run_folder import RESULTS, WAY_OUT
from keras_recbert.train.run_model import (
    LabelScale,
    build_model,
    check_memory,
    class_weights,
    run_vocabulary,
)
from keras_recbert.train.strategy import make_strategy


def train(
    run,
    task,
    train_examples,
    dev_examples,
    corpus=None,
    notes=(),
    test_examples=None,
    finish=None,
):
    """Trains and scores a model and writes everything into the folder of the run.

    The folder gets `vocab.txt`, `model.keras` and `preset/` (best epoch by the main
    metric on the first dev split, loadable; the preset's card has the scores),
    `savedmodel/`, `history.csv`, `learning_curve.png`, `tensorboard/`, at last
    `results.json`, and while it trains `checkpoints/`, from which the same command
    resumes after a stop: with the same weights, bit for bit. `finish` may add files.

    Args:
        run: `keras_recbert.train.run_folder.Run`.
        task: `keras_recbert.data.TaskSpec`.
        train_examples: `Examples`.
        dev_examples: dict of split name to `Examples`.
        corpus: optional list of str to learn the vocabulary from; by default the
            training texts.
        notes: sentences that go into the results.
        test_examples: optional `Examples` that `finish` reads, with labels or without;
            a run that resumes has to read the same.
        finish: optional function that is called once the model is that of the best
            epoch, with the folder of the run, the training examples and a function
            from `Examples` to logits; it gives a dict of scores to add.

    Returns:
        Tuple of the model (best epoch) and the dict in `results.json`.

    Raises:
        ValueError: if arguments do not fit each other, or the run that would resume
            has read other texts; before anything is written.
        OSError: if something cannot be written; the last checkpoint is whole.
        RuntimeError: if the loss is NaN or infinite.
    """
    config = run.config
    keras.utils.set_random_seed(config.seed)
    if config.limit is not None:
        train_examples = train_examples.take(
            range(min(config.limit, len(train_examples)))
        )
    notes = [*notes, *_warnings(task, train_examples)]
    splits = {"train": train_examples, **dev_examples}
    if test_examples is not None:
        splits["test"] = test_examples
    checksums = {name: _checksum(examples) for name, examples in splits.items()}
    run.check_texts(checksums)
    strategy = make_strategy(config.strategy)  # raises where there are no devices
    vocabulary = run_vocabulary(config, corpus or _all_texts(train_examples))
    precision = choose_run_precision(run.state, config)
    train_labels = _labels(train_examples)
    scale = LabelScale.of(train_labels) if task.scales_labels else None

    def targets(examples):
        labels = _labels(examples)
        labels = labels if scale is None else scale.apply(labels)
        return model.head.as_targets(labels)

    with strategy.scope():
        model = build_model(config, task, vocabulary, precision)
        if config.weights is not None:
            print(model.backbone.weights_report, flush=True)
        model.fields = model.preprocessor.fields[: len(train_examples.fields)]
        batch_size = min(config.batch_size, len(train_examples))
        batches = bucketed_batches(
            model.preprocessor,
            _columns(train_examples),
            (targets(train_examples),),
            batch_size,
            seed=config.seed,
        )
        steps = len(batches.lengths)
        check_memory(model, batches.lengths, len(train_examples), batch_size, strategy)
        model.compile_for_fine_tuning(
            steps * config.epochs,
            warmup_fraction=config.warmup_fraction,
            weight_decay=config.weight_decay,
        )
        model.optimizer.build(model.trainable_variables)
        weights = class_weights(config, task, train_labels)
        count_real_rows(model, strategy, weights)
    dev = {
        split: (_dev_batches(model, examples, config, strategy), targets(examples))
        for split, examples in dev_examples.items()
    }
    with run.checkpoints.telling_the_last():
        # Nothing is written before the model stands: wrong arguments leave nothing
        # behind.
        state = run.begin(
            model,
            {
                "step": 0,
                "place": None,
                "history": {},
                "training_loss": None,
                "seconds": 0.0,
                "needs": [],  # the checkpoint of the best epoch
                "precision": dataclasses.asdict(precision),
                "options": dataclasses.asdict(config),
                "sums": checksums,
            },
        )
        tell_step(state)
        save_vocabulary(vocabulary, run.folder / "vocab.txt")
        monitor = f"{next(iter(dev))}_{task.main_metric}"
        scoring = _Scoring(dev, task.metrics, monitor)
        state = _fit(run, model, batches, strategy, scoring, weights, state)
        if scale is not None:
            scale.undo(model)
        results = {
            "task": task.name,
            "task_version": task.version,
            "model": config.model,
            "num_parameters": model.count_params(),
            "learning_rate": model.learning_rate,
            "pooling": model.pooling,
            **_scores(state["history"], monitor),
            "train_examples": len(train_examples),
            "dev_examples": {key: len(value) for key, value in dev_examples.items()},
            "steps": state["step"],
            "precision": {"policy": precision.policy, **dataclasses.asdict(precision)},
            "seconds": state["seconds"],
            "examples_per_second": len(train_examples)
            * len(state["history"][monitor])
            / state["seconds"],
            "notes": notes,
            "config": dataclasses.asdict(config),
            "versions": versions(),
            "device": device_name(),
        }
        if finish is not None:

            def predict(examples):
                batches = _dev_batches(model, examples, config, strategy)
                return model.predict(batches, verbose=0)[: len(examples)]

            scores = finish(run.folder, train_examples, predict)
            results["scores"] = {**results["scores"], **scores}
        _write(run, model, results, state["training_loss"], monitor)
    return model, results


@dataclasses.dataclass(frozen=True)
class _Scoring:
    """What an epoch is scored on.

    Args:
        splits, metrics: as `DevScores` takes them.
        monitor: str. The score that decides which epoch is best.
    """

    splits: dict
    metrics: tuple
    monitor: str


def _fit(run, model, batches, strategy, scoring, weights, state):
    """The rest of the training, from a state on; the last state.

    The model becomes that of the best epoch.
    """
    config, folder, checkpoints = run.config, run.folder, run.checkpoints
    steps = len(batches.lengths)
    place = PlaceInEpoch(steps, state["place"])
    training_loss = TrainingLoss(
        place, max(1, steps * config.epochs // 200), state["training_loss"]
    )
    epoch_logs = EpochLogs(folder / "history.csv", state["history"])
    start = time.perf_counter() - state["seconds"]

    def current_state():
        scores = epoch_logs.history.get(scoring.monitor)
        return {
            **state,
            "step": training_loss.step,
            "place": place.state(),
            "history": epoch_logs.history,
            "training_loss": training_loss.state(),
            "seconds": time.perf_counter() - start,
            "needs": [steps * best_epoch(scores)] if scores else [],
        }

    stop_early = StopEarly(epoch_logs.history, scoring.monitor, config.early_stopping)
    if state["step"] < steps * config.epochs and not stop_early.is_due():
        # One endless stream, so that a run that was stopped resumes where it was:
        # each pass over the examples has an order of its own.
        stream = even_batches(batches.dataset, strategy).repeat().skip(state["step"])
        # By the whole run: what resumes computes as what was not stopped.
        lengths = batches.lengths * config.epochs
        with (
            compiling_where_it_pays(model.backbone, config.batch_size, lengths),
            _metrics_built(model, batches.dataset, strategy),
        ):
            model.fit(
                stream,
                epochs=config.epochs,
                initial_epoch=state["step"] // steps,
                steps_per_epoch=steps,
                callbacks=[
                    EpochSeeds(),
                    place,
                    DevScores(scoring.splits, scoring.metrics),
                    StopAtNaN(checkpoints),
                    epoch_logs,
                    keras.callbacks.TensorBoard(
                        str(folder / "tensorboard"), profile_batch=0
                    ),
                    training_loss,
                    stop_early,
                    SaveCheckpoints(
                        checkpoints, current_state, place, config.checkpoint_every
                    ),
                ],
                class_weight=(weights if strategy.num_replicas_in_sync == 1 else None),
                verbose=1 if sys.stdout.isatty() else 2,
            )
        state = current_state()
    (best_step,) = state["needs"]
    if checkpoints.restore_step(model, best_step) is None:
        raise ValueError(
            f"The best epoch of the run in {folder} cannot be read. Remove "
            f"{checkpoints.folder} and {WAY_OUT} to train anew."
        )
    return state


def _dev_batches(model, examples, config, strategy):
    """Batches for `predict`, of which only the last may have rows too many."""
    num_devices = strategy.num_replicas_in_sync
    size = 2 * min(config.batch_size, len(examples))
    size = -(-size // num_devices) * num_devices
    texts = _columns(examples)
    features = ordered_batches(model.preprocessor, texts, None, size)
    return even_features(features, strategy)


@contextlib.contextmanager
def _metrics_built(model, batches, strategy):
    """Makes the variables of the metrics, and keeps `fit` from taking a batch for it.

    A run that resumes inside an epoch gives them values before the first step. On
    several devices `fit` makes them from a batch that it takes, which uses up an order
    of the examples: each pass has the next one, whoever reads it.
    """
    batch = tf.nest.map_structure(
        lambda spec: keras.KerasTensor(tuple(spec.shape), spec.dtype.name),
        batches.element_spec,
    )
    with strategy.scope():
        model._symbolic_build(data_batch=batch)
    model._maybe_symbolic_build = lambda **_: None
    try:
        yield
    finally:
        del model._maybe_symbolic_build


def _scores(history, monitor):
    """What the results say of the best epoch and of all."""
    epoch = best_epoch(history[monitor])
    scores = {
        key: values[epoch - 1]
        for key, values in history.items()
        if key.partition("_")[0].startswith("dev")
    }
    return {"scores": scores, "best_epoch": epoch, "history": history}


def _write(run, model, results, training_loss, monitor):
    """Writes what comes after training, each file or folder whole or not at all."""
    config, folder = run.config, run.folder
    with new_file(folder / "model.keras") as written:
        model.save(written)
    kept = ("task", "scores", "best_epoch", "dev_examples", "seconds", "device")
    model.save_preset(
        folder / "preset",
        metrics={
            **{key: results[key] for key in kept},
            "seed": config.seed,
            "precision": results["precision"]["chosen"],
        },
        source=config.weights,
        overwrite=True,
    )
    best_score = 100 * results["scores"][monitor]
    save_learning_curve(
        folder / "learning_curve.png",
        training_loss,
        results["history"],
        monitor,
        f"{config.model} on {results['task']}: {monitor.replace('_', ' ')} "
        f"{best_score:.1f} % (epoch {results['best_epoch']})",
    )
    if config.export:
        model.export_savedmodel(folder / "savedmodel", overwrite=True)
    write_json(folder / RESULTS, results)
    run.checkpoints.clear()


def _warnings(task, examples):
    """What will keep a model from learning, printed and returned as sentences."""
    labels = _labels(examples)
    if isinstance(labels, dict):
        return []
    labels = np.unique(labels, axis=0)
    if len(labels) > 1:
        return []
    if task.label_names and np.ndim(labels[0]):
        names = zip(task.label_names, labels[0], strict=True)
        label = [name for name, has in names if has]
    else:
        label = task.label_names[labels[0]] if task.label_names else labels[0]
    warning = (
        f"All {len(examples):,} training examples have the label {label!s}: the model "
        "can learn nothing but to answer it."
    )
    print(f"Warning: {warning}", flush=True)
    return [warning]


def _checksum(examples):
    """Checksum of fields and targets."""
    digest = hashlib.sha256()
    for columns in (examples.fields, examples.targets or {}):
        for name, column in columns.items():
            for value in (name, *column):
                digest.update(str(value).encode() + b"\0")
    return digest.hexdigest()


def _labels(examples):
    """What the head learns: the values of the only target, or the dict of several."""
    targets = examples.targets
    return next(iter(targets.values())) if len(targets) == 1 else targets


def _all_texts(examples):
    columns = examples.fields.values()
    return [text for column in columns for value in column for text in texts_in(value)]


def _columns(examples):
    columns = tuple(examples.fields.values())
    return columns if len(columns) > 1 else columns[0]
