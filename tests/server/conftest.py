"""What tests of the server share: one SavedModel, written once."""

import pytest
from harness import randomize
from toy_texts import reviews, tiny_model

from keras_recbert.serving.savedmodel import read_savedmodel

TEXTS, _ = reviews(12)


@pytest.fixture(scope="session")
def film_model(tmp_path_factory):
    """Path of a SavedModel of a classifier of texts."""
    model = tiny_model(label_names=["bad", "good"])
    randomize(model)
    path = tmp_path_factory.mktemp("server") / "film_model"
    model.export_savedmodel(path)
    return path


@pytest.fixture(scope="module")
def direct(film_model):
    """What the SavedModel answers to a list of texts, called by itself: rows."""
    return asking(film_model)


def asking(path):
    """A function of texts to the rows that a SavedModel answers."""
    import tensorflow as tf

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
