"""One training run: from examples to a scored model and a folder of results."""

import dataclasses
import json
import pathlib
import platform
import sys
import time

import keras
import numpy as np
import tensorflow as tf

import keras_recbert
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.folders import new_file
from keras_recbert.tasks.text_batches import bucketed_batches, ordered_batches
from keras_recbert.text.vocabulary import (
    learn_vocabulary,
    load_vocabulary,
    save_vocabulary,
)
from keras_recbert.train.callbacks import DevScores, EpochLogs, EpochSeeds, TrainingLoss
from keras_recbert.train.learning_curve import save_learning_curve
from keras_recbert.train.precision import Precision, choose_precision
from keras_recbert.train.strategy import even_batches, make_strategy

# What `train` writes, and nothing else.
RUN_FILES = (
    "vocab.txt",
    "best.weights.h5",
    "model.keras",
    "preset",
    "savedmodel",
    "history.csv",
    "learning_curve.png",
    "tensorboard",
    "results.json",
    "backup",
)


@dataclasses.dataclass(frozen=True)
class TrainingTask:
    """What a run is scored on.

    Args:
        name: str.
        label_names: tuple of str, or None for a score.
        metrics: tuple of metric names of `keras_recbert.metrics.glue`.
        main_metric: the one that decides which epoch is kept.
    """

    name: str
    label_names: tuple | None
    metrics: tuple
    main_metric: str


