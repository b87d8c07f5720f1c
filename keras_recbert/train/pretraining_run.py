"""One pre-training run: from a prepared corpus to an encoder and its curves."""

import numpy as np

import keras_recbert
from keras_recbert.core.extras import check_installed
from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.models.memory_estimate import check_step
from keras_recbert.objectives import read_objectives
from keras_recbert.tasks.pretraining_optimizer import pretraining_optimizer
from keras_recbert.train.multi_worker import shared_batches
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
from keras_recbert.train.run import Loop, open_run
from keras_recbert.train.run_folder import HISTORY, RunKind

PRETRAINING = RunKind(
    name="pre-training",
    own_files=("pretraining_curves.png",),
    own_folders={},
    next_step="`recbert finetune --weights {}/preset` starts from its encoder.",
    keeps_checkpoints=True,
)
# What the card of the preset has of the results.
KEPT = ("objectives", "scores", "steps", "tokens", "device")
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
        FileExistsError: if the folder holds what is not to be lost, see `open_run`.
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
    with open_run(config, PRETRAINING, config.keep_checkpoints) as run:
        return _pretrain(run)


def _pretrain(run):
    objectives = read_objectives(run.config.objectives)
    corpus = load_corpus(run.config.corpus)
    held_out = load_validation(run.config, corpus)
    checksums = {name: one.sha256 for name, one in held_out.items()}
    run.check_texts({"corpus": corpus.sha256, "validation": checksums})
    config, strategy = run.config, run.strategy
    phases = [
        (PretrainingExamples(corpus, objectives, length, config.seed), size, steps)
        for length, size, steps in config.phases()
    ]
    validation = validation_batches(config, held_out, objectives, strategy)
    monitor = _next_sentence_monitor(config, objectives)
    check_shares(config, strategy)
    with strategy.scope():
        model = build_pretrainer(config, corpus, objectives, run.precision)
        _check_memory(model, config, strategy)
        model.compile_for_pretraining(pretraining_optimizer(config))
    if model.encoder.weights_report is not None:
        print(model.encoder.weights_report, flush=True)
    with run.begin(model, freezing=NOT_FROZEN) as state:
        if state["freezing"]["frozen_at"] is not None:
            model.freeze_next_sentence()
        loop = _loop(run, phases, validation, objectives.next_sentence, monitor, state)
        state = run.fit(model, loop, state)
        # With an average of weights the model has become that only now.
        scores = evaluate(model, validation)
        if not run.writes:
            return model, None
        results = _results(run, model, phases, scores, state)
        _write(run, model, results)
    return model, results


def _loop(run, phases, validation, next_sentence, monitor, state):
    """The epochs of a run, which end at checkpoints, from a state on."""
    config, every = run.config, run.config.checkpoint_every
    accumulation_steps = config.accumulation_steps

    def stream(step):
        batches = batches_from(phases, step, accumulation_steps)
        return shared_batches(batches, run.strategy)

    def tokens(epoch):
        return num_tokens(config, epoch * every, (epoch + 1) * every)

    path, steps = run.folder / HISTORY, config.steps
    scoring = [
        IntervalScores(validation, tokens, run.clock, accumulation_steps),
        ProgressLine(validation, path, steps, every, accumulation_steps),
    ]
    freezing = None
    if next_sentence is not None:
        freezing = FreezeNextSentence(
            next_sentence, monitor, state["freezing"], state["step"], accumulation_steps
        )
        scoring.append(freezing)
    return Loop(
        epochs=steps // every,
        steps_per_epoch=every,
        accumulation_steps=accumulation_steps,
        batches=stream,
        scoring=scoring,
        own_state=lambda: {"freezing": freezing.state if freezing else NOT_FROZEN},
    )


def _results(run, model, phases, scores, state):
    config, history = run.config, state["history"]
    return run.results(
        state,
        objectives=config.objectives,
        num_parameters=model.encoder.count_params(),
        num_pretrainer_parameters=model.count_params(),
        scores=scores,
        examples_per_epoch=phases[0][0].num_examples,
        tokens=num_tokens(config, 0, config.steps),
        seconds_per_step=float(np.median(history["seconds_per_step"])),
        frozen_at=state["freezing"]["frozen_at"],
    )


def _write(run, model, results):
    """Writes what comes after training, each file or folder whole or not at all."""
    config = run.config
    run.write_model(model, results, KEPT, str(config.corpus), model.encoder)
    save_pretraining_curves(
        run.folder / "pretraining_curves.png",
        {config.model: [results["history"]]},
        {config.model: config.checkpoint_every},
        f"{config.model}, {config.steps:,} steps",
    )
    run.finish(results)


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
    positions = model.encoder.config["max_sequence_length"]
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
