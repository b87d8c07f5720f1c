"""Early stopping, class weights and scaled labels, across a stop too."""

import csv

import numpy as np
import pytest
from own_tables import config, write_rows
from stopped_runs import Stopped, stop_after, stop_at
from toy_texts import reviews, write_glue_task

from keras_recbert.data.task_files import read_split
from keras_recbert.data.task_spec import get_task
from keras_recbert.train import training_run
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.run import Run


@pytest.fixture
def options(tmp_path):
    """Options of a run on texts of which a quarter are good."""
    texts, labels = reviews(60)
    good = [text for text, label in zip(texts, labels, strict=True) if label][:10]
    bad = [text for text, label in zip(texts, labels, strict=True) if not label]
    rows = [(text, "good") for text in good] + [(text, "bad") for text in bad]
    path = write_rows(tmp_path / "a.csv", ("text", "label"), rows)
    test = write_rows(tmp_path / "test.csv", ("text", "label"), rows[8:14])
    return {"train": path, "test": test, "output_dir": str(tmp_path / "run")}


def made_up_scores(monkeypatch, scores):
    """Makes the next epochs score as given; each epoch takes one."""
    scores = iter(scores)

    class Scores(training_run.ValidationScores):
        def on_epoch_end(self, epoch, logs=None):
            super().on_epoch_end(epoch, logs)
            logs["validation_accuracy"] = next(scores)

    monkeypatch.setattr(training_run, "ValidationScores", Scores)


