"""SavedModels that tests ask."""

import functools

import pytest
import tensorflow as tf
from harness import randomize
from toy_texts import review_pairs, reviews, tiny_model

from keras_recbert.serving.savedmodel import read_savedmodel

TEXTS, _ = reviews(6)
FIRST, SECOND, _ = review_pairs(6)
SLOW = pytest.mark.slow
# The name of the encoder, the task, and how many texts an example has.
CASES = {
    "bert": ("bert_tiny", "classifier", 1),
    "swish": ("swish_tiny", "classifier", 2),
    "trans_blstm": ("trans_blstm_tiny", "classifier", 1),
    "scores": ("bert_tiny", "regressor", 2),
}


class Written:
    """A model, its SavedModel, and the texts to ask both."""

    def __init__(self, case, folder):
        name, task, self.num_texts = CASES[case]
        names = (
            {"label_names": ["schlecht", "gr\u00fcn"]} if task == "classifier" else {}
        )
        self.model = tiny_model(name, task=task, **names)
        randomize(self.model)
        self.path = folder / case
        self.model.export_savedmodel(
            self.path, fields=("text", "text_pair")[: self.num_texts]
        )
        self.texts = (FIRST, SECOND) if self.num_texts == 2 else TEXTS
        columns = (FIRST, SECOND) if self.num_texts == 2 else (TEXTS,)
        self.inputs = dict(zip(("text", "text_pair"), columns, strict=False))

    @functools.cached_property
    def loaded(self):
        return tf.saved_model.load(str(self.path))

    @functools.cached_property
    def ask(self):
        """What `read_savedmodel` gives: a function of texts."""
        return read_savedmodel(self.path)
