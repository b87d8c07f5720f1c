"""Which version of a model is served, and what is told of the others."""

import concurrent.futures
import logging
import os
import re
import shutil

import httpx
import numpy as np
import pytest
from harness import randomize
from toy_texts import tiny_model

from keras_recbert.config import ServeConfig
from keras_recbert.server import models, running
from keras_recbert.server.models import Model, load_version, name_of, open_models


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
    assert set(model.version.signatures) == {"serving_default", "ids", "tokenize"}
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
    os.symlink(film_model, tmp_path / "other")  # a link has a name of its own
    assert name_of(tmp_path / "other") == "other" and name_of(f"{tmp_path}/c/") == "c"
    (tmp_path / "d:e" / "1").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"name of the folder.*Received: 'd:e'"):
        Model(tmp_path / "d:e")


def test_answers_that_are_as_long_as_those_beside_them_get_a_call_each(
    tmp_path, capsys
):
    """Choices of two sizes at once; the line that is printed works, too."""
    model = tiny_model(task="multiple_choice")
    randomize(model)
    path = tmp_path / "choices"
    model.export_savedmodel(path, fields=("text", "choices"))
    default = load_version(1, path).signatures["serving_default"]
    assert not default.joins
    examples = [("a film", ["good", "bad"]), ("a story", ["x", "a fine film", "x x"])]

    def direct(text, choices):
        columns = {"text": [text.encode()], "choices": [[c.encode() for c in choices]]}
        arrays = {name: np.array(value, object) for name, value in columns.items()}
        return {name: values[0] for name, values in default(arrays).items()}

    expected = [direct(*example) for example in examples]
    assert [len(row["scores"]) for row in expected] == [2, 3]
    config = ServeConfig([str(path)], port=0, batch_timeout_ms=200)
    with running(config) as url:
        predict = f"{url}/v1/models/choices:predict"

        def ask(example):
            row = dict(zip(("text", "choices"), example, strict=True))
            return httpx.post(predict, json={"instances": [row]}).json()["predictions"]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for (row,), own in zip(
                pool.map(ask, examples * 4), expected * 4, strict=True
            ):
                np.testing.assert_allclose(row["scores"], own["scores"], atol=1e-5)
                assert row.keys() == own.keys()
        body = re.search("curl -d '(.*)' http", capsys.readouterr().out)[1]
        assert len(httpx.post(predict, content=body).json()["predictions"]) == 1
