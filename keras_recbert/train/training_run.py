"""One fine-tuning run: from examples to a scored model and a folder of results."""

from keras_recbert.convert.hub_folder import with_revision
from keras_recbert.data.task_spec import get_task, list_tasks
from keras_recbert.ops.implementation import compiling
from keras_recbert.serving.savedmodel import FILES as SAVEDMODEL_FILES
from keras_recbert.tasks.compiling import compiling_where_it_pays
from keras_recbert.text.vocabulary import save_vocabulary
from keras_recbert.train.callbacks import (
    StopEarly,
    TrainingLoss,
    ValidationScores,
    best_epoch,
)
from keras_recbert.train.checkpoint_callbacks import PlaceInEpoch
from keras_recbert.train.even_batches import count_real_rows, even_batches
from keras_recbert.train.learning_curve import save_learning_curve
from keras_recbert.train.run import Loop
from keras_recbert.train.run_folder import WAY_OUT, RunKind
from keras_recbert.train.run_model import check_memory, run_vocabulary

FILES_OF_TASKS = (
    "predictions.csv",
    "predictions.json",
    "nbest.json",
    "null_odds.json",
    "predictions.conll",
    *(
        name.format(split)
        for split in ("validation", "test")
        for name in (
            "report_{}.md",
            "confusion_{}.png",
            "scatter_{}.png",
            "mistakes_{}.csv",
        )
    ),
    *(
        name
        for task in map(get_task, list_tasks())
        if task.submission is not None
        for name in task.submission.files.values()
    ),
)
FINE_TUNING = RunKind(
    name="fine-tuning",
    own_files=("vocab.txt", "savedmodel", "learning_curve.png", *FILES_OF_TASKS),
    own_folders={"savedmodel": SAVEDMODEL_FILES},
    next_step="`recbert export` writes a SavedModel of its model.keras.",
)
# What the card of the preset has of the results.
KEPT = ("task", "scores", "best_epoch", "validation_examples", "seconds", "device")


def train(run, data, learned=None, corpus=None):
    """Trains and scores a model and writes everything into the folder of the run.

    The folder gets `vocab.txt`, `model.keras` and `preset/` (best epoch by the main
    metric on the first validation split, or the last, as `keep_epoch` says; loadable;
    the preset's card has the scores),
    `savedmodel/`, `history.csv`, `learning_curve.png`, `tensorboard/`, at last
    `results.json`, and while it trains `checkpoints/`, from which the same command
    resumes after a stop: with the same weights, bit for bit. `data.finish` may add
    files.

    Args:
        run: `keras_recbert.train.run.Run` of the kind `FINE_TUNING`.
        data: `keras_recbert.train.run_data.RunData`, or
            `keras_recbert.train.several_tasks.SeveralTasks`.
        learned: optional `keras_recbert.train.transfer_batches.TransferBatches`, or
            another that gives batches, to learn from in place of the labels of `data`.
        corpus: optional list of str to learn the vocabulary from; by default the
            training texts.

    Returns:
        Tuple of the model (best epoch) and the dict in `results.json`.

    Raises:
        ValueError: if arguments do not fit each other, or the run that would resume
            has read other texts; before anything is written.
        OSError: if something cannot be written; the last checkpoint is whole.
        RuntimeError: if the loss is NaN or infinite.
    """
    config = run.config
    data = data.limited(config.limit)
    notes = [*data.notes, *data.warnings()]
    learned = learned or data.labelled(config)
    texts = learned.texts if corpus is None else lambda: corpus
    vocabulary, vectors = run_vocabulary(config, texts)
    checksums = data.checksums() | learned.checksums()
    if vectors is not None:
        checksums["vectors"] = vectors.checksum()
    run.check_texts(checksums)
    scale = data.label_scale()
    with run.strategy.scope():
        words = vocabulary, vectors
        model, batches, weights = _build(run, data, words, learned, scale)
    validation = data.splits(run, model, scale)
    monitor = f"{next(iter(validation))}_{data.main_metric}"
    # `needs` is the checkpoint of the best epoch.
    with run.begin(model, training_loss=None, needs=[]) as state:
        save_vocabulary(vocabulary, run.folder / "vocab.txt")
        scorer = ValidationScores(validation, data.metrics)
        loop = _loop(run, model, batches, weights, scorer, monitor, state)
        state = run.fit(model, loop, state)
        _restore_best(run, model, state)
        if scale is not None:
            scale.undo(model)
        next(iter(validation.values())).tune(model)
        history = state["history"]
        kept = _kept_epoch(config, history[monitor])
        num_trained = len(learned) * len(history[monitor])
        results = run.results(
            state,
            task=data.name,
            task_version=data.version,
            num_parameters=model.count_params(),
            learning_rate=model.highest_learning_rate(),
            pooling=model.pooling,
            main_score=monitor,
            scores=_scores_of(history, kept),
            best_epoch=kept,
            **data.sizes(),
            examples_per_second=num_trained / state["seconds"],
            notes=notes,
            **learned.facts(),
        )
        results["scores"] |= data.final_scores(run, model)
        _write(run, model, results, state["training_loss"], monitor)
    return model, results


