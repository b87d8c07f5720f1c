"""Scores of pre-trained models on text that they have not seen."""

import pathlib
import sys

from keras_recbert.convert.load_keras import load_model
from keras_recbert.core.checks import check_integer, check_seed
from keras_recbert.data.corpus import corpus_sha256, load_corpus
from keras_recbert.data.pretraining_examples import (
    MIN_SEQUENCE_LENGTH,
    PretrainingExamples,
)
from keras_recbert.tasks.pretrainer import Pretrainer
from keras_recbert.train.pretraining_callbacks import evaluate
from keras_recbert.train.pretraining_data import check_same_pieces


def score_pretrained(
    path, corpora, sequence_length=None, num_examples=None, batch_size=64, seed=0
):
    """Scores a model of `recbert pretrain` on its objectives, over whole corpora.

    Masks, swaps and pairs follow from the seed, so they are the same for all models of
    the same objectives.

    Args:
        path: str or path of its `model.keras`.
        corpora: dict of name to a folder that `recbert prepare` wrote with the
            vocabulary of the model.
        sequence_length: int. Word pieces of a row; by default all that the model has
            positions for.
        num_examples: int. Examples of each corpus, spread evenly over it; by default
            all windows.
        batch_size: int. Examples at a time; the scores do not depend on it.
        seed: int. Seed of masks, swaps and pairs.

    Returns:
        dict of `test_NAME_SCORE`, such as `test_books_masked_lm_perplexity`; see
        `pretraining_callbacks.evaluate`.

    Raises:
        FileNotFoundError: if the model or a corpus is not there.
        ValueError: if the model has no objectives, or a corpus was cut with other word
            pieces or cannot serve them.
    """
    check_seed(seed)
    if sequence_length is not None:
        check_integer(MIN_SEQUENCE_LENGTH, sequence_length=sequence_length)
    if num_examples is not None:
        check_integer(1, num_examples=num_examples)
    check_integer(1, batch_size=batch_size)
    for folder in corpora.values():
        corpus_sha256(folder)  # raises where there is none
    if pathlib.Path(path).is_dir():
        raise ValueError(
            f"{path} is a folder. Name the model.keras of a run: a preset has no heads."
        )
    model = load_model(path)
    if not isinstance(model, Pretrainer):
        raise ValueError(
            f"{path} has no heads of pre-training objectives. Name the model.keras of "
            "`recbert pretrain`; `recbert finetune` scores what it trains."
        )
    positions = model.encoder.config["max_sequence_length"]
    length = positions if sequence_length is None else sequence_length
    if length > positions:
        raise ValueError(
            f"`sequence_length` must be at most {positions}, the positions of {path}. "
            f"Received: sequence_length={length}."
        )
    test = {}
    for name, folder in corpora.items():
        corpus = load_corpus(folder)
        check_same_pieces(corpus, model.preprocessor.tokenizer, path)
        examples = PretrainingExamples(corpus, model.objectives, length, seed)
        number = examples.num_examples if num_examples is None else num_examples
        test[name] = examples.fixed_batches(batch_size, number)
    model.compile_for_pretraining("sgd")  # for its metrics
    return evaluate(model, test, "test", verbose=1 if sys.stdout.isatty() else 0)
