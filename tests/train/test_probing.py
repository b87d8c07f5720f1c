"""Probing runs: what a layer is known to hold is found, and only there."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
from harness import randomize
from registries import registries_kept
from toy_texts import FILLERS, VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.config import ProbeConfig
from keras_recbert.data import get_task, register_task
from keras_recbert.train import probing
from keras_recbert.train.probe_classifier import train_probe
from keras_recbert.train.probe_features import LayerFeatures

NUMBERS = {"tr": 150, "va": 30, "te": 30}


def write_tasks(folder):
    """The first word is the label of one task; the other has labels by chance."""
    rng = np.random.default_rng(0)
    for name in ("word_content", "bigram_shift"):
        lines = []
        for split, number in NUMBERS.items():
            for _ in range(number):
                words = list(rng.choice(FILLERS, rng.integers(1, 4)))
                label = "OI"[rng.integers(2)]
                if name == "word_content":
                    label = ("good", "dull", "x")[rng.integers(3)]
                    words.insert(0, label)
                lines.append(f"{split}\t{label}\t{' '.join(words)}\n")
        (folder / f"{name}.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def encoder():
    model = tiny_model(num_layers=2)
    randomize(model)
    model.encoder.preprocessor = model.preprocessor
    return model.encoder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def finished(encoder, data, tmp_path_factory):
    """A folder with a run of three layers, and its results."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    options = {"data_dir": data, "output_dir": folder, "pooling": "mean"}
    options |= {"learning_rate": 0.02, "early_stopping": 20}
    before = [weight.numpy() for weight in encoder.weights]
    results = keras_recbert.probe(encoder, **options)
    for weight, value in zip(encoder.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)  # frozen
    return options, results


def test_a_run_finds_what_is_there(finished):
    options, results = finished
    folder = options["output_dir"]
    assert list(results["tasks"]) == ["word_content", "bigram_shift"]
    content, shift = results["tasks"].values()
    assert list(content["layers"]) == list(shift["layers"]) == ["0", "1", "2"]
    assert (content["classes"], content["examples"]["test"]) == (3, 30)
    assert content["layers"]["0"]["test_accuracy"] >= 0.8 > content["majority"]
    for scores in shift["layers"].values():
        assert 0.2 <= scores["test_accuracy"] <= 0.8  # labels by chance
    assert json.loads((folder / "results.json").read_text()) == results
    header, _, *rows = (folder / "table.md").read_text().splitlines()
    assert header.endswith("| majority | embeddings | block 1 | block 2 |")
    found = 100 * content["layers"]["2"]["test_accuracy"]
    assert rows[0].startswith("| word_content | 3 | 150 |")
    assert rows[0].endswith(f"| {found:.1f} |")
    assert (folder / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((folder / "features").glob("*.npy"))) == 2


def test_features_are_those_of_single_texts(finished, encoder, data):
    (path,) = (finished[0]["output_dir"] / "features").glob("word_content-*.npy")
    lines = (data / "word_content.txt").read_text().splitlines()
    texts = [line.split("\t")[2] for line in lines]
    features = np.load(path)
    assert features.shape == (3, 210, 18) and features.dtype == np.float32
    for row in (0, 149, 150, 179, 180, 209):  # the ends of the splits
        for layer in range(3):
            one = encoder.encode(texts[row], layer, "mean", normalize=False)
            np.testing.assert_allclose(features[layer, row], one[0], atol=1e-5)


def test_what_is_done_is_not_done_again(finished, encoder, monkeypatch):
    options, results = finished
    held = json.loads((options["output_dir"] / "results.json").read_text())
    scores = held["tasks"]["bigram_shift"]["layers"].pop("1")
    (options["output_dir"] / "results.json").write_text(json.dumps(held))
    calls = []

    def spy(*args):
        calls.append(args)
        return train_probe(*args)

    monkeypatch.setattr(probing, "train_probe", spy)
    # Features come from their file.
    monkeypatch.setattr(
        "keras_recbert.train.probe_features.SentenceEncoder.encode", None
    )
    again = keras_recbert.probe(encoder, **options)
    assert len(calls) == 1
    found = dict(again["tasks"]["bigram_shift"]["layers"]["1"])
    for name in ("validation_accuracy", "test_accuracy", "best_epoch", "epochs"):
        assert found[name] == scores[name]  # one seed, one score