def _build(run, data, words, learned, scale):
    """The model, compiled; its batches; the weights of the classes. In the scope."""
    config, strategy = run.config, run.strategy
    model = data.build(config, *words, run.precision)
    if config.weights is not None:
        print(model.encoder.weights_report, flush=True)
    batch_size = min(config.batch_size, len(learned))
    batches = learned.batches(model, batch_size, scale)
    check_memory(model, batches, batch_size, strategy)
    model.compile_for_fine_tuning(
        len(batches.lengths) * config.epochs,
        warmup_fraction=config.warmup_fraction,
        weight_decay=config.weight_decay,
        **learned.compile_arguments(model.head),
    )
    weights = learned.class_weights()
    count_real_rows(model, strategy, weights)
    return model, batches, weights


def _loop(run, model, batches, weights, scorer, monitor, state):
    """The epochs of a run, from a state on."""
    config, history = run.config, state["history"]
    steps = len(batches.lengths)
    place = PlaceInEpoch(steps, state["place"])
    readings = max(1, steps * config.epochs // 200)  # steps between two
    training_loss = TrainingLoss(place, readings, state["training_loss"])
    stop_early = StopEarly(history, monitor, config.early_stopping)

    def stream(step):
        # Endless, so that a run that was stopped resumes where it was: each pass over
        # the examples has an order of its own.
        return even_batches(batches.dataset, run.strategy).repeat().skip(step)

    def own_state():
        scores = history.get(monitor)
        return {
            "training_loss": training_loss.state(),
            "needs": [steps * _kept_epoch(config, scores)] if scores else [],
        }

    def scope():
        if model.long_texts == "windows":
            return compiling(False)  # the number of rows is another in each batch
        # By the whole run: what resumes computes as what was not stopped.
        lengths = batches.lengths * config.epochs
        return compiling_where_it_pays(model.encoder, config.batch_size, lengths)

    is_one_device = run.strategy.num_replicas_in_sync == 1
    return Loop(
        epochs=config.epochs,
        steps_per_epoch=steps,
        batches=stream,
        scoring=[scorer],
        logged=[training_loss, stop_early],
        own_state=own_state,
        place=place,
        checkpoint_every=config.checkpoint_every,
        has_ended=stop_early.is_due,
        class_weight=weights if is_one_device else None,
        scope=scope,
    )


def _restore_best(run, model, state):
    """Makes the model that of the best epoch."""
    (best_step,) = state["needs"]
    if run.checkpoints.restore_step(model, best_step) is None:
        raise ValueError(
            f"The best epoch of the run in {run.folder} cannot be read. Remove "
            f"{run.checkpoints.folder} and {WAY_OUT} to train anew."
        )


def _kept_epoch(config, scores):
    """Number of the epoch whose model is kept, from 1, by the main scores so far."""
    return len(scores) if config.keep_epoch == "last" else best_epoch(scores)


def _scores_of(history, epoch):
    """The validation scores of an epoch."""
    return {
        key: values[epoch - 1]
        for key, values in history.items()
        if key.partition("_")[0].startswith("validation")
    }


def _write(run, model, results, training_loss, monitor):
    """Writes what comes after training, each file or folder whole or not at all."""
    config, folder = run.config, run.folder
    run.write_model(model, results, KEPT, with_revision(config.weights))
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
    run.finish(results)
