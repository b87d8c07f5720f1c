import csv
import json

import keras
import numpy as np
import pytest
from foreign_berts import PIECES, write_huggingface_folder
from harness import assert_close, largest_difference
from safetensors.numpy import load_file
from stopped_runs import Stopped, stop_after, stop_at
from toy_texts import reviews, write_glue_task

import keras_recbert
from keras_recbert.config import FineTuningConfig
from keras_recbert.convert.load_keras import load_model
from keras_recbert.data.task_files import read_split
from keras_recbert.metrics.glue import glue_scores
from keras_recbert.serving.savedmodel import read_savedmodel
from keras_recbert.train import training_run
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.training_run import FILES_OF_TASKS, FINE_TUNING

FILES = {
    "vocab.txt",
    "model.keras",
    "preset",
    "history.csv",
    "learning_curve.png",
    "tensorboard",
    "results.json",
}
REPORT = {"predictions.csv", "report_validation.md", "mistakes_validation.csv"}


def config(folder, task="sst2", **options):
    """Options of a run of a few seconds on toy files below `folder`."""
    if not (folder / "glue").is_dir():
        write_glue_task(folder / "glue", task)
    return FineTuningConfig(
        **{
            "model": "bert_tiny",
            "task": task,
            "data_dir": str(folder / "glue"),
            "output_dir": str(folder / "run"),
            "vocabulary_size": 90,
            "epochs": 4,
            "batch_size": 8,
            "learning_rate": 2e-2,
            "max_sequence_length": 32,
            "export": False,
            "overrides": {"num_layers": 1, "hidden_dim": 16, "num_heads": 2},
            **options,
        }
    )


