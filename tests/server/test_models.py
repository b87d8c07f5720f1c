"""Which version of a model is served, and what is told of the others."""

import logging
import os
import shutil

import pytest

from keras_recbert.server import models
from keras_recbert.server.models import Model, open_models


def damage(version):
    data = next((version / "variables").glob("variables.data*"))
    data.write_bytes(data.read_bytes()[:-100])


def test_the_highest_version_that_loads_is_served(
    film_model, tmp_path, caplog, monkeypatch
):
    caplog.set_level(logging.INFO, "keras_recbert.server")
    loaded = []
    load = models.load_version

    def counted(number, path):
        loaded.append(number)
        return load(number, path)

    monkeypatch.setattr(models, "load_version", counted)
    folder = tmp_path / "films"
    shutil.copytree(film_model, folder / "2")
    for other in ("9", "03", "new", "7.tmp"):  # no versions: no model, other names
        (folder / other).mkdir()
    shutil.copy(film_model / "saved_model.pb", folder / "7.tmp")
    model = Model(folder)
    assert (model.name, model.version.number, model.damaged) == ("films", 2, {})
    assert set(model.version.signatures) == {"serving_default", "ids"}
    first = model.version
    model.refresh()
    assert model.version is first and loaded == [2]

    shutil.copytree(film_model, folder / "10")
    damage(folder / "10")
    model.refresh()
    assert model.version is first and set(model.damaged) == {10}
    assert "films: version 10 is left out. The SavedModel at" in caplog.text
    model.refresh()
    assert loaded == [2, 10]  # the same files are not tried again

    shutil.rmtree(folder / "10")
    shutil.copytree(film_model, folder / "10")
    model.refresh()
    assert model.version.number == 10 and model.damaged == {}
    assert "films: version 10 takes over from version 2." in caplog.text

    shutil.rmtree(folder / "10")
    model.refresh()
    assert model.version.number == 2
    shutil.rmtree(folder)
    model.refresh()
    assert model.version.number == 2


def test_a_folder_without_a_model_says_what_to_do(tmp_path, film_model):
    with pytest.raises(FileNotFoundError, match="numbered versions.*recbert export"):
        Model(tmp_path / "nothing")
    shutil.copytree(film_model, tmp_path / "films" / "1")
    damage(tmp_path / "films" / "1")
    with pytest.raises(ValueError, match=r"films/1 is damaged.*recbert export"):
        Model(tmp_path / "films")
    (tmp_path / "c").mkdir()
    os.symlink(film_model, tmp_path / "c" / "film_model")
    with pytest.raises(ValueError, match=r"Two folders have the name 'film_model'"):
        open_models([film_model, tmp_path / "c" / "film_model"])
    (tmp_path / "d:e" / "1").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"name of the folder.*Received: 'd:e'"):
        Model(tmp_path / "d:e")