def test_other_runs_in_the_folder_are_refused(finished, encoder, data, tmp_path):
    options, _ = finished
    with pytest.raises(ValueError, match=r"with other options: seed=0 \(now 1\). Rep"):
        keras_recbert.probe(encoder, **options, seed=1)
    other = write_tasks(tmp_path)
    path = other / "bigram_shift.txt"
    path.write_text(path.read_text() + "te\tO\tone more\n")
    with pytest.raises(ValueError, match="on other texts or labels of bigram_shift"):
        keras_recbert.probe(encoder, **{**options, "data_dir": other})
    weight = encoder.embeddings.weights[0]
    value = weight.numpy()
    weight.assign(value + 1.0)
    try:
        with pytest.raises(ValueError, match="of an encoder with other weights"):
            keras_recbert.probe(encoder, **options)
    finally:
        weight.assign(value)


def test_a_task_is_read_in_rows_of_its_own_length(encoder, data, tmp_path):
    options = {"data_dir": data, "layers": [0], "epochs": 1}
    alone, both = tmp_path / "alone", tmp_path / "both"
    with registries_kept():
        short = dataclasses.replace(
            get_task("bigram_shift"), name="short", max_sequence_length=4
        )
        register_task(short)
        keras_recbert.probe(encoder, **options, output_dir=alone, tasks=["short"])
        for tasks in (["bigram_shift"], ["bigram_shift", "short"]):  # added later
            keras_recbert.probe(encoder, **options, output_dir=both, tasks=tasks)
    (path,) = (alone / "features").iterdir()
    other, same = sorted((both / "features").glob("*.npy"))
    assert same.name == path.name  # whichever task is beside it
    features = np.load(path)
    np.testing.assert_array_equal(np.load(same), features)
    assert np.abs(np.load(other) - features).max() > 1e-3  # longer texts


def test_results_of_earlier_versions_are_read(finished, encoder, tmp_path, monkeypatch):
    """They have one checksum, of rows as long as the longest of all tasks."""
    folder = tmp_path / "run"
    shutil.copytree(finished[0]["output_dir"], folder)
    options = {**finished[0], "output_dir": folder, "tasks": ["bigram_shift"]}
    held = json.loads((folder / "results.json").read_text())
    (checksum,) = {one.pop("features_sha256") for one in held["tasks"].values()}

    def write(checksum):
        (folder / "results.json").write_text(
            json.dumps({**held, "features_sha256": checksum})
        )

    write(checksum)
    monkeypatch.setattr(probing, "train_probe", None)
    again = keras_recbert.probe(encoder, **options)
    assert "features_sha256" not in again
    assert {one["features_sha256"] for one in again["tasks"].values()} == {checksum}
    tokenizer = encoder.preprocessor.tokenizer
    write(LayerFeatures(encoder, tokenizer, "mean", tmp_path).checksum(9))
    message = "on bigram_shift in rows of 9 word pieces, where the task has 64"
    with pytest.raises(ValueError, match=message):
        keras_recbert.probe(encoder, **options)


def test_a_damaged_file_of_features_is_told(finished, encoder, tmp_path):
    options, _ = finished
    cache = tmp_path / "cache"
    cache.mkdir()
    for path in (options["output_dir"] / "features").glob("*.npy"):
        (cache / path.name).write_bytes(path.read_bytes()[:-100])
    places = {"output_dir": tmp_path / "run", "cache_dir": cache}
    with pytest.raises(ValueError, match=r"word_content-\w+.npy is damaged: .*Remove"):
        keras_recbert.probe(encoder, **{**options, **places})
    for content in (b"", b"abc", b"PK\x03\x04"):
        for path in cache.iterdir():
            path.write_bytes(content)
        message = r"t-\w+.npy is damaged: NumPy reads no array from it. Remove it.$"
        with pytest.raises(ValueError, match=message):
            keras_recbert.probe(encoder, **{**options, **places})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tasks": ["bigram_shif"]},
            "No task is called 'bigram_shif'. Did you m",
        ),
        ({"tasks": ["mrpc"]}, "Task 'mrpc' is none to probe with: expected a classif"),
        ({"tasks": ["tree_depth"]}, "tree_depth.txt not found in"),
        ({"layers": [3]}, r"`layer` must be from 0 \(the embeddings\) to 2"),
        ({"layers": []}, "`layers` must be all, or numbers of layers"),
        ({"hidden_units": [0, 3]}, "`hidden_units` must be a whole number of at le"),
        ({"pooling": "first"}, "pooling"),
        ({"seeds": 1}, "seed"),
    ],
)
def test_wrong_options_leave_nothing(encoder, data, tmp_path, options, message):
    options = {"data_dir": data, "output_dir": tmp_path / "run", **options}
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        keras_recbert.probe(encoder, **options)
    assert not (tmp_path / "run").exists()


def test_what_cannot_be_probed(data, tmp_path):
    options = {"data_dir": data, "output_dir": tmp_path / "run"}
    with pytest.raises(ValueError, match="bert_tiny is a name, and probing needs an "):
        keras_recbert.probe("bert_tiny", **options)
    with pytest.raises(ValueError, match="built without a vocabulary"):
        keras_recbert.probe(tiny_model().encoder, **options)
    with pytest.raises(FileNotFoundError, match="holds none of the files of SentEval"):
        keras_recbert.probe("bert_tiny", data_dir=tmp_path)
    with pytest.raises(ValueError, match="The vocabulary comes with the weights"):
        ProbeConfig("bert_tiny", "DIR", weights="FOLDER", vocabulary="vocab.txt")


def test_commas_and_the_default_folder():
    config = ProbeConfig("a/preset/", "DIR", tasks=["tree_depth,odd_man_out"], seed=3)
    assert config.tasks == ["tree_depth", "odd_man_out"]
    assert config.run_dir() == "runs/probe-a-preset-seed3"


def test_the_best_epoch_is_the_one_that_is_scored():
    """Two classes that a line tells apart; the validation labels are turned around."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 5)).astype("float32")
    y = (x[:, 0] > 0).astype("int32")
    x[:, 0] += 2 * y - 1  # a gap between them
    features = {"train": x[:300], "validation": x[300:350], "test": x[350:]}
    labels = {"train": y[:300], "validation": 1 - y[300:350], "test": y[350:]}
    config = ProbeConfig("m", "DIR", hidden_units=[0], learning_rate=3e-3)
    turned = train_probe(features, labels, 2, config)
    labels["validation"] = y[300:350]
    straight = train_probe(features, labels, 2, config)
    # What training does to one it does to the other: each stops five epochs after its
    # best one, whose weights it scores.
    assert turned["epochs"] == turned["best_epoch"] + 5 < 10
    assert straight["validation_accuracy"] > 0.95 < straight["test_accuracy"]
    assert straight["best_epoch"] > turned["best_epoch"]
    assert turned["test_accuracy"] < straight["test_accuracy"] - 0.1


def test_what_a_layer_knows_is_found_whatever_its_scale():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    x = 3 + 1e-3 * rng.normal(size=(500, 5))
    x[:, 2] += 4e-3 * y
    x[:, 4] = 7.0  # as one number of a first token that no block has changed
    ends = [300, 400]
    names = ("train", "validation", "test")
    features = dict(zip(names, np.split(x.astype("float32"), ends), strict=True))
    labels = dict(zip(names, np.split(y, ends), strict=True))
    config = ProbeConfig("m", "DIR")
    found = train_probe(features, labels, 2, config)
    assert found["test_accuracy"] > 0.9
    as_it_is = dataclasses.replace(config, standardize=False)
    assert train_probe(features, labels, 2, as_it_is)["test_accuracy"] < 0.7
    np.testing.assert_array_equal(features["test"], x[400:].astype("float32"))


def test_probes_without_the_option_read_features_as_they_were():
    held = dataclasses.asdict(ProbeConfig("m", "DIR", standardize=False))
    del held["standardize"]
    assert ProbeConfig("m", "DIR", standardize=False).changes(held) == ""
    changes = ProbeConfig("m", "DIR").changes(held)
    assert changes == "standardize=False (now True)"


def test_a_command_with_random_weights(data, tmp_path, capsys):
    from keras_recbert.cli import main

    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    argv = ["probe", "bert_tiny", "--data-dir", str(data), "--vocabulary"]
    argv += [str(tmp_path / "vocab.txt"), "--tasks", "bigram_shift", "--layers", "-1"]
    argv += ["--output-dir", str(tmp_path / "run"), "--epochs", "2"]
    assert main(argv) == 0
    out = capsys.readouterr().out
    assert "| bigram_shift | 2 | 150 |" in out and "table.md, heatmap.png" in out