@pytest.mark.slow
def test_a_run_stops_early_and_keeps_its_best_epoch(
    eager_steps, options, monkeypatch, capsys
):
    """Epochs without a better score are counted across a stop, too."""
    made_up_scores(monkeypatch, [0.5, 0.7, 0.6, 0.7, 0.9])
    stop = {"epochs": 5, "early_stopping": 2}
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=3)
        with pytest.raises(Stopped):
            fine_tune(config(**options, **stop))
    _, results = fine_tune(config(**options, **stop))
    assert results["history"]["validation_accuracy"] == [0.5, 0.7, 0.6, 0.7]
    assert results["best_epoch"] == 2
    assert results["steps"] == 4 * (results["steps"] // 4)
    assert len(results["history"]["loss"]) == 4
    out = capsys.readouterr().out
    assert "Stopping early: no better validation accuracy since epoch 2." in out


@pytest.mark.slow
def test_a_run_may_keep_its_last_epoch_whatever_its_score(
    eager_steps, options, monkeypatch
):
    made_up_scores(monkeypatch, [0.5, 0.9, 0.6])
    _, results = fine_tune(config(**options, epochs=3, keep_epoch="last"))
    assert results["best_epoch"] == 3
    assert results["main_score"] == "validation_accuracy"
    assert results["scores"]["validation_accuracy"] == 0.6
    assert (
        results["scores"]["validation_loss"]
        == results["history"]["validation_loss"].pop()
    )


@pytest.mark.slow
def test_a_run_that_stopped_early_trains_no_more(options, monkeypatch):
    made_up_scores(monkeypatch, [0.7, 0.6, 0.9])
    stop = {"epochs": 3, "early_stopping": 1}
    with monkeypatch.context() as patch:
        patch.setattr(Run, "finish", _stop)
        with pytest.raises(Stopped):
            fine_tune(config(**options, **stop))
    _, results = fine_tune(config(**options, **stop))
    assert results["history"]["validation_accuracy"] == [0.7, 0.6]


def _stop(*args):
    raise Stopped


@pytest.mark.slow
def test_balanced_classes_count_the_same_in_the_loss(options):
    unweighted = {"epochs": 1, "learning_rate": 1e-9, "dropout": 0.0}
    _, plain = fine_tune(config(**options, **unweighted))
    weighted = {**unweighted, "class_weights": "balanced", "overwrite": True}
    model, results = fine_tune(config(**options, **weighted))
    from keras_recbert.train.own_data import load_own_data

    train = load_own_data(config(**options)).train
    labels = train.targets["label"]
    logits = model.predict(train.fields["text"], verbose=0).astype("float64")
    losses = np.log(np.exp(logits).sum(1)) - logits[range(len(train)), labels]
    mean = [losses[labels == label].mean() for label in (0, 1)]
    assert results["history"]["loss"][0] == pytest.approx(np.mean(mean), abs=1e-5)
    assert plain["history"]["loss"][0] == pytest.approx(losses.mean(), abs=1e-5)
    assert abs(np.mean(mean) - losses.mean()) > 1e-4
    # What epochs are compared by counts each example the same.
    assert results["scores"]["validation_loss"] == pytest.approx(
        plain["scores"]["validation_loss"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_a_stopped_run_ends_with_the_same_files_bit_for_bit(
    options, tmp_path, monkeypatch, kind
):
    more = {"epochs": 3, "checkpoint_every": 1, "early_stopping": 2}
    if kind == "classifier":
        more["class_weights"] = "balanced"
    else:
        for path in (options["train"], options["test"]):
            _number(path)
    whole = str(tmp_path / "whole")
    model, expected = fine_tune(config(**{**options, **more, "output_dir": whole}))
    weights = [weight.numpy() for weight in model.weights]
    per_epoch = expected["steps"] // len(expected["history"]["loss"])
    for step in (2, per_epoch + 2):
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                fine_tune(config(**options, **more))
    model, found = fine_tune(config(**options, **more))
    for key in ("history", "scores", "best_epoch", "steps", "notes"):
        assert found[key] == expected[key], key
    for weight, value in zip(model.weights, weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value, err_msg=weight.path)
    for name in ("predictions.csv", "report_test.md", "mistakes_test.csv"):
        one, other = ((tmp_path / run / name).read_bytes() for run in ("run", "whole"))
        assert one == other, name


def _number(path):
    """Makes numbers of the labels of a table: around 50, apart by 20."""
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    with open(path, "w", newline="") as file:
        numbers = {"bad": 40.5, "good": 60.5}
        rows = [(text, numbers[label]) for text, label in rows]
        csv.writer(file).writerows([header, *rows])


@pytest.mark.slow
def test_a_test_table_that_changed_does_not_resume_a_run(options, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 1)
        with pytest.raises(Stopped):
            fine_tune(config(**options, checkpoint_every=1))
    with open(options["test"], "a") as file:
        file.write("another text,good\n")
    with pytest.raises(ValueError, match="another text in the files .*--overwrite"):
        fine_tune(config(**options, checkpoint_every=1))


def test_scores_far_from_0_are_learned(eager_steps, options, tmp_path):
    _number(options["train"]), _number(options["test"])
    model, results = fine_tune(config(**options, epochs=1))
    with (tmp_path / "run" / "predictions.csv").open(newline="") as file:
        scores = [float(row["score"]) for row in csv.DictReader(file)]
    # The mean of the labels is near 46; a head that begins at 0 stays near it.
    assert 30 < np.mean(scores) < 60
    assert results["scores"]["test_mean_absolute_error"] < 25
    assert results["history"]["loss"][0] < 10


@pytest.mark.slow
def test_a_table_of_a_glue_task_trains_as_the_task(tmp_path):
    write_glue_task(tmp_path / "glue", "sst2")
    glue = {"data_dir": str(tmp_path / "glue"), "output_dir": str(tmp_path / "a")}
    _, expected = fine_tune(config(**glue))
    paths = []
    for split in ("train", "validation"):
        examples = read_split("sst2", tmp_path / "glue", split)
        names = get_task("sst2").label_names
        labels = [names[label] for label in examples.targets["label"]]
        rows = list(zip(examples.fields["text"], labels, strict=True))
        path = write_rows(tmp_path / f"{split}.csv", ("text", "label"), rows)
        paths.append(path)
    table = {"train": paths[0], "validation": paths[1]}
    _, found = fine_tune(config(**table, output_dir=str(tmp_path / "b")))
    for name, values in expected["history"].items():
        assert found["history"][name] == values, name
