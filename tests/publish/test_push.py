import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from docs_pages import blocks
from hub_server import TOKEN, point_to, serving
from huggingface_hub import ModelCard
from toy_texts import tiny_model

import keras_recbert
from keras_recbert.benchmark.frontier_systems import name_models
from keras_recbert.cli import main
from keras_recbert.convert.hub_folder import downloaded, local_folder
from keras_recbert.convert.preset import read_preset
from keras_recbert.core.json_files import file_sha256
from keras_recbert.publish.push import push
from keras_recbert.train.teacher import find_model

SAMPLES = pathlib.Path(__file__).parents[1] / "data" / "samples"
MODEL = "hf://jane/films"


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "films"
    tiny_model(label_names=["bad", "good"]).save_preset(
        folder, metrics={"films": {"accuracy": 0.75}}, source="/home/jane/MINILM"
    )
    return folder


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with serving() as (hub, address):
        point_to(monkeypatch, address, tmp_path / "cache")
        hub.address = address
        downloaded.cache_clear()
        yield hub
    downloaded.cache_clear()


def test_a_run_is_pushed_and_its_card_tells_what_it_records(
    hub, tmp_path, monkeypatch, eager_steps, capsys
):
    monkeypatch.chdir(tmp_path)
    data = str(SAMPLES / "rte")
    train = f"finetune --task rte --data-dir {data} --model swish_tiny --epochs 1"
    small = "--no-export --vocabulary-size 90 --max-sequence-length 32 --overrides"
    small += " num_layers 1 hidden_dim 16 num_heads 2"
    assert main([*train.split(), *small.split(), "--output-dir", "run"]) == 0
    terms = ["--licence", "apache-2.0", "--data-licence", "PASCAL's own"]
    assert main(["push", "run", MODEL, *terms]) == 0
    commit, files = hub.files("jane/films")
    said = capsys.readouterr().out
    assert f"Pushed {MODEL}, revision {commit}. Load it: keras_recbert.load(" in said
    assert len(hub.models["jane/films"]["revisions"]) == 2  # what a new model has, ours

    results = json.loads(pathlib.Path("run/results.json").read_text())
    text = files["README.md"].decode()
    card = ModelCard(text)  # as the Hub reads it
    assert card.data.library_name == "keras"
    assert card.data.license == "apache-2.0"
    (score,) = card.data.eval_results
    assert score.metric_value == results["scores"]["validation_accuracy"]
    assert (score.metric_type, score.dataset_type) == ("accuracy", "rte")
    for fact in (
        f"| device | {results['device']} |",
        f"| optimizer steps | {results['steps']} |",
        f"| learned from | rte ({keras_recbert.data.get_task('rte').source}) |",
        "| licence of the data | PASCAL's own |",
        "| started from | random weights |",
        f"seed {results['config']['seed']}, on {results['device']}",
        f"{results['num_parameters']:,} parameters",
        f"| learning rate | {results['learning_rate']:.4g} |",
        "\nmodel: swish_tiny\n",
    ):
        assert fact in text, fact
    assert str(SAMPLES) not in text
    assert str(tmp_path) not in text

    # What the card says to type works, and gives the model of the run.
    namespace = {}
    exec(*blocks("python", text), namespace)
    one, other = namespace["model"], keras_recbert.load("run/preset")
    for mine, theirs in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    line = blocks("bash", text)[0].splitlines()[0]
    assert main(line.split()[1:]) == 0
    assert name_models([MODEL], find_model) == {"films": local_folder(MODEL)}


