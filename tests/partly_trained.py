"""Small models of which a part trains, and what moved in them."""

import numpy as np
from harness import SHRUNK, set_seed
from toy_texts import VOCABULARY, reviews

import keras_recbert

TEXTS, LABELS = reviews()
RATE = 1e-2

# One model of each kind of block, and the weights that adapters of rank 2 have in one
# of its blocks: 2 (rows + columns) for each Dense kernel of the sizes in SHRUNK.
KINDS = {
    "bert_tiny": 2 * (12 + 36 + 12 + 12 + 12 + 20 + 20 + 12),
    "swish_tiny": 2 * (12 + 36 + 12 + 12 + 12 + 40 + 20 + 12),
    "trans_blstm_tiny": 2 * (12 + 36 + 12 + 12 + 12 + 20 + 20 + 12 + 14 + 12),
    "trans_blstm_half_base": 2 * (12 + 36 + 12 + 12 + 12 + 20 + 20 + 12),
    "trans_blstm_1_base": 2 * (12 + 36 + 12 + 12 + 14 + 12),
    "blstm_base": 2 * (14 + 12),
}


def small(name="bert_tiny", task="classifier", **overrides):
    """A model of two blocks (SwishRNN: three) that reads `VOCABULARY`."""
    set_seed(0)
    return keras_recbert.build(
        name,
        task=task,
        **{
            **SHRUNK[keras_recbert.get_card(name).sizes["block"]],
            "vocabulary": VOCABULARY,
            "max_sequence_length": 64,
            "dropout": 0.0,
            "pooling": "first",
            **overrides,
        },
    )


def train(model, steps=1):
    """Steps of the recipe from its full rate on; eager, as tracing is what costs."""
    model.compile_for_fine_tuning(steps, learning_rate=RATE, warmup_fraction=0.0)
    model.run_eagerly = True
    for _ in range(steps):
        model.train_on_batch(ids(model), LABELS)
    return model


def ids(model):
    return model.preprocessor(TEXTS)


def values(model):
    return {weight.path: weight.numpy() for weight in model.weights}


def moved(before, after):
    return {key for key in before if not np.array_equal(before[key], after[key])}
