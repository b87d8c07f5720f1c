"""One pre-training run: from a prepared corpus to an encoder and its curves."""

import contextlib
import dataclasses
import pathlib
import sys

import keras
import numpy as np

import keras_recbert
from keras_recbert.convert.preset_files import FILES as PRESET_FILES
from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.extras import check_installed
from keras_recbert.folders import check_folder, check_place, locked_folder, new_file
from keras_recbert.models.memory_estimate import check_step
from keras_recbert.objectives import read_objectives
from keras_recbert.tasks.pretraining_optimizer import pretraining_optimizer
from keras_recbert.train.callbacks import EpochLogs, EpochSeeds
from keras_recbert.train.checkpoint_callbacks import SaveCheckpoints, StopAtNaN
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.multi_worker import (
    check_workers_agree,
    is_chief,
    naming_lost_workers,
    shared_batches,
)
from keras_recbert.train.precision import Precision
from keras_recbert.train.pretraining_callbacks import (
    FreezeNextSentence,
    IntervalScores,
    evaluate,
)
from keras_recbert.train.pretraining_curves import save_pretraining_curves
from keras_recbert.train.pretraining_data import (
    batches_from,
    check_shares,
    load_validation,
    num_tokens,
    validation_batches,
)
from keras_recbert.train.progress_line import ProgressLine
from keras_recbert.train.resume import (
    check_same_run,
    choose_run_precision,
    tell_step,
)
from keras_recbert.train.run_facts import device_name, versions, write_json
from keras_recbert.train.run_folder import RESULTS, check_own, read_options
from keras_recbert.train.strategy import (
    make_strategy,
    steps_done,
)

NOT_FROZEN = {"frozen_at": None, "best": None, "waited": 0}


def pretrain(config):
    """Pre-trains an encoder and writes everything into one folder.

    The folder gets `preset/` (the encoder with its vocabulary, for
    `keras_recbert.load` and `weights=`), `model.keras` (heads too), `history.csv`,
    `pretraining_curves.png`, `tensorboard/`, `results.json` and `checkpoints/`, from
    which the same command resumes after a stop: with the same weights, bit for bit.
    `keras_recbert.load` reads `model.keras`, too.

    Args:
        config: `PretrainingConfig`.

    Returns:
        Tuple of the `Pretrainer` and the dict in `results.json`; None for workers
        that are not the chief, which write nothing.

    Raises:
        ValueError: if options do not fit each other, the corpora or the encoder, or
            the folder holds a run with others; before anything is written.
        OSError: if something cannot be read or written; the last checkpoint is whole.
        RuntimeError: if another process works in the folder, or the loss is NaN; of
            several workers, if one is lost.
    """
    if config.corpus is None:
        raise ValueError(
            "Pre-training needs text. Pass corpus=DIR (--corpus DIR), a folder that "
            "`recbert prepare` wrote."
        )
    check_installed("`recbert pretrain`", "pretrain", "matplotlib")
    keras.utils.set_random_seed(config.seed)
    strategy = make_strategy(config.strategy)
    with naming_lost_workers(strategy):
        return _pretrain(config, strategy)


def _pretrain(config, strategy):
    folder = pathlib.Path(config.run_dir())
    check_place(folder)
    check_folder(folder / "preset", PRESET_FILES, overwrite=True)
    if (folder / RESULTS).exists():
        check_own(read_options(folder / RESULTS), folder, "pre-training", "steps")
    checkpoints = Checkpoints(folder / "checkpoints", config.keep_checkpoints)
    objectives = read_objectives(config.objectives)
    corpus = load_corpus(config.corpus)
    held_out = load_validation(config, corpus)
    sums = {name: one.sha256 for name, one in held_out.items()}
    sums = {"corpus": corpus.sha256, "validation": sums}
    started = checkpoints.read_state()
    way_out = f"remove {checkpoints.folder}"
    check_same_run(started, config, sums, folder, way_out)
    config = config.resolved(started and started["options"])
    phases = [
        (PretrainingExamples(corpus, objectives, length, config.seed), size, steps)
        for length, size, steps in config.phases()
    ]
    validation = validation_batches(config, held_out, objectives, strategy)
    _next_sentence_monitor(config, objectives)
    check_shares(config, strategy)
    precision = choose_run_precision(started, config)
    with strategy.scope():
        model = build_pretrainer(config, corpus, objectives, precision)
        _check_memory(model, config, strategy)
        optimizer = pretraining_optimizer(config)
        model.compile_for_pretraining(optimizer)
        optimizer.build(model.trainable_variables)
        found = checkpoints.steps()
        state = checkpoints.restore(model)
        check_workers_agree([*model.weights, *optimizer.variables], strategy)
    if model.backbone.weights_report is not None:
        print(model.backbone.weights_report, flush=True)
    state = state or {
        "step": 0,
        "history": {},
        "freezing": NOT_FROZEN,
        "precision": dataclasses.asdict(precision),
        "options": dataclasses.asdict(config),
        "sums": sums,
    }
    if state["freezing"]["frozen_at"] is not None:
        model.freeze_next_sentence()
    tell_step(state)
    # Nothing is written before the model stands: wrong arguments leave nothing behind.
    with locked_folder(folder) if is_chief(strategy) else contextlib.nullcontext():
        if checkpoints.steps() != found:
            raise RuntimeError(
                f"Another process has gone on with the run in {folder} meanwhile. Run "
                "the same command again."
            )
        checkpoints.remove_unfinished()
        with checkpoints.telling_the_last():
            return _fit(config, strategy, model, phases, validation, checkpoints, state)