def test_a_process_pushes_by_environment_alone(hub, preset, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_TOKEN": TOKEN}
    environment |= {"HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "keras_recbert.cli", "push", str(preset), MODEL]
    ended = subprocess.run(
        [*command, "--private"], env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert hub.models["jane/films"]["private"]
    assert hub.files("jane/films")[1]["vocab.txt"] == (
        (preset / "vocab.txt").read_bytes()
    )


def test_a_folder_gets_the_same_without_a_hub(preset, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["push", str(preset), "shared/films"]) == 0
    assert "Load it: keras_recbert.load('shared/films')" in capsys.readouterr().out
    held = {path.name for path in pathlib.Path("shared/films").iterdir()}
    assert held == {*os.listdir(preset), "README.md"}
    assert os.listdir("shared") == ["films"]
    card = read_preset("shared/films").card
    for name, file in card["files"].items():
        assert file_sha256(f"shared/films/{name}") == file["sha256"]
    assert card["source"] == "MINILM"  # no folder of this machine
    text = pathlib.Path("shared/films/README.md").read_text()
    assert "/home/jane" not in text
    assert "| started from | MINILM |" in text
    assert "| films accuracy | 0.75 |" in text
    assert "Not stated: no results of a run are recorded" in text
    assert "license" not in ModelCard(text).data.to_dict()
    monkeypatch.chdir("shared")
    exec(*blocks("python", text), {})
    with pytest.raises(FileExistsError, match="exists already"):
        push(preset, "films")
    push(preset, "films", licence="mit", overwrite=True)
    push("films", "again")  # what was pushed is a preset, too
    assert read_preset("again").card["license"] == "mit"
    assert keras_recbert.load("again").label_names == ["bad", "good"]


def test_what_is_refused_is_refused_before_anything_is_sent(hub, preset, tmp_path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"")
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "model.safetensors").write_bytes(b"")
    run = tmp_path / "run"
    shutil.copytree(preset, run / "preset")
    damaged = pathlib.Path(shutil.copytree(preset, tmp_path / "damaged"))
    (damaged / "vocab.txt").write_text("[PAD]\n")
    for source, target, options, message in (
        (tmp_path / "none", MODEL, {}, "There is nothing at"),
        (tmp_path / "saved", MODEL, {}, "It is a SavedModel.*Push what it was exporte"),
        (tmp_path / "bert", MODEL, {}, "recbert convert .*/bert PRESET, then push"),
        (tmp_path, MODEL, {}, "holds no preset. Expected card.json"),
        (damaged, MODEL, {}, "vocab.txt was changed or damaged: its bytes is 6"),
        (run, MODEL, {}, "is not finished: it has no results.json"),
        (preset, "hf://films", {}, "named hf://user/name.*Received: 'hf://films'"),
        (preset, f"{MODEL}@v1", {}, "makes a revision of its own.*Push to hf://jane/"),
        (preset, "s3://jane/films", {}, "pushed to hf://user/name, to kaggle://"),
        (preset, MODEL, {"overwrite": True}, "keeps what was pushed before"),
        (preset, tmp_path / "new", {"private": True}, "as private as its disk"),
        (
            preset,
            "kaggle://a/b/keras/c",
            {"private": True},
            "keeps a new model priv",
        ),
        (preset, MODEL, {"licence": " "}, "`licence` is empty"),
        (preset, MODEL, {"data_licence": ""}, "`data_licence` is empty"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            push(source, target, **options)
    (run / "results.json").write_text('{"scores": {"validation_accuracy": 1.0}}')
    with pytest.raises(ValueError, match="is not of the run that wrote .*scores"):
        push(run, MODEL)
    (run / "results.json").write_text('{"scores"')
    with pytest.raises(ValueError, match="results.json is damaged"):
        push(run, MODEL)
    push(preset, tmp_path / "mit", licence="mit")
    with pytest.raises(ValueError, match="says that the licence is 'mit'.*apache-2.0"):
        push(tmp_path / "mit", MODEL, licence="apache-2.0")
    assert not hub.requests
    assert not (tmp_path / "new").exists()


def test_what_the_hub_refuses_says_what_to_do(hub, preset, monkeypatch, tmp_path):
    from huggingface_hub import constants

    push(preset, MODEL)
    with pytest.raises(ValueError, match="is there already, and public. Nothing was"):
        push(preset, MODEL, private=True)
    assert len(hub.models["jane/films"]["revisions"]) == 2
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(PermissionError, match="hf auth login, or set HF_TOKEN"):
        push(preset, "hf://jane/other")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ConnectionError, match="unset HF_HUB_OFFLINE.*or name a folder"):
        push(preset, MODEL)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=re.escape('pip install -e ".[hub]"')):
        push(preset, MODEL)
