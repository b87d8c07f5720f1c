"""What a SavedModel of a classifier answers, in the form that the server gives it."""

import numpy as np
import tensorflow as tf
from toy_texts import reviews

from keras_recbert.serving.savedmodel import read_savedmodel

TEXTS, _ = reviews(12)


def asking(path):
    """A function of texts to the rows that a SavedModel answers."""
    signature = read_savedmodel(path)

    def ask(texts):
        outputs = {k: v.numpy() for k, v in signature(text=tf.constant(texts)).items()}
        return [
            {
                "label": label.decode(),
                "scores": scores.tolist(),
                "label_names": [name.decode() for name in names],
            }
            for label, scores, names in zip(
                outputs["label"], outputs["scores"], outputs["label_names"], strict=True
            )
        ]

    return ask


def assert_same(answers, expected):
    """Rows are equal, scores to the rounding of a call of other texts."""
    assert len(answers) == len(expected)
    for answer, own in zip(answers, expected, strict=True):
        np.testing.assert_allclose(answer["scores"], own["scores"], atol=1e-5)
        assert {**answer, "scores": 0} == {**own, "scores": 0}