def _fit(config, strategy, model, phases, validation, checkpoints, state):
    """The rest of a run, from a state on; what `pretrain` returns."""
    folder, objectives = pathlib.Path(config.run_dir()), model.objectives
    every, accumulation_steps = config.checkpoint_every, config.accumulation_steps
    precision = Precision(**state["precision"])
    epoch_logs = EpochLogs(folder / "history.csv", state["history"])
    scores = IntervalScores(
        validation,
        lambda epoch: num_tokens(config, epoch * every, (epoch + 1) * every),
        seconds=(state["history"].get("seconds") or [0.0])[-1],
        accumulation_steps=accumulation_steps,
    )
    line = ProgressLine(
        validation, folder / "history.csv", config.steps, every, accumulation_steps
    )
    callbacks = [EpochSeeds(), scores, line]
    freezing = None
    if objectives.next_sentence is not None:
        freezing = FreezeNextSentence(
            objectives.next_sentence,
            _next_sentence_monitor(config, objectives),
            state["freezing"],
            state["step"],
            accumulation_steps,
        )
        callbacks.append(freezing)

    def current_state():
        return {
            **state,
            "step": steps_done(model.optimizer),
            "history": epoch_logs.history,
            "freezing": freezing.state if freezing else NOT_FROZEN,
        }

    if is_chief(strategy):
        callbacks += [
            StopAtNaN(checkpoints),
            epoch_logs,
            keras.callbacks.TensorBoard(str(folder / "tensorboard"), profile_batch=0),
            SaveCheckpoints(checkpoints, current_state),
        ]
    if state["step"] < config.steps:
        model.fit(
            shared_batches(
                batches_from(phases, state["step"], accumulation_steps), strategy
            ),
            epochs=config.steps // every,
            initial_epoch=state["step"] // every,
            steps_per_epoch=every * accumulation_steps,
            shuffle=False,  # they come shuffled
            callbacks=callbacks,
            verbose=1 if sys.stdout.isatty() else 2,
        )
    else:  # stopped after the last checkpoint
        model.optimizer.finalize_variable_values(model.trainable_variables)
    # With an average of weights the model has become that only now.
    final = evaluate(model, validation)
    if not is_chief(strategy):
        return model, None
    history = epoch_logs.history
    with new_file(folder / "model.keras") as written:
        model.save(written)
    results = {
        "model": config.model,
        "objectives": config.objectives,
        "num_parameters": model.backbone.count_params(),
        "num_pretrainer_parameters": model.count_params(),
        "scores": final,
        "steps": config.steps,
        "examples_per_epoch": phases[0][0].num_examples,
        "tokens": num_tokens(config, 0, config.steps),
        "seconds": history["seconds"][-1],
        "seconds_per_step": float(np.median(history["seconds_per_step"])),
        "frozen_at": freezing.state["frozen_at"] if freezing else None,
        "history": history,
        "precision": {"policy": precision.policy, **dataclasses.asdict(precision)},
        "config": dataclasses.asdict(config),
        "sums": state["sums"],
        "versions": versions(),
        "device": device_name(),
    }
    kept = ("objectives", "scores", "steps", "tokens", "device")
    model.backbone.save_preset(
        folder / "preset",
        metrics={key: results[key] for key in kept} | {"seed": config.seed},
        source=str(config.corpus),
        overwrite=True,
    )
    save_pretraining_curves(
        folder / "pretraining_curves.png",
        {config.model: [history]},
        {config.model: every},
        f"{config.model}, {config.steps:,} steps",
    )
    write_json(folder / "results.json", results)
    return model, results


def build_pretrainer(config, corpus, objectives, precision):
    """The model of a run, untrained, with the vocabulary of the corpus."""
    longest = max(length for length, _, _ in config.phases())
    overrides = dict(config.overrides)
    if config.weights is None:
        overrides.setdefault("max_sequence_length", longest)
    model = keras_recbert.build(
        config.model,
        task="pretrainer",
        objectives=objectives,
        weights=config.weights,
        vocabulary=list(corpus.vocabulary),
        lowercase=corpus.lowercase,
        strip_accents=corpus.strip_accents,
        dropout=config.dropout,
        gradient_checkpointing=config.gradient_checkpointing,
        dtype=precision.policy,
        **overrides,
    )
    positions = model.backbone.config["max_sequence_length"]
    if positions < longest:
        raise ValueError(
            "Examples are longer than the table of positions. Received: "
            f"{longest} word pieces, max_sequence_length={positions}. Shorten "
            "sequence_length or raise max_sequence_length in overrides."
        )
    return model


def _check_memory(model, config, strategy):
    """Raises `ValueError` if a step cannot fit in memory."""
    slots = 2 + config.amsgrad + (config.ema_momentum is not None)
    for length, batch_size, _ in config.phases():
        rows = batch_size / config.accumulation_steps / strategy.num_replicas_in_sync
        check_step(model, rows * length, rows * length**2, slots)


def _next_sentence_monitor(config, objectives):
    """Validation score that decides when to freeze; of the first corpus."""
    watched = objectives.next_sentence and objectives.next_sentence.freeze_patience
    if not watched:
        return None
    if not config.validation:
        raise ValueError(
            "freeze_patience watches the validation loss of next_sentence. Received: "
            "no validation corpus. Name one (validation: {NAME: DIR}), or freeze at "
            "a step (freeze_at_step)."
        )
    return f"val_{next(iter(config.validation))}_next_sentence_cross_entropy"
