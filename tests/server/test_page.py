"""Routes of the page of `recbert play`, and what it learns of a model."""

import socket
import types

import httpx
import pytest
import tensorflow as tf

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.config import ServeConfig
from keras_recbert.heads.head import make_head
from keras_recbert.server import card, make_app, page, run, running
from keras_recbert.server.models import OF_A_RUN
from keras_recbert.train import quickstart

CLASSIFIER = {
    "name": "films",
    "version": 1,
    "fields": [{"name": "text", "is_list": False}],
    "heads": [{"name": "", "kind": "classifier", "labels": ["bad", "good"]}],
    "can_mask": True,
    "has_gradients": False,
    "example": card._EXAMPLES["text",],
}


@pytest.fixture(scope="module")
def client(film_model, tmp_path_factory):
    """Asks a server with the page, of the folder of a run."""
    folder = tmp_path_factory.mktemp("run") / "films"
    folder.mkdir()
    (folder / OF_A_RUN).symlink_to(film_model)
    with (
        running(ServeConfig([str(folder)], port=0), page=True) as url,
        httpx.Client(base_url=url) as one,
    ):
        yield one


def test_the_page_is_of_its_own_files_alone(client):
    index = client.get("/")
    assert index.headers["content-type"].startswith("text/html")
    kinds = {"css": "text/css", "svg": "image/svg+xml", "js": "javascript"}
    for name in page.FILES:
        found = client.get(f"/{name}")
        assert kinds[name.partition(".")[2]] in found.headers["content-type"], name
        text = found.text.replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text and "innerHTML" not in text, name
        assert found.headers["content-security-policy"].startswith("default-src 'self'")
        assert found.headers["x-content-type-options"] == "nosniff"
    assert (
        index.headers["content-security-policy"]
        == page.HEADERS["Content-Security-Policy"]
    )
    assert "<style" not in index.text and "style=" not in index.text
    there = {path.name for path in page.FOLDER.iterdir() if path.suffix[1:] in kinds}
    assert there == set(page.FILES)
    assert client.get("/__init__.py").status_code == 404


def test_the_card_tells_what_the_savedmodel_holds(client):
    assert client.get("/v1/models").json() == {"models": ["films"]}
    assert client.get("/v1/models/films/card").json() == CLASSIFIER
    missing = client.get("/v1/models/film/card")
    assert missing.status_code == 404 and "films" in missing.json()["error"]
    answer = client.post("/v1/models/films:predict", json={"instances": ["a film"]})
    name, _, milliseconds = answer.headers["server-timing"].partition(";dur=")
    assert name == "predict" and 0 < float(milliseconds) < 60_000


@pytest.mark.parametrize(
    "task, arguments, logits",
    [
        ("classifier", {"num_classes": 3}, [1, 3]),
        ("multilabel_classifier", {"label_names": ["a", "b", "c"]}, [1, 3]),
        ("regressor", {}, [1]),
        ("multiple_choice", {}, [1, 3]),
    ],
)
def test_the_kind_of_a_head_is_known_by_its_answer(task, arguments, logits):
    outputs = make_head(task, arguments).answer(tf.zeros(logits))
    assert card._kind(outputs) == task.replace("multilabel_classifier", "multilabel")


def test_a_card_of_several_heads_and_of_unknown_outputs():
    def signature(*outputs):
        inputs = {"text": tf.TensorSpec([None], tf.string)}
        return types.SimpleNamespace(inputs=inputs, outputs=dict.fromkeys(outputs))

    heads = "tone_label", "tone_scores", "tone_label_names", "stars_scores"
    signatures = {
        "serving_default": signature(*heads),
        "ids": signature(*heads),
        "tone": signature("label", "scores", "label_names"),
        "stars": signature("scores"),
        "tokenize": signature("token_ids"),
    }
    first = {"tone_label_names": [[b"sour", "s\u00fc\u00df".encode()]]}
    version = types.SimpleNamespace(number=7, signatures=signatures, first_answer=first)
    found = card.model_card(types.SimpleNamespace(name="films", version=version))
    assert found["heads"] == [
        {"name": "tone", "kind": "classifier", "labels": ["sour", "s\u00fc\u00df"]},
        {"name": "stars", "kind": "regressor", "labels": []},
    ]
    assert not found["can_mask"] and found["version"] == 7
    assert card._kind({"topics": 0}) == "other"


def test_what_the_page_cannot_show_is_refused(capsys):
    def model(*fields):
        signature = types.SimpleNamespace(inputs=dict.fromkeys(fields))
        version = types.SimpleNamespace(signatures={"serving_default": signature})
        return types.SimpleNamespace(version=version)

    page.check_fields({"a": model("text"), "b": model("text")})
    with pytest.raises(ValueError, match="same fields.*a text; b context, question"):
        page.check_fields({"a": model("text"), "b": model("question", "context")})
    config = ServeConfig(["nothing"], token_file="token")
    with pytest.raises(ValueError, match="page is for this machine.*token_file=token"):
        make_app(config, page=True)
    with pytest.raises(ValueError, match="nothing to serve: name the folder"):
        keras_recbert.play()
    assert main(["play", "nothing", "--port", "0"]) == 2
    assert "There is no SavedModel at nothing" in capsys.readouterr().err


def test_play_opens_the_browser_and_ends_when_it_is_interrupted(
    film_model, monkeypatch, capsys
):
    def interrupt(url):
        assert "page.js" in httpx.get(url).text
        raise KeyboardInterrupt

    monkeypatch.setattr(run.webbrowser, "open", interrupt)
    assert main(["play", str(film_model), "--port", "0", "--open"]) == 0
    printed = capsys.readouterr().out
    assert "/v1/models/film_model:predict\nPlay at http://127.0.0.1:" in printed
    assert printed.endswith(
        "(Ctrl-C ends it)\nStopped: what was accepted is answered.\n"
    )


def test_the_quick_start_ends_with_the_page_or_refuses_at_once(monkeypatch):
    done = []
    monkeypatch.setattr(quickstart, "quickstart", lambda *given: done.append(given))
    monkeypatch.setattr(run, "play", lambda folder: done.append(folder))
    monkeypatch.setattr(run, "check_address", lambda: done.append("checked"))
    assert main(["quickstart", "--play", "--output-dir", "FOLDER"]) == 0
    assert done == ["checked", ("swish_tiny", [], "FOLDER", 0), "FOLDER"]
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"127.0.0.1:{port} cannot be served"):
            run.check_address(port=port)
