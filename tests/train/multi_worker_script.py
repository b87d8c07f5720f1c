"""One process of a training on several devices. The tests fork it."""

import json
import os
import pathlib
import signal

import keras
import numpy as np
import tensorflow as tf

import keras_recbert
from keras_recbert.data.corpus import Corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives
from keras_recbert.tasks.pretraining_optimizer import pretraining_optimizer
from keras_recbert.train.multi_worker import (
    check_workers_agree,
    is_chief,
    report_lost_workers,
    shared_batches,
)
from keras_recbert.train.strategy import make_strategy

SEQUENCE_LENGTH = 24
BATCH_SIZE = 8


class Options:
    """What `pretraining_optimizer` reads of a config."""

    optimizer = "adamw"
    learning_rate = 3e-3
    steps = 200
    warmup_steps = 4
    decay = True
    beta_1 = 0.9
    beta_2 = 0.999
    epsilon = 1e-6
    weight_decay = 0.1
    clipnorm = 0.3  # below most norms, so that clipping acts
    amsgrad = False
    ema_momentum = None
    accumulation_steps = 1


class BatchLogs(keras.callbacks.Callback):
    """Keeps the logs of all batches."""

    def on_train_begin(self, logs=None):
        self.logs = []

    def on_train_batch_end(self, batch, logs=None):
        self.logs.append({key: float(value) for key, value in logs.items()})


class Writes(keras.callbacks.Callback):
    """Has the chief write, at the end of an epoch, what runs write."""

    def __init__(self, folder, strategy):
        super().__init__()
        self.folder = folder
        self.strategy = strategy

    def on_epoch_end(self, epoch, logs=None):
        if is_chief(self.strategy):
            self.model.save_weights(self.folder / f"epoch_{epoch}.weights.h5")
            self.model.save(self.folder / "model.keras")
            tf.train.Checkpoint(
                weights=[variable.value for variable in self.model.weights],
                optimizer=[
                    variable.value for variable in self.model.optimizer.variables
                ],
            ).write(str(self.folder / "checkpoint"))


def toy_examples(objectives, seed=0):
    """Examples of random text, in documents of several sentences."""
    rng = np.random.default_rng(seed)
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    words = [f"w{i}" for i in range(40)] + [f"##p{i}" for i in range(15)]
    lengths = rng.integers(3, 12, 400)
    corpus = Corpus(
        rng.integers(len(special), len(special) + len(words), lengths.sum()).astype(
            np.uint16
        ),
        np.cumsum([0, *lengths]),
        np.arange(0, 401, 10),
        (*special, *words),
        True,
        None,
        pathlib.Path("toy"),
    )
    return PretrainingExamples(corpus, objectives, SEQUENCE_LENGTH, seed)


def build(strategy, model, dropout=0.0, precision="float32", sizes=None, **options):
    """A compiled pre-trainer in the scope of a strategy, its examples and options."""
    keras.utils.set_random_seed(1)
    objectives = read_objectives(
        {"masked_lm": {}, "next_sentence": None, "bigram_shift": None}
    )
    examples = toy_examples(objectives)
    config = Options()
    for name, value in options.items():
        setattr(config, name, value)
    with strategy.scope():
        pretrainer = keras_recbert.build(
            model,
            task="pretrainer",
            objectives=objectives,
            vocabulary_size=60,
            max_sequence_length=SEQUENCE_LENGTH,
            dropout=dropout,
            dtype=precision,
            **{"num_layers": 1, "hidden_dim": 16, "num_heads": 2, **(sizes or {})},
        )
        pretrainer.compile_for_pretraining(pretraining_optimizer(config))
        pretrainer.optimizer.build(pretrainer.trainable_variables)
    return pretrainer, examples, config


def train(strategy, folder, name, model, epochs=2, steps=12, writes=False, **arguments):
    """Trains and scores a model; leaves weights and logs in the folder."""
    pretrainer, examples, config = build(strategy, model, **arguments)
    before = pretrainer.get_weights()
    check_workers_agree(pretrainer.weights, strategy)
    batch_logs = BatchLogs()
    callbacks = [batch_logs, *([Writes(folder, strategy)] if writes else [])]
    accumulation_steps = config.accumulation_steps
    validation = shared_batches(examples.fixed_batches(BATCH_SIZE, 22), strategy)
    size = BATCH_SIZE * accumulation_steps
    batches = examples.batches(size, 0, epochs * steps, accumulation_steps)
    history = pretrainer.fit(
        shared_batches(batches, strategy),
        epochs=epochs,
        steps_per_epoch=steps * accumulation_steps,
        validation_data=validation,
        callbacks=callbacks,
        shuffle=False,
        verbose=0,
    ).history
    check_workers_agree(
        [*pretrainer.weights, *pretrainer.optimizer.variables], strategy
    )
    scores = pretrainer.evaluate(validation, return_dict=True, verbose=0)
    after = pretrainer.get_weights()
    moved = max(float(np.abs(a - b).max()) for a, b in zip(before, after, strict=True))
    np.savez(folder / f"{name}.npz", *after)
    (folder / f"{name}.json").write_text(
        json.dumps(
            {
                "paths": [variable.path for variable in pretrainer.weights],
                "moved": moved,
                "replicas": strategy.num_replicas_in_sync,
                "iterations": int(pretrainer.optimizer.iterations.numpy()),
                "history": history,
                "scores": scores,
                "batches": batch_logs.logs,
            }
        )
    )


def disagree(strategy, folder, name):
    """One worker begins with other weights."""
    pretrainer, _, _ = build(strategy, "bert_tiny")
    if not is_chief(strategy):
        bias = pretrainer.heads["masked_lm"].layer.bias
        bias.assign(bias + 1.0)
    try:
        check_workers_agree(pretrainer.weights, strategy)
    except RuntimeError as error:
        (folder / f"{name}.txt").write_text(str(error))


def die(strategy, folder, name, worker):
    """One worker is killed while all train."""
    pretrainer, examples, _ = build(strategy, "bert_tiny")

    class Die(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 5 and strategy.cluster_resolver.task_id == worker:
                os.kill(os.getpid(), signal.SIGKILL)

    with report_lost_workers(strategy):
        pretrainer.fit(
            shared_batches(examples.batches(BATCH_SIZE), strategy),
            steps_per_epoch=100_000,
            callbacks=[Die()],
            shuffle=False,
            verbose=0,
        )


def run_cases(strategy, folder, cases):
    """Runs cases under a strategy of this name; leaves results in the folder.

    Args:
        strategy: str.
        folder: path.
        cases: list of the keyword arguments of functions here, by `run`.
    """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    if strategy == "mirrored":
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    keras.utils.set_random_seed(0)  # as runs do first
    strategy = make_strategy(strategy)
    folder.mkdir(parents=True)
    functions = {"train": train, "disagree": disagree, "die": die}
    for case in cases:
        functions[case.pop("run")](strategy, folder, **case)
    print("finished", flush=True)
