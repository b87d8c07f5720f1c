"""Batches of a pre-training run: of its phases, and of the corpora held out."""

import tensorflow as tf

from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.train.even_batches import fill_rows
from keras_recbert.train.multi_worker import shared_batches


def load_validation(config, corpus):
    """The validation corpora, by name.

    Args:
        config: `PretrainingConfig`.
        corpus: `Corpus` of the training.

    Returns:
        dict of name to `Corpus`.

    Raises:
        ValueError: if one was cut in another way than `corpus`.
    """
    held_out = {}
    for name, path in config.validation.items():
        held_out[name] = load_corpus(path)
        check_same_pieces(held_out[name], corpus, corpus.path)
    return held_out


def check_same_pieces(corpus, trained, source):
    """Checks that a corpus can score a model.

    Args:
        corpus: `Corpus`.
        trained: `Corpus` that the model learned from, or its `WordPieceTokenizer`.
        source: str or path. What messages call it.

    Raises:
        ValueError: if the text was cut in another way.
    """
    if corpus.vocabulary != trained.vocabulary:
        raise ValueError(
            f"The corpus {corpus.path} has other word pieces than {source}. Prepare it "
            "with --vocabulary and the vocab.txt of the training."
        )
    for option in ("lowercase", "strip_accents"):
        mine, other = getattr(trained, option), getattr(corpus, option)
        if mine != other:
            raise ValueError(
                f"The corpus {corpus.path} was cut with {option}={other}, {source} "
                f"with {mine}. Prepare it again, in the same way."
            )


def validation_batches(config, held_out, objectives, strategy):
    """Datasets of the validation corpora, by name.

    Args:
        config: `PretrainingConfig`.
        held_out: what `load_validation` gave.
        objectives: `Objectives`.
        strategy: `tf.distribute.Strategy`, whose devices share them.

    Returns:
        dict of name to a dataset for `model.evaluate`.
    """
    validation = {}
    for name, corpus in held_out.items():
        examples = PretrainingExamples(
            corpus, objectives, config.sequence_length, config.seed
        )
        number = min(config.validation_examples, examples.num_examples)
        batches = examples.fixed_batches(
            config.batch_size // config.accumulation_steps, number
        )
        batches = _filled(batches, number, strategy.num_replicas_in_sync)
        validation[name] = shared_batches(batches, strategy)
    return validation


def _filled(batches, num_rows, num_devices):
    """Validation batches that so many devices can share, with the same scores.

    Rows that are added to the last batch weigh nothing. What Keras divides by is the
    number of all rows, so that the others weigh more.
    """
    fill = -num_rows % num_devices
    if not fill:
        return batches

    def even(x, y, weights):
        num_real = tf.shape(x["token_ids"])[0]
        x, y, weights = fill_rows((x, y, weights), num_real, num_devices)
        is_real = tf.range(-(-num_real // num_devices) * num_devices) < num_real
        scale = tf.where(is_real, (num_rows + fill) / num_rows, 0.0)
        weights = {
            name: values * tf.reshape(scale, [-1] + [1] * (values.shape.rank - 1))
            for name, values in weights.items()
        }
        return x, y, weights

    return batches.map(even, num_parallel_calls=tf.data.AUTOTUNE)


def check_shares(config, strategy):
    """Raises `ValueError` if devices cannot share the batches equally."""
    num_devices = strategy.num_replicas_in_sync
    for length, batch_size, _ in config.phases():
        rows = batch_size // config.accumulation_steps
        if rows % num_devices:
            raise ValueError(
                "The devices must share a batch equally. Received: "
                f"batch_size={batch_size} for {length} word pieces, "
                f"accumulation_steps={config.accumulation_steps}, {num_devices} "
                f"devices. {batch_size} must be a multiple of "
                f"{config.accumulation_steps * num_devices}."
            )


def batches_from(phases, step, accumulation_steps):
    """Batches of a run from a step on.

    Args:
        phases: list of tuples of `PretrainingExamples`, batch size and steps.
        step: int. Steps done.
        accumulation_steps: int. Batches that an optimizer step takes.

    Returns:
        `tf.data.Dataset` for `model.fit`.
    """
    batches = None
    for examples, batch_size, num_steps in phases:
        done = min(step, num_steps)
        step -= done
        if done == num_steps:
            continue
        rest = examples.batches(batch_size, done, num_steps - done, accumulation_steps)
        if len(phases) > 1:  # of other sizes, and a dataset has one specification
            rest = _open_shapes(rest)
        batches = rest if batches is None else batches.concatenate(rest)
    return batches


def num_tokens(config, first, last):
    """Positions of the batches of the steps from `first` to before `last`."""
    total, begin = 0, 0
    for length, batch_size, num_steps in config.phases():
        end = begin + num_steps
        total += length * batch_size * max(0, min(last, end) - max(first, begin))
        begin = end
    return total


def _open_shapes(batches):
    """The same batches, whose specification names no sizes."""
    return batches.map(
        lambda *batch: tf.nest.map_structure(
            lambda x: tf.raw_ops.PlaceholderWithDefault(
                input=x, shape=[None] * x.shape.rank
            ),
            batch,
        )
    )
