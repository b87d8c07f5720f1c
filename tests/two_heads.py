"""A model of two heads, its texts and their labels."""

import numpy as np
import tensorflow as tf
from harness import randomize
from toy_texts import reviews, tiny_model

TEXTS, LIKED = reviews(13)
NAMES = np.array(["bad", "good"])[LIKED]
STARS = (np.arange(13) % 4 + 0.5).astype("float32")
LABELS = {"tone": NAMES, "stars": STARS}
IDS = {"tone": LIKED, "stars": STARS}
HAS_STARS = (np.arange(13) % 3 > 0).astype("float32")
WEIGHTS = {"tone": np.ones(13, "float32"), "stars": HAS_STARS}
HEADS = {"tone": {"task": "classifier", "pooling": "first"}, "stars": "regressor"}
QUIET = {"verbose": 0}


def make(heads=HEADS, **arguments):
    return tiny_model(task=heads, **arguments)


def eager(model, steps=1, **arguments):
    """Compiled by the recipe, without tracing, which costs more than a few steps."""
    model.compile_for_fine_tuning(steps, **arguments)
    model.run_eagerly = True
    return model


def scores(model, *args, **kwargs):
    return model.evaluate(*args, return_dict=True, **QUIET, **kwargs)


def slices(*parts):
    return tf.data.Dataset.from_tensor_slices(parts)


def named_model():
    """Random weights, classes named."""
    made = make({**HEADS, "tone": {**HEADS["tone"], "label_names": ["bad", "good"]}})
    randomize(made)
    return eager(made)