def names_in(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder, config, model and results of one finished run with an export."""
    folder = tmp_path_factory.mktemp("sst2")
    options = config(folder, export=True, epochs=6)
    model, results = fine_tune(options)
    return folder / "run", options, model, results


def test_a_run_writes_what_it_promises(run):
    folder, _, _, results = run
    # And no checkpoints any more.
    assert names_in(folder) == {
        *FILES,
        *REPORT,
        "confusion_validation.png",
        "savedmodel",
    }
    written = set(FINE_TUNING.files) - set(FILES_OF_TASKS)
    assert {*FILES, "savedmodel", "checkpoints"} == written
    assert json.loads((folder / "results.json").read_text()) == results
    png = (folder / "learning_curve.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")
    assert list((folder / "tensorboard").rglob("events.out.tfevents.*"))
    saved = read_savedmodel(folder / "savedmodel")
    assert set(saved.structured_outputs) == {"label", "label_names", "scores"}


def test_results_hold_what_the_run_was(run):
    _, options, model, results = run
    assert (results["task"], results["task_version"]) == ("sst2", 1)
    assert results["model"] == "bert_tiny"
    assert results["num_parameters"] == model.count_params()
    assert results["train_examples"] == 24
    assert results["validation_examples"] == {"validation": 10}
    assert set(results["scores"]) == {"validation_loss", "validation_accuracy"}
    assert results["config"]["learning_rate"] == 2e-2
    assert results["config"]["model"] == options.model
    assert results["versions"]["keras"] == keras.__version__
    assert results["seconds"] > 0
    assert set(results["checksums"]) == {"train", "validation"}
    assert results["examples_per_second"] > 0
    assert results["steps"] % options.epochs == 0
    assert {len(values) for values in results["history"].values()} == {6}
    assert set(results["history"]) == {
        "loss",
        "accuracy",
        "validation_loss",
        "validation_accuracy",
    }


def test_the_learning_rate_of_the_config_is_used(run):
    _, options, model, results = run
    schedule = model.optimizer._learning_rate
    assert schedule.learning_rate == options.learning_rate
    assert schedule.total_steps == results["steps"]
    # The model is that of the best epoch, and its optimizer too.
    steps = results["steps"] // options.epochs * results["best_epoch"]
    assert int(model.optimizer.iterations) == steps
    # And it learns, which at BERT's 5e-5 it would not.
    assert results["history"]["loss"][-1] < 0.66


def test_history_is_a_plain_table(run):
    folder, _, _, results = run
    with (folder / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row.pop("epoch") for row in rows] == list("123456")
    for name, values in results["history"].items():
        assert [float(row[name]) for row in rows] == values


def test_the_best_epoch_is_kept(run):
    folder, options, model, results = run
    scores = results["history"]["validation_accuracy"]
    assert results["best_epoch"] == 1 + int(np.argmax(scores))
    assert results["scores"]["validation_accuracy"] == max(scores)
    validation = read_split("sst2", options.data_dir, "validation")
    for kept in (model, load_model(folder / "model.keras")):
        logits = kept.predict(validation.fields["text"], verbose=0)
        found = glue_scores(
            "accuracy", validation.targets["label"], logits.argmax(axis=1)
        )
        assert found == {"accuracy": max(scores)}
    assert load_model(folder / "model.keras").label_names == ["negative", "positive"]


def test_best_weights_are_not_just_the_last(tmp_path, monkeypatch):
    # The scores are made up: the second of four epochs is the best.
    made_up = iter([0.5, 0.9, 0.9, 0.1])
    kernels = []

    class Scores(training_run.ValidationScores):
        def on_epoch_end(self, epoch, logs=None):
            logs["validation_accuracy"], logs["validation_loss"] = next(made_up), 0.0
            kernels.append(self.model.head.dense.kernel.numpy())

    monkeypatch.setattr(training_run, "ValidationScores", Scores)
    model, results = fine_tune(config(tmp_path))
    assert results["best_epoch"] == 2
    assert results["scores"]["validation_accuracy"] == 0.9
    assert largest_difference(model.head.dense.kernel, kernels[1]) == 0
    assert largest_difference(kernels[2], kernels[1]) > 1e-4


def test_a_score_that_is_no_number_is_not_the_best():
    assert training_run.best_epoch([float("nan"), 0.5, 0.7, 0.7]) == 3
    assert training_run.best_epoch([float("nan")] * 2) == 1


@pytest.mark.parametrize(
    ("task", "scores"),
    [
        pytest.param("rte", {"validation_accuracy"}, marks=pytest.mark.slow),
        ("stsb", {"validation_pearson", "validation_spearman"}),
        ("mnli", {"validation_matched_accuracy", "validation_mismatched_accuracy"}),
    ],
)
def test_pairs_scores_and_two_validation_splits(eager_steps, tmp_path, task, scores):
    model, results = fine_tune(config(tmp_path, task, epochs=1))
    splits = {name.rpartition("_")[0] for name in scores}
    assert set(results["scores"]) == scores | {f"{split}_loss" for split in splits}
    assert set(results["validation_examples"]) == splits
    picture = "scatter_validation.png" if task == "stsb" else "confusion_validation.png"
    assert names_in(tmp_path / "run") == {*FILES, *REPORT, picture}
    assert model.fields == ("text", "text_pair")
    assert load_model(tmp_path / "run" / "model.keras").fields == ("text", "text_pair")
    split = sorted(splits)[0]
    validation = read_split(task, tmp_path / "glue", split)
    logits = model.predict(tuple(validation.fields.values()), verbose=0)
    loss = float(model.loss(validation.targets["label"], logits))
    assert results["scores"][f"{split}_loss"] == pytest.approx(loss, abs=1e-5)


# Resuming ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_stopped_run_resumes_inside_an_epoch_bit_for_bit(
    tmp_path, monkeypatch, capsys
):
    options = {"epochs": 3, "learning_rate": 5e-3, "checkpoint_every": 1}
    save_curve, curves = training_run.save_learning_curve, []

    def save_and_keep(path, training_loss, *args):
        curves.append(training_loss)
        save_curve(path, training_loss, *args)

    monkeypatch.setattr(training_run, "save_learning_curve", save_and_keep)
    model, whole = fine_tune(
        config(tmp_path, output_dir=str(tmp_path / "a"), **options)
    )
    expected = [weight.numpy() for weight in model.weights]
    per_epoch = whole["steps"] // 3
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at(patch, per_epoch + 2)
        with pytest.raises(Stopped):
            fine_tune(config(tmp_path, **options))
    assert Checkpoints(run / "checkpoints").steps()[-1] == per_epoch + 2
    assert names_in(run) == {"vocab.txt", "history.csv", "tensorboard", "checkpoints"}
    with pytest.raises(ValueError, match="a run with other options: epochs=3 .now 5"):
        fine_tune(config(tmp_path, **{**options, "epochs": 5}))

    model, found = fine_tune(config(tmp_path, **options))
    assert f"Resuming after step {per_epoch + 2}." in capsys.readouterr().out
    assert names_in(run) == {*FILES, *REPORT, "confusion_validation.png"}
    for key in ("history", "scores", "best_epoch"):
        assert found[key] == whole[key], key
    for weight, value in zip(model.weights, expected, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value, err_msg=weight.path)
    assert curves[0] == curves[1]
    assert len(curves[0]["losses"]) == whole["steps"]


@pytest.mark.slow
def test_the_best_epoch_may_lie_before_the_stop(tmp_path, monkeypatch):
    kernels, made_up = [], iter([0.9, 0.2, 0.3])

    class Scores(training_run.ValidationScores):
        def on_epoch_end(self, epoch, logs=None):
            logs["validation_accuracy"], logs["validation_loss"] = next(made_up), 0.0
            kernels.append(self.model.head.dense.kernel.numpy())

    monkeypatch.setattr(training_run, "ValidationScores", Scores)
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fine_tune(config(tmp_path, epochs=3))
    model, results = fine_tune(config(tmp_path, epochs=3))
    assert results["history"]["validation_accuracy"] == [0.9, 0.2, 0.3]
    assert results["best_epoch"] == 1
    assert results["scores"]["validation_accuracy"] == 0.9
    assert largest_difference(model.head.dense.kernel, kernels[0]) == 0


@pytest.mark.slow
def test_a_single_label_is_warned_of(tmp_path, capsys):
    options = config(tmp_path, epochs=1)
    path = tmp_path / "glue" / "SST-2" / "train.tsv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.endswith("0")) + "\n")
    _, results = fine_tune(options)
    warning = "All 12 training examples have the label positive: the model can learn"
    assert f"Warning: {warning}" in capsys.readouterr().out
    assert results["notes"][0].startswith(warning)


# Options -----------------------------------------------------------------------


@pytest.mark.slow
def test_limit_precision_and_a_given_vocabulary(tmp_path):
    vocabulary = tmp_path / "mine.txt"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "Good", "bad"]
    vocabulary.write_text("\n".join(pieces) + "\n")
    model, results = fine_tune(
        config(
            tmp_path,
            vocabulary=str(vocabulary),
            lowercase=False,
            limit=7,
            precision="bfloat16",
            epochs=1,
            pooling="first",
        )
    )
    assert results["train_examples"] == 7
    assert (tmp_path / "run" / "vocab.txt").read_text().split() == pieces
    assert model.preprocessor("Good good")["token_ids"].numpy().tolist() == [
        [2, 5, 4, 3]
    ]
    assert model.encoder.policy.compute_dtype == "bfloat16"
    assert model.pooling == "first"


@pytest.mark.slow
def test_a_run_from_pretrained_weights(tmp_path, capsys):
    write_huggingface_folder(tmp_path / "bert")
    cased = '{"do_lower_case": false}'
    (tmp_path / "bert" / "tokenizer_config.json").write_text(cased)
    sizes = {"num_layers": 1, "hidden_dim": 12, "num_heads": 3, "recurrent_dim": 7}
    options = config(
        tmp_path,
        model="trans_blstm_tiny",
        weights=str(tmp_path / "bert"),
        max_sequence_length=20,
        epochs=1,
        freeze="embeddings",
        layerwise_decay=0.9,
        overrides={**sizes, "intermediate_dim": 20},
    )
    model, results = fine_tune(options)
    assert "1 x block_*/projection/kernel: zero" in capsys.readouterr().out
    assert model.preprocessor.tokenizer.vocabulary == tuple(PIECES)
    assert not model.preprocessor.tokenizer.lowercase
    tokens = load_file(tmp_path / "bert" / "model.safetensors")
    assert np.array_equal(
        model.encoder.embeddings.token_embedding.embeddings.numpy(),
        tokens["embeddings.word_embeddings.weight"],
    )
    again = keras_recbert.load(tmp_path / "run" / "preset")
    texts, _ = reviews(5)
    assert_close(again.predict(texts, verbose=0), model.predict(texts, verbose=0), 1e-6)
    card = json.loads((tmp_path / "run" / "preset" / "card.json").read_text())
    assert card["metrics"]["scores"] == results["scores"]
    assert card["metrics"]["seed"] == options.seed
    assert card["source"] == str(tmp_path / "bert")


def test_weights_that_do_not_fit_are_told_before_any_work(tmp_path):
    write_huggingface_folder(tmp_path / "bert")
    options = config(tmp_path, weights=str(tmp_path / "bert"), epochs=1)
    with pytest.raises(ValueError, match="max_sequence_length: 32 in .*, 24 in the"):
        fine_tune(options)
    (tmp_path / "bert" / "vocab.txt").unlink()
    sizes = {"num_layers": 2, "hidden_dim": 12, "num_heads": 3, "intermediate_dim": 20}
    options = config(
        tmp_path,
        weights=str(tmp_path / "bert"),
        max_sequence_length=20,
        overrides=sizes,
    )
    with pytest.raises(ValueError, match="has no vocabulary. Pass the vocab.txt"):
        fine_tune(options)
    assert not (tmp_path / "run").exists()


def test_mistakes_are_told_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="'bert_tinny'. Did you mean 'bert_tiny'"):
        fine_tune(config(tmp_path, model="bert_tinny"))
    with pytest.raises(ValueError, match="No task is called 'sst3'.*mean 'sst2'"):
        fine_tune(config(tmp_path, task="sst3"))
    with pytest.raises(ValueError, match=r"data_dir \(--data-dir DIR\).*--tfds"):
        fine_tune(config(tmp_path, data_dir=None))
    with pytest.raises(FileNotFoundError, match="none does not exist or is not a fol"):
        fine_tune(config(tmp_path, data_dir=str(tmp_path / "none")))
    with pytest.raises(FileNotFoundError, match="RTE: "):
        fine_tune(config(tmp_path, task="rte"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file is a file. Choose another"):
        fine_tune(config(tmp_path, output_dir=str(tmp_path / "file")))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"freeze": 9}, "`freeze` must be"),
        ({"freeze": 1, "lora_rank": 2}, "`lora_rank` freezes the encoder already"),
        ({"pooling": "max"}, "`pooling` must be mean or first"),
        ({"overrides": {"num_layers": 0}}, "`num_layers` must be"),
        ({"layer": 9}, r"from 0 \(the embeddings\) to 1 \(the last.*Received: layer=9"),
    ],
)
def test_arguments_that_do_not_fit_leave_nothing_behind(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        fine_tune(config(tmp_path, **options))
    assert not (tmp_path / "run").exists()


def test_a_missing_vocabulary_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="No vocabulary file at .*none.txt"):
        fine_tune(config(tmp_path, vocabulary=str(tmp_path / "none.txt")))
