import csv
import json
import subprocess
import sys
import textwrap
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from foreign_berts import PIECES, write_huggingface_folder
from harness import assert_close, largest_difference
from safetensors.numpy import load_file
from toy_texts import reviews, write_glue_task

import keras_recbert
from keras_recbert.config import FineTuningConfig
from keras_recbert.data.glue import read_glue
from keras_recbert.metrics.glue import glue_scores
from keras_recbert.serving.savedmodel import read_savedmodel
from keras_recbert.tasks.loading import load_model
from keras_recbert.train import training_run
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.strategy import even_batches, make_strategy

FILES = {
    "vocab.txt",
    "best.weights.h5",
    "model.keras",
    "preset",
    "history.csv",
    "learning_curve.png",
    "tensorboard",
    "results.json",
}


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


class Stopped(Exception):
    pass


def stop_after(monkeypatch, epoch):
    """Makes the next runs stop in the middle of the epoch after `epoch`."""

    class Stop(training_run.TrainingLoss):
        def on_train_batch_end(self, batch, logs=None):
            super().on_train_batch_end(batch, logs)
            if self.passed == epoch and batch == 1:
                raise Stopped

        def on_train_begin(self, logs=None):
            super().on_train_begin(logs)
            self.passed = 0

        def on_epoch_end(self, epoch, logs=None):
            self.passed = epoch + 1

    monkeypatch.setattr(training_run, "TrainingLoss", Stop)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder, config, model and results of one finished run with an export."""
    folder = tmp_path_factory.mktemp("sst2")
    options = config(folder, export=True, epochs=6)
    model, results = fine_tune(options)
    return folder / "run", options, model, results


def test_a_run_writes_what_it_promises(run):
    folder, _, _, results = run
    assert names_in(folder) == {*FILES, "savedmodel"}  # and no backup any more
    assert {*FILES, "savedmodel", "backup"} == set(training_run.RUN_FILES)
    assert json.loads((folder / "results.json").read_text()) == results
    png = (folder / "learning_curve.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert png.endswith(b"IEND\xaeB`\x82")
    assert list((folder / "tensorboard").rglob("events.out.tfevents.*"))
    saved = read_savedmodel(folder / "savedmodel")
    assert set(saved.structured_outputs) == {"label", "label_names", "scores"}


def test_results_hold_what_the_run_was(run):
    _, options, model, results = run
    assert results["task"] == "sst2"
    assert results["model"] == "bert_tiny"
    assert results["num_parameters"] == model.count_params()
    assert results["train_examples"] == 24
    assert results["dev_examples"] == {"dev": 10}
    assert set(results["scores"]) == {"dev_loss", "dev_accuracy"}
    assert results["config"]["learning_rate"] == 2e-2
    assert results["config"]["model"] == options.model
    assert results["versions"]["keras"] == keras.__version__
    assert results["seconds"] > 0
    assert results["examples_per_second"] > 0
    assert results["steps"] % options.epochs == 0
    assert {len(values) for values in results["history"].values()} == {6}
    assert set(results["history"]) == {"loss", "accuracy", "dev_loss", "dev_accuracy"}


def test_the_learning_rate_of_the_config_is_used(run):
    _, options, model, results = run
    schedule = model.optimizer._learning_rate
    assert schedule.learning_rate == options.learning_rate
    assert schedule.total_steps == results["steps"]
    # The model is that of the best epoch, and its optimizer too.
    steps = results["steps"] // options.epochs * results["best_epoch"]
    assert int(model.optimizer.iterations) == steps
    # And it learns, which at BERT's 5e-5 it would not.
    assert results["history"]["loss"][-1] < 0.6


def test_history_is_a_plain_table(run):
    folder, _, _, results = run
    with (folder / "history.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row.pop("epoch") for row in rows] == list("123456")
    for name, values in results["history"].items():
        assert [float(row[name]) for row in rows] == values


def test_the_best_epoch_is_kept(run):
    folder, options, model, results = run
    scores = results["history"]["dev_accuracy"]
    assert results["best_epoch"] == 1 + int(np.argmax(scores))
    assert results["scores"]["dev_accuracy"] == max(scores)
    dev = read_glue("sst2", options.data_dir, "dev")
    for kept in (model, load_model(folder / "model.keras")):
        logits = kept.predict(dev.texts[0], verbose=0)
        found = glue_scores(("accuracy",), dev.labels, logits.argmax(axis=1))
        assert found == {"accuracy": max(scores)}
    before = model.head.kernel.numpy()
    model.load_weights(folder / "best.weights.h5")
    assert largest_difference(model.head.kernel, before) == 0
    assert load_model(folder / "model.keras").label_names == ["negative", "positive"]


def test_best_weights_are_not_just_the_last(tmp_path, monkeypatch):
    # The scores are made up: the second of four epochs is the best.
    made_up = iter([0.5, 0.9, 0.9, 0.1])
    kernels = []

    class Scores(training_run.DevScores):
        def on_epoch_end(self, epoch, logs=None):
            logs["dev_accuracy"], logs["dev_loss"] = next(made_up), 0.0
            kernels.append(self.model.head.kernel.numpy())

    monkeypatch.setattr(training_run, "DevScores", Scores)
    model, results = fine_tune(config(tmp_path))
    assert results["best_epoch"] == 2
    assert results["scores"]["dev_accuracy"] == 0.9
    assert largest_difference(model.head.kernel, kernels[1]) == 0
    assert largest_difference(kernels[2], kernels[1]) > 1e-4


@pytest.mark.parametrize(
    ("task", "scores"),
    [
        pytest.param("rte", {"dev_accuracy"}, marks=pytest.mark.slow),
        ("stsb", {"dev_pearson", "dev_spearman"}),
        ("mnli", {"dev_matched_accuracy", "dev_mismatched_accuracy"}),
    ],
)
def test_pairs_scores_and_two_dev_splits(tmp_path, task, scores):
    model, results = fine_tune(config(tmp_path, task, epochs=1))
    splits = {name.rpartition("_")[0] for name in scores}
    assert set(results["scores"]) == scores | {f"{split}_loss" for split in splits}
    assert set(results["dev_examples"]) == splits
    assert names_in(tmp_path / "run") == FILES
    assert model.num_texts == 2
    assert load_model(tmp_path / "run" / "model.keras").num_texts == 2
    split = sorted(splits)[0]
    dev = read_glue(task, tmp_path / "glue", split)
    logits = model.predict(dev.texts, verbose=0)
    loss = float(model.loss(dev.labels, logits))
    assert results["scores"][f"{split}_loss"] == pytest.approx(loss, abs=1e-5)


# Going on ----------------------------------------------------------------------


def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(tmp_path, monkeypatch):
    options = {"epochs": 3, "learning_rate": 5e-3}
    _, whole = fine_tune(config(tmp_path, output_dir=str(tmp_path / "a"), **options))
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fine_tune(config(tmp_path, **options))
    run = tmp_path / "run"
    assert names_in(run) == {*FILES, "backup"} - {
        "model.keras",
        "preset",
        "learning_curve.png",
        "results.json",
    }

    with pytest.raises(
        ValueError, match="stopped, with other options: epochs=3 .now 5"
    ):
        fine_tune(config(tmp_path, **{**options, "epochs": 5}))

    _, results = fine_tune(config(tmp_path, **options))
    assert names_in(run) == FILES
    assert {len(values) for values in results["history"].values()} == {3}
    # The same order, dropout and learning rates: the same numbers.
    for name, values in whole["history"].items():
        assert results["history"][name] == pytest.approx(values, abs=1e-4), name
    assert results["best_epoch"] == whole["best_epoch"]
    assert results["scores"] == pytest.approx(whole["scores"], abs=1e-4)


def test_the_best_epoch_may_lie_before_the_stop(tmp_path, monkeypatch):
    kernels, made_up = [], iter([0.9, 0.2, 0.3])

    class Scores(training_run.DevScores):
        def on_epoch_end(self, epoch, logs=None):
            logs["dev_accuracy"], logs["dev_loss"] = next(made_up), 0.0
            kernels.append(self.model.head.kernel.numpy())

    monkeypatch.setattr(training_run, "DevScores", Scores)
    with monkeypatch.context() as patch:
        stop_after(patch, epoch=1)
        with pytest.raises(Stopped):
            fine_tune(config(tmp_path, epochs=3))
    model, results = fine_tune(config(tmp_path, epochs=3))
    assert results["history"]["dev_accuracy"] == [0.9, 0.2, 0.3]
    assert results["best_epoch"] == 1
    assert results["scores"]["dev_accuracy"] == 0.9
    assert largest_difference(model.head.kernel, kernels[0]) == 0


@pytest.mark.slow
def test_a_finished_run_can_be_repeated_in_its_folder(tmp_path):
    _, first = fine_tune(config(tmp_path, epochs=2))
    model, second = fine_tune(config(tmp_path, epochs=2))
    assert second["history"] == first["history"]  # the same seed, the same numbers
    assert names_in(tmp_path / "run") == FILES
    _, other = fine_tune(config(tmp_path, epochs=1, seed=1))
    assert other["history"]["loss"] != first["history"]["loss"][:1]
    assert len((tmp_path / "run" / "history.csv").read_text().splitlines()) == 2


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
    assert model.backbone.policy.compute_dtype == "bfloat16"
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
        model.backbone.embeddings.token_embedding.embeddings.numpy(),
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
    with pytest.raises(ValueError, match="Unknown GLUE task: 'sst3'.*mean 'sst2'"):
        fine_tune(config(tmp_path, task="sst3"))
    with pytest.raises(ValueError, match=r"data_dir \(--data-dir DIR\).*--tfds"):
        fine_tune(config(tmp_path, data_dir=None))
    with pytest.raises(FileNotFoundError, match="none does not exist or is not a fol"):
        fine_tune(config(tmp_path, data_dir=str(tmp_path / "none")))
    with pytest.raises(FileNotFoundError, match="RTE: "):
        fine_tune(config(tmp_path, task="rte"))
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="must be a folder.*file is a file"):
        fine_tune(config(tmp_path, output_dir=str(tmp_path / "file")))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"freeze": 9}, "`freeze` must be"),
        ({"freeze": 1, "lora_rank": 2}, "`lora_rank` freezes the encoder already"),
        ({"pooling": "max"}, "`pooling` must be one of"),
        ({"overrides": {"num_layers": 0}}, "`num_layers` must be"),
    ],
)
def test_arguments_that_do_not_fit_leave_nothing_behind(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        fine_tune(config(tmp_path, **options))
    assert not (tmp_path / "run").exists()


def test_a_missing_vocabulary_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="No vocabulary file at .*none.txt"):
        fine_tune(config(tmp_path, vocabulary=str(tmp_path / "none.txt")))


# Strategies --------------------------------------------------------------------


def test_one_cpu_is_one_device():
    for name in ("auto", "one_device"):
        assert make_strategy(name).num_replicas_in_sync == 1
    with pytest.raises(RuntimeError, match="at least two devices. Found:.*CPU:0.*auto"):
        make_strategy("mirrored")


def test_no_tpu_is_told():
    with pytest.raises(RuntimeError, match="strategy='tpu' found no TPU.*'auto'"):
        make_strategy("tpu")


def test_even_batches_keep_the_mean_over_real_rows():
    labels = np.arange(7)
    batches = tf.data.Dataset.from_tensor_slices(({"x": labels}, labels)).batch(5)
    strategy = types.SimpleNamespace(num_replicas_in_sync=4)
    first, second = even_batches(batches, strategy).as_numpy_iterator()
    assert first[1].tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert second[1].tolist() == [5, 6, 5, 6]
    for features, filled, weights in (first, second):
        assert features["x"].tolist() == filled.tolist()
        real = list(dict.fromkeys(filled.tolist()))
        assert np.mean(filled * weights) == pytest.approx(np.mean(real))
    strategy.num_replicas_in_sync = 1
    assert even_batches(batches, strategy) is batches


TWO_DEVICES = """
    import sys
    import numpy as np
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * 2
    )
    sys.path.insert(0, {tests!r})
    from toy_texts import reviews, tiny_model
    from keras_recbert.tasks.text_batches import ordered_batches
    from keras_recbert.train.strategy import even_batches, make_strategy

    texts, labels = reviews({num_texts})
    trained = []
    for name in ("one_device", "mirrored"):
        strategy = make_strategy(name)
        print(name, strategy.num_replicas_in_sync)
        with strategy.scope():
            model = tiny_model({model!r}, dropout=0.0, pooling={pooling!r})
            before = model.get_weights()
            model.compile_for_fine_tuning(20, learning_rate=1e-2)
            batches = ordered_batches(
                model.preprocessor, texts, (labels,), {batch_size}
            )
        model.fit(even_batches(batches, strategy), epochs=2, verbose=0)
        trained.append(model.get_weights())
    assert strategy.num_replicas_in_sync == 2
    moved = max(np.abs(a - b).max() for a, b in zip(before, trained[0]))
    differ = max(np.abs(a - b).max() for a, b in zip(*trained))
    print("RESULT", moved, differ)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "pooling", "num_texts", "batch_size"),
    [
        ("swish_tiny", "first", 24, 8),
        # Batches of odd sizes, one example among them: a device gets none.
        ("bert_tiny", "mean", 21, 5),
    ],
)
def test_two_devices_equal_one(request, model, pooling, num_texts, batch_size):
    script = textwrap.dedent(TWO_DEVICES).format(
        tests=str(request.config.rootpath / "tests"),
        model=model,
        pooling=pooling,
        num_texts=num_texts,
        batch_size=batch_size,
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    moved, differ = map(float, result.stdout.split("RESULT")[1].split())
    print(f"{model}: weights moved {moved:.3f}; two devices differ by {differ:.2e}")
    assert moved > 0.01
    assert differ < 1e-4