def train(config, task, train_examples, dev_examples, corpus=None, notes=()):
    """Trains and scores a model and writes everything into one folder.

    The folder gets `vocab.txt`, `best.weights.h5` (best epoch by the main metric on
    the first dev split), `model.keras` and `preset/` (that epoch, loadable; the
    preset's card has the scores), `savedmodel/`, `history.csv`, `learning_curve.png`,
    `tensorboard/`, `results.json`, and while training runs `backup/`, from which the
    same command goes on after a stop.

    Args:
        config: `FineTuningConfig`.
        task: `TrainingTask`.
        train_examples: `Examples`.
        dev_examples: dict of split name to `Examples`.
        corpus: optional list of str to learn the vocabulary from; by default the
            training texts.
        notes: sentences that go into the results.

    Returns:
        Tuple of the model (best epoch) and the dict in `results.json`.
    """
    keras.utils.set_random_seed(config.seed)
    folder = pathlib.Path(config.run_dir())
    epochs_done = _epochs_done(folder, config)
    if config.limit is not None:
        train_examples = train_examples.take(
            range(min(config.limit, len(train_examples)))
        )
    vocabulary = _vocabulary(config, corpus or _all_texts(train_examples))
    strategy = make_strategy(config.strategy)
    precision = _precision(folder, config, epochs_done)
    with strategy.scope():
        model = build_model(config, task, vocabulary, precision)
        if config.weights is not None:
            print(model.backbone.weights_report, flush=True)
        model.num_texts = len(train_examples.texts)
        batches = bucketed_batches(
            model.preprocessor,
            _columns(train_examples),
            (train_examples.labels,),
            config.batch_size,
            seed=config.seed,
        )
        steps = int(batches.cardinality())
        model.compile_for_fine_tuning(
            steps * config.epochs,
            learning_rate=config.highest_learning_rate(),
            warmup_fraction=config.warmup_fraction,
            weight_decay=config.weight_decay,
        )
    # Nothing is written before the model stands: wrong arguments leave nothing behind.
    _start(folder, config, epochs_done, precision)
    save_vocabulary(vocabulary, folder / "vocab.txt")
    dev = {
        split: (
            ordered_batches(
                model.preprocessor, _columns(examples), None, 2 * config.batch_size
            ),
            examples.labels,
        )
        for split, examples in dev_examples.items()
    }
    # One endless stream, so that a run that was stopped goes on where it was: each
    # pass over the examples has an order of its own.
    stream = even_batches(batches, strategy).repeat().skip(epochs_done * steps)
    monitor = f"{next(iter(dev))}_{task.main_metric}"
    epoch_logs = EpochLogs(folder / "history.csv", epochs_done)
    best_weights = folder / "best.weights.h5"
    training_loss = TrainingLoss(every=max(1, steps * config.epochs // 200))
    callbacks = [
        EpochSeeds(),
        DevScores(dev, task.metrics),
        keras.callbacks.ModelCheckpoint(
            str(best_weights),
            monitor=monitor,
            mode="max",
            save_best_only=True,
            save_weights_only=True,
            initial_value_threshold=max(epoch_logs.history.get(monitor, [-np.inf])),
        ),
        epoch_logs,
        keras.callbacks.BackupAndRestore(str(folder / "backup")),
        keras.callbacks.TensorBoard(str(folder / "tensorboard"), profile_batch=0),
        training_loss,
    ]
    start = time.perf_counter()
    model.fit(
        stream,
        epochs=config.epochs,
        steps_per_epoch=steps,
        callbacks=callbacks,
        verbose=1 if sys.stdout.isatty() else 2,
    )
    history = epoch_logs.history
    seconds = time.perf_counter() - start
    model.load_weights(best_weights)
    model.save(folder / "model.keras")
    best = int(np.argmax(history[monitor]))
    results = {
        "task": task.name,
        "model": config.model,
        "num_parameters": model.count_params(),
        "scores": {
            key: values[best]
            for key, values in history.items()
            if key.partition("_")[0].startswith("dev")
        },
        "best_epoch": best + 1,
        "history": history,
        "train_examples": len(train_examples),
        "dev_examples": {key: len(value) for key, value in dev_examples.items()},
        "steps": steps * config.epochs,
        "precision": {"policy": precision.policy, **dataclasses.asdict(precision)},
        "seconds": seconds,
        "examples_per_second": len(train_examples)
        * (config.epochs - epochs_done)
        / seconds,
        "notes": list(notes),
        "config": dataclasses.asdict(config),
        "versions": versions(),
        "device": device_name(),
    }
    write_json(folder / "results.json", results)
    kept = ("task", "scores", "best_epoch", "dev_examples", "seconds", "device")
    metrics = {key: results[key] for key in kept}
    model.save_preset(
        folder / "preset",
        metrics={**metrics, "seed": config.seed, "precision": precision.chosen},
        source=config.weights,
        overwrite=True,
    )
    save_learning_curve(
        folder / "learning_curve.png",
        training_loss,
        history,
        monitor,
        f"{config.model} on {task.name}: {monitor.replace('_', ' ')} "
        f"{100 * history[monitor][best]:.1f} % (epoch {best + 1})",
    )
    if config.export:
        model.export_savedmodel(folder / "savedmodel", overwrite=True)
    return model, results


def build_model(config, task, vocabulary, precision):
    """The model of a run, untrained."""
    arguments = {
        "weights": config.weights,
        "vocabulary": vocabulary,
        "max_sequence_length": config.max_sequence_length,
        "dropout": config.dropout,
        "pooling": config.pooling,
        "freeze": config.freeze,
        "lora_rank": config.lora_rank,
        "layerwise_decay": config.layerwise_decay,
        "gradient_checkpointing": config.gradient_checkpointing,
        "dtype": precision.policy,
        **config.overrides,
    }
    if config.lowercase is not None:
        arguments["lowercase"] = config.lowercase
    if task.label_names is None:
        return keras_recbert.build(config.model, task="regressor", **arguments)
    return keras_recbert.build(
        config.model, task="classifier", label_names=task.label_names, **arguments
    )


def versions():
    """Versions that a score may depend on."""
    return {
        "keras_recbert": keras_recbert.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
        "python": platform.python_version(),
    }


def device_name():
    """What trained the model, in words."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return f"{len(gpus)} x {details.get('device_name', 'GPU')}"
    cpus = tf.config.threading.get_intra_op_parallelism_threads() or _num_cpus()
    return f"CPU, {cpus} cores, {platform.machine()}"


def write_json(path, value):
    """Writes a file of JSON, whole or not at all."""
    with new_file(path) as written:
        written.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _epochs_done(folder, config):
    """Epochs of a run that was stopped in this folder; 0 for a new run."""
    backup = folder / "backup"
    options = _options(config)
    metadata = backup / "training_metadata.json"  # Keras writes it, weights first
    if not metadata.is_file():
        return 0
    stopped = json.loads((backup / "config.json").read_text(encoding="utf-8"))
    # Options that there were not yet when it was stopped had their defaults.
    new = {field.name: field.default for field in dataclasses.fields(config)}
    changed = [
        f"{key}={stopped.get(key, new.get(key))!r} (now {value!r})"
        for key, value in options.items()
        if stopped.get(key, new.get(key)) != value
    ]
    if changed:
        raise ValueError(
            f"{folder} holds a run that was stopped, with other options: "
            f"{', '.join(changed)}. Repeat the options to go on with it, remove "
            f"{backup} to start anew, or choose another output_dir."
        )
    epochs_done = json.loads(metadata.read_text(encoding="utf-8"))["epoch"]
    print(f"Going on after epoch {epochs_done}.", flush=True)
    return epochs_done


def _precision(folder, config, epochs_done):
    """The precision of a new run, or that of the run that goes on."""
    chosen = folder / "backup" / "precision.json"
    if epochs_done and chosen.is_file():
        # A busy machine may measure other rates than before the stop.
        return Precision(**json.loads(chosen.read_text(encoding="utf-8")))
    precision = choose_precision(config.precision)
    if config.precision == "auto":
        print(f"Computing in {precision.chosen}: {precision.reason}.", flush=True)
    return precision


def _start(folder, config, epochs_done, precision):
    """Makes the folder, and notes the options of a new run in it."""
    backup = folder / "backup"
    backup.mkdir(parents=True, exist_ok=True)
    if not epochs_done:
        (backup / "latest.weights.h5").unlink(missing_ok=True)
        write_json(backup / "precision.json", dataclasses.asdict(precision))
        write_json(backup / "config.json", _options(config))


def _options(config):
    """What must be the same for a stopped run to go on."""
    return {
        key: value
        for key, value in dataclasses.asdict(config).items()
        if key not in ("output_dir", "export")
    }


def _vocabulary(config, texts):
    """Word pieces of the run, which are learned if none are given."""
    if config.vocabulary is not None:
        return load_vocabulary(config.vocabulary)
    if config.weights is not None:
        return open_checkpoint(config.weights).vocabulary
    print(f"Learning {config.vocabulary_size:,} word pieces ...", flush=True)
    return learn_vocabulary(
        texts, config.vocabulary_size, lowercase=config.lowercase is not False
    )


def _all_texts(examples):
    return [text for column in examples.texts for text in column]


def _columns(examples):
    return examples.texts if len(examples.texts) == 2 else examples.texts[0]


def _num_cpus():
    import os

    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )
