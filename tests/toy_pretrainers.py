"""Small pre-trainers and their examples."""

import numpy as np
import tensorflow as tf
from harness import SHRUNK, VOCABULARY_SIZE, randomize, set_seed, token_batch

from keras_recbert.models.recbert_encoder import RecBertEncoder
from keras_recbert.tasks.pretrainer import Pretrainer

LOW_SENTENCE = {
    "masked_lm": {"concatenate": "cls"},
    "next_sentence": {"layer": 1},
    "bigram_shift": {"layer": 2},
}
ALL = [
    {"masked_lm": None, "next_sentence": None},
    {"masked_lm": None},
    {"next_sentence": None},
    {"bigram_shift": None},
    {"masked_lm": {"layer": 1}, "next_sentence": None},
    {"masked_lm": {"concatenate": "next_sentence"}, "next_sentence": {"layer": 1}},
    {"masked_lm": {"layer": 2, "concatenate": "cls"}, "next_sentence": None},
    LOW_SENTENCE,
]


def make(entries, block="transformer", **sizes):
    set_seed(0)
    sizes = {
        **SHRUNK[block],
        "num_layers": 3,
        "vocabulary_size": VOCABULARY_SIZE,
        "max_sequence_length": 24,
        **sizes,
    }
    model = Pretrainer(RecBertEncoder(block=block, **sizes), entries)
    randomize(model)
    return model


def examples(model, seed=0, lengths=(11, 7, 9)):
    """`(x, y, sample_weight)` as the corpus gives them, of odd sizes."""
    rng = np.random.default_rng(seed)
    x = token_batch(lengths, 11, seed)
    x["mask_positions"] = np.array([[5, 1, 8], [2, 6, 0], [3, 0, 0]], "int32")
    size = model.encoder.config["vocabulary_size"]
    x["token_ids"] %= size
    guessed = rng.integers(0, size, (3, 3)).astype("int32")
    y = {
        "masked_lm": guessed,
        "causal_lm": guessed,
        "next_sentence": np.array([0, 1, 1], "int32"),
        "bigram_shift": (rng.random((3, 11)) < 0.3).astype("float32"),
    }
    real = {
        "masked_lm": np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]], "float32"),
        "next_sentence": np.ones(3, "float32"),
        "bigram_shift": x["padding_mask"].astype("float32"),
    }
    real["causal_lm"] = real["masked_lm"]
    names = model.objectives.names()
    if "masked_lm" not in names and "causal_lm" not in names:
        del x["mask_positions"]
    weights = {name: real[name] * real[name].size / real[name].sum() for name in names}
    return x, {name: y[name] for name in names}, weights


def repeated(batch, steps):
    return tf.data.Dataset.from_tensors(batch).repeat(steps)
