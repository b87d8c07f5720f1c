"""One fine-tuning run: from examples to a scored model and a folder of results."""

import functools
import hashlib

import numpy as np

from keras_recbert.data.examples import texts_in
from keras_recbert.serving.savedmodel import FILES as SAVEDMODEL_FILES
from keras_recbert.tasks.compiling import compiling_where_it_pays
from keras_recbert.tasks.text_batches import bucketed_batches, ordered_batches
from keras_recbert.text.vocabulary import save_vocabulary
from keras_recbert.train.callbacks import (
    DevScores,
    StopEarly,
    TrainingLoss,
    best_epoch,
)
from keras_recbert.train.checkpoint_callbacks import PlaceInEpoch
from keras_recbert.train.even_batches import (
    count_real_rows,
    even_batches,
    even_features,
)
from keras_recbert.train.learning_curve import save_learning_curve
from keras_recbert.train.run import Loop
from keras_recbert.train.run_folder import WAY_OUT, RunKind
from keras_recbert.train.run_model import (
    LabelScale,
    build_model,
    check_memory,
    class_weights,
    run_vocabulary,
)

OWN_DATA_FILES = (
    "predictions.csv",
    *(
        name.format(split)
        for split in ("dev", "test")
        for name in (
            "report_{}.md",
            "confusion_{}.png",
            "scatter_{}.png",
            "mistakes_{}.csv",
        )
    ),
)
FINE_TUNING = RunKind(
    name="fine-tuning",
    own_files=("vocab.txt", "savedmodel", "learning_curve.png", *OWN_DATA_FILES),
    own_folders={"savedmodel": SAVEDMODEL_FILES},
    next_step="`recbert export` writes a SavedModel of its model.keras.",
)
# What the card of the preset has of the results.
KEPT = ("task", "scores", "best_epoch", "dev_examples", "seconds", "device")


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
        run: `keras_recbert.train.run.Run` of the kind `FINE_TUNING`.
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
    if config.limit is not None:
        train_examples = train_examples.take(
            range(min(config.limit, len(train_examples)))
        )
    notes = [*notes, *_warnings(task, train_examples)]
    splits = {"train": train_examples, **dev_examples}
    if test_examples is not None:
        splits["test"] = test_examples
    run.check_texts({name: _checksum(examples) for name, examples in splits.items()})
    vocabulary = run_vocabulary(config, corpus or _all_texts(train_examples))
    scale = LabelScale.of(_labels(train_examples)) if task.scales_labels else None
    with run.strategy.scope():
        model, batches, weights = _build(run, task, vocabulary, train_examples, scale)
    dev = {
        split: (_dev_batches(run, model, examples), _targets(model, examples, scale))
        for split, examples in dev_examples.items()
    }
    monitor = f"{next(iter(dev))}_{task.main_metric}"
    # `needs` is the checkpoint of the best epoch.
    with run.begin(model, training_loss=None, needs=[]) as state:
        save_vocabulary(vocabulary, run.folder / "vocab.txt")
        scorer = DevScores(dev, task.metrics)
        loop = _loop(run, model, batches, weights, scorer, monitor, state)
        state = run.fit(model, loop, state)
        _restore_best(run, model, state)
        if scale is not None:
            scale.undo(model)
        history = state["history"]
        num_trained = len(train_examples) * len(history[monitor])
        results = run.results(
            state,
            task=task.name,
            task_version=task.version,
            num_parameters=model.count_params(),
            learning_rate=model.learning_rate,
            pooling=model.pooling,
            scores=_best_scores(history, monitor),
            best_epoch=best_epoch(history[monitor]),
            train_examples=len(train_examples),
            dev_examples={key: len(value) for key, value in dev_examples.items()},
            examples_per_second=num_trained / state["seconds"],
            notes=notes,
        )
        if finish is not None:
            predict = functools.partial(_predict, run, model)
            results["scores"] |= finish(run.folder, train_examples, predict)
        _write(run, model, results, state["training_loss"], monitor)
    return model, results


def _build(run, task, vocabulary, examples, scale):
    """The model, compiled; its batches; the weights of the classes. In the scope."""
    config, strategy = run.config, run.strategy
    model = build_model(config, task, vocabulary, run.precision)
    if config.weights is not None:
        print(model.backbone.weights_report, flush=True)
    model.fields = model.preprocessor.fields[: len(examples.fields)]
    batch_size = min(config.batch_size, len(examples))
    batches = bucketed_batches(
        model.preprocessor,
        tuple(examples.fields.values()),
        (_targets(model, examples, scale),),
        batch_size,
        seed=config.seed,
    )
    check_memory(model, batches.lengths, len(examples), batch_size, strategy)
    model.compile_for_fine_tuning(
        len(batches.lengths) * config.epochs,
        warmup_fraction=config.warmup_fraction,
        weight_decay=config.weight_decay,
    )
    weights = class_weights(config, task, _labels(examples))
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
            "needs": [steps * best_epoch(scores)] if scores else [],
        }

    def scope():
        # By the whole run: what resumes computes as what was not stopped.
        lengths = batches.lengths * config.epochs
        return compiling_where_it_pays(model.backbone, config.batch_size, lengths)

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


def _targets(model, examples, scale):
    """Labels as the head learns them, on the scale of training if there is one."""
    labels = _labels(examples)
    return model.head.as_targets(labels if scale is None else scale.apply(labels))


def _predict(run, model, examples):
    """Logits of examples, in their order."""
    batches = _dev_batches(run, model, examples)
    return model.predict(batches, verbose=0)[: len(examples)]


def _dev_batches(run, model, examples):
    """Batches for `predict`, of which only the last may have rows too many."""
    num_devices = run.strategy.num_replicas_in_sync
    size = 2 * min(run.config.batch_size, len(examples))
    size = -(-size // num_devices) * num_devices
    texts = tuple(examples.fields.values())
    features = ordered_batches(model.preprocessor, texts, None, size)
    return even_features(features, run.strategy)


def _best_scores(history, monitor):
    """The dev scores of the best epoch."""
    epoch = best_epoch(history[monitor])
    return {
        key: values[epoch - 1]
        for key, values in history.items()
        if key.partition("_")[0].startswith("dev")
    }


def _write(run, model, results, training_loss, monitor):
    """Writes what comes after training, each file or folder whole or not at all."""
    config, folder = run.config, run.folder
    run.write_model(model, results, KEPT, config.weights)
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
