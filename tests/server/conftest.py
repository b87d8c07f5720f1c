"""What tests of the server share: one SavedModel, written once."""

import pytest
from harness import randomize
from served import asking
from toy_texts import tiny_model


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
