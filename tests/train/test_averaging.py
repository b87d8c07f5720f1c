"""The mean of runs that differ in their seeds: weights, scores, what is refused."""

import json

import numpy as np
import pytest
from own_tables import OPTIONS, write_rows
from scipy.stats import pearsonr
from toy_texts import reviews, tiny_model, write_glue_task

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.data.task_files import read_split

SHARED = {**OPTIONS, "model": "bert_tiny", "overrides": {}, "max_sequence_length": 24}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, eager_module):
    """A table, weights, and two runs of three epochs from them."""
    folder = tmp_path_factory.mktemp("averaging")
    texts, labels = reviews(120)
    names = np.array(["bad", "good"])[labels]
    rows = list(zip(texts, names, strict=True))
    tiny_model(max_sequence_length=24).save_preset(folder / "weights")
    for name, part in (("train", rows[:80]), ("validation", rows[80:])):
        write_rows(folder / f"{name}.csv", ("text", "label"), part)
    for seed in (0, 1):
        fine_tune(folder, f"seed{seed}", seed=seed)
    return folder


def fine_tune(folder, name, **changes):
    options = {**SHARED, "epochs": 1, "weights": folder / "weights"}
    options |= {key: folder / f"{key}.csv" for key in ("train", "validation")}
    options |= {"output_dir": folder / name, **changes}
    return keras_recbert.finetune(**options)


def weights_of(run):
    return keras_recbert.load(run / "preset").get_weights()


def test_the_mean_is_scored_and_written_as_a_run(folder, tmp_path, capsys):
    runs, mean = [folder / "seed0", folder / "seed1"], tmp_path / "mean"
    command = ["average", *map(str, runs), "--output-dir", str(mean), "--no-export"]
    assert main(command) == 0
    out = capsys.readouterr().out
    results = json.loads((mean / "results.json").read_text())
    for first, second, found in zip(
        *map(weights_of, runs), weights_of(mean), strict=True
    ):
        np.testing.assert_allclose(found, (first + second) / 2, atol=1e-7)
    model = keras_recbert.load(mean / "model.keras")
    texts, labels = reviews(120)
    answers = model.predict(texts[80:], verbose=0).argmax(1)
    accuracy = np.mean(answers == labels[80:])
    assert results["scores"]["validation_accuracy"] == pytest.approx(accuracy)
    assert f"validation accuracy: {accuracy:.4f}" in out
    single = [json.loads((run / "results.json").read_text()) for run in runs]
    assert results["averaged_seeds"] == [0, 1]
    assert results["averaged"] == [
        {"seed": seed, "validation_accuracy": one["scores"]["validation_accuracy"]}
        for seed, one in enumerate(single)
    ]
    assert results["seconds"] == pytest.approx(sum(one["seconds"] for one in single))
    assert (mean / "report_validation.md").is_file()
    assert not (mean / "checkpoints").exists()
    assert main(["push", str(mean), str(tmp_path / "published")]) == 0
    card = (tmp_path / "published/README.md").read_text()
    assert "Of seeds 0, 1: the mean of the weights, on" in card
    # Another is not lost by mistake.
    assert main(command) == 2
    assert "holds a finished run" in capsys.readouterr().err
    _, again = keras_recbert.average(runs, mean, export=False, overwrite=True)
    assert again["scores"] == results["scores"]


def test_what_differs_in_more_than_the_seed_is_refused(folder, tmp_path):
    seed0 = folder / "seed0"
    fine_tune(folder, "longer", epochs=2, limit=16)
    fine_tune(folder, "random", weights=None, vocabulary_size=90, limit=16)
    refused = [
        ([seed0], ValueError, "two runs or more"),
        ([seed0, folder / "." / "seed0"], ValueError, "each once"),
        ([seed0, folder / "longer"], ValueError, "seed0 and .*longer differ in"),
        ([folder / "random", seed0], ValueError, "started from random weights"),
        ([seed0, tmp_path], FileNotFoundError, "holds no finished run"),
    ]
    for runs, error, message in refused:
        with pytest.raises(error, match=message):
            keras_recbert.average(runs, tmp_path / "mean")
        assert not (tmp_path / "mean").exists()
    other = tmp_path / "pretrained"
    other.mkdir()
    (other / "results.json").write_text('{"kind": "pre-training"}')
    with pytest.raises(ValueError, match="is of pre-training. Only runs of"):
        keras_recbert.average([seed0, other], tmp_path / "mean")
    (other / "results.json").write_text('{"kind": "fine-tu')
    with pytest.raises(ValueError, match="pretrained/results.json is damaged"):
        keras_recbert.average([seed0, other], tmp_path / "mean")


def test_other_examples_are_refused(folder, tmp_path):
    table = folder / "validation.csv"
    before = table.read_bytes()
    try:
        table.write_bytes(before + b"a new row,good\n")
        runs = [folder / "seed0", folder / "seed1"]
        with pytest.raises(ValueError, match="other examples .*: validation of"):
            keras_recbert.average(runs, tmp_path / "mean")
    finally:
        table.write_bytes(before)
    assert not (tmp_path / "mean" / "results.json").exists()


def test_scores_are_on_the_scale_of_the_labels(folder, tmp_path):
    """Which a regressor leaves while it learns."""
    write_glue_task(tmp_path, "stsb")
    options = {**SHARED, "weights": folder / "weights", "task": "stsb"}
    options |= {"data_dir": tmp_path, "epochs": 1}
    for seed in (0, 1):
        output_dir = tmp_path / f"seed{seed}"
        keras_recbert.finetune(**options, seed=seed, output_dir=output_dir)
    runs = [tmp_path / "seed0", tmp_path / "seed1"]
    model, results = keras_recbert.average(runs, tmp_path / "mean", export=False)
    examples = read_split("stsb", tmp_path, "validation")
    scores = model.predict(tuple(examples.fields.values()), verbose=0)
    labels = examples.targets["label"]
    loss = np.mean((scores - labels) ** 2)
    assert results["scores"]["validation_loss"] == pytest.approx(loss, rel=1e-3)
    pearson = pearsonr(scores, labels)[0]
    assert results["scores"]["validation_pearson"] == pytest.approx(pearson, abs=1e-3)
