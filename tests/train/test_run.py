"""How a run trains, stops and ends: with a kind of run of a few weights."""

import dataclasses
import errno
import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from stopped_runs import Stopped, stop_at

from keras_recbert.config import RunConfig
from keras_recbert.convert.preset_files import FILES as PRESET_FILES
from keras_recbert.core.folders import write_folder
from keras_recbert.train import callbacks
from keras_recbert.train import run as run_module
from keras_recbert.train.checkpoint_callbacks import PlaceInEpoch
from keras_recbert.train.checkpoints import Checkpoints
from keras_recbert.train.run import Loop, open_run
from keras_recbert.train.run_folder import RunKind

TOY = RunKind("toy", ("notes.txt",), {}, "Read {}.")
STEPS, EPOCHS = 4, 3


@dataclasses.dataclass
class ToyConfig(RunConfig):
    output_dir: str
    epochs: int = EPOCHS
    learning_rate: float = 0.1
    checkpoint_every: int | None = 1
    accumulation_steps: int = 1
    precision: str = "float32"
    strategy: str = "one_device"
    seed: int = 3
    overwrite: bool = False
    model: str = "toy"

    def run_dir(self):
        return self.output_dir

    def resolved(self, stopped=None):
        return self

    def changes(self, stopped):
        found, own = {**stopped}, dataclasses.asdict(self)
        names = [name for name in own if name not in self._free_options()]
        return ", ".join(name for name in names if found[name] != own[name])


@keras.saving.register_keras_serializable("tests")
class ToyModel(keras.Sequential):
    def save_preset(self, folder, metrics, source, overwrite):
        with write_folder(folder, PRESET_FILES, overwrite) as written:
            (written / PRESET_FILES[0]).write_text("{}")
            (written / "card.json").write_text(json.dumps([metrics, source]))


def toy_batches(step):
    """Batches of 2 rows from a step on, each another."""
    rows = np.random.default_rng(0).normal(size=(40, 2, 3)).astype("float32")
    labels = rows.sum(axis=2, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((rows, labels))
    return data.repeat().skip(step % 40)


def train_toy(folder, text="a text", **options):
    """A run of the smallest kind; its model and results."""
    config = ToyConfig(str(folder), **options)
    with open_run(config, TOY) as run:
        run.check_texts(text)
        with run.strategy.scope():
            dense = keras.layers.Dense(5, activation="relu")
            layers = [keras.Input((3,)), dense, keras.layers.Dropout(0.5)]
            model = ToyModel([*layers, keras.layers.Dense(1)])
            size = config.accumulation_steps
            adam = keras.optimizers.Adam(
                config.learning_rate,
                gradient_accumulation_steps=size if size > 1 else None,
            )
            # As our models: XLA compiles longer than such a run takes.
            model.compile(adam, "mse", metrics=["mae"], jit_compile=False)
        with run.begin(model, seen=0) as state:
            (run.folder / "notes.txt").write_text(text)
            inside = config.checkpoint_every is not None
            place = PlaceInEpoch(STEPS, state["place"]) if inside else None
            loop = Loop(
                epochs=config.epochs,
                steps_per_epoch=STEPS,
                batches=lambda step: toy_batches(step * size),
                scoring=[],
                own_state=lambda: {"seen": state["seen"] + 1},
                place=place,
                checkpoint_every=config.checkpoint_every,
                accumulation_steps=size,
            )
            state = run.fit(model, loop, state)
            results = run.results(state, scores={"mae": state["history"]["mae"][-1]})
            run.write_model(model, results, ("scores",), "a source")
            run.finish(results)
    return model, results


FILES = {"results.json", "model.keras", "preset", "history.csv", "tensorboard"}


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def check_same(found, expected):
    """Checks that two runs have the same weights and losses, bit for bit."""
    (model, results), (other, others) = found, expected
    assert results["history"] == others["history"]
    assert results["steps"] == others["steps"] == STEPS * EPOCHS
    for value, weight in zip(model.get_weights(), other.get_weights(), strict=True):
        np.testing.assert_array_equal(value, weight)


def test_a_run_leaves_what_every_run_has(tmp_path):
    model, results = train_toy(tmp_path / "run", precision="bfloat16")
    folder = tmp_path / "run"
    assert names_in(folder) == {*FILES, "notes.txt"}
    assert names_in(folder) | {"checkpoints"} == set(TOY.files)
    assert json.loads((folder / "results.json").read_text()) == results
    assert list(results) == [
        *("kind", "model", "scores", "steps", "seconds", "history", "precision"),
        *("checksums", "config", "versions", "device"),
    ]
    assert results["kind"] == "toy"
    assert results["checksums"] == "a text"
    assert results["precision"]["policy"] == "mixed_bfloat16"
    assert {len(values) for values in results["history"].values()} == {EPOCHS}
    card, source = json.loads((folder / "preset" / "card.json").read_text())
    assert card == {"scores": results["scores"], "seed": 3, "precision": "bfloat16"}
    assert source == "a source"
    kept = keras.saving.load_model(folder / "model.keras")
    for value, weight in zip(kept.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(value, weight)


def test_stopped_at_any_step_a_run_resumes_bit_for_bit(tmp_path, monkeypatch, capsys):
    """With dropout, whose generators resume too, and a metric."""
    expected = train_toy(tmp_path / "whole")
    for step in range(1, STEPS * EPOCHS + 1):
        with monkeypatch.context() as patch:
            stop_at(patch, step)
            with pytest.raises(Stopped):
                train_toy(tmp_path / "run")
        assert Checkpoints(tmp_path / "run" / "checkpoints").steps()[-1] == step
    found = train_toy(tmp_path / "run")
    check_same(found, expected)
    assert "Resuming after step 12." in capsys.readouterr().out
    table = (tmp_path / "run" / "history.csv").read_text()
    assert table == (tmp_path / "whole" / "history.csv").read_text()


@pytest.mark.slow
def test_a_run_with_accumulation_resumes_between_epochs(tmp_path, monkeypatch):
    options = {"accumulation_steps": 2, "checkpoint_every": None}
    expected = train_toy(tmp_path / "whole", **options)
    with monkeypatch.context() as patch:
        stop_at(patch, 2 * STEPS)
        with pytest.raises(Stopped):
            train_toy(tmp_path / "run", **options)
    check_same(train_toy(tmp_path / "run", **options), expected)
    once = train_toy(tmp_path / "once", accumulation_steps=1)
    assert once[1]["history"]["loss"] != expected[1]["history"]["loss"]


def test_seconds_add_up_across_a_stop(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(Stopped):
            train_toy(tmp_path)
    state = Checkpoints(tmp_path / "checkpoints").read_state()
    _, results = train_toy(tmp_path)
    assert 0 < state["seconds"] < results["seconds"]


def test_ends_of_epochs_do_not_count_as_training(monkeypatch):
    # An epoch of 3 seconds, 5 between, one of 4 that is asked for after 2.
    times = iter([10.0, 13.0, 18.0, 20.0, 22.0])
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: next(times))
    clock = callbacks.TrainingClock(1.0)
    clock.on_epoch_begin(0)
    clock.on_epoch_end(0)
    assert (clock.seconds, clock.epoch_seconds) == (4.0, 3.0)
    clock.on_epoch_begin(1)
    assert clock.seconds == 6.0
    clock.on_epoch_end(1)
    assert (clock.seconds, clock.epoch_seconds) == (8.0, 4.0)


def test_a_stopped_run_keeps_its_precision(tmp_path, monkeypatch):
    rates = iter([{"float32": 1.0, "bfloat16": 9.0}, {"float32": 9.0, "bfloat16": 1.0}])

    def choose(requested):
        return run_module.Precision("bfloat16", "measured", next(rates))

    monkeypatch.setattr(run_module, "choose_precision", choose)
    with monkeypatch.context() as patch:
        stop_at(patch, 2)
        with pytest.raises(Stopped):
            train_toy(tmp_path, precision="auto")
    _, results = train_toy(tmp_path, precision="auto")
    assert results["precision"]["gflops"] == {"float32": 1.0, "bfloat16": 9.0}
    _, results = train_toy(tmp_path, precision="auto", overwrite=True)
    assert results["precision"]["gflops"] == {"float32": 9.0, "bfloat16": 1.0}


def test_a_damaged_checkpoint_gives_way_to_the_one_before(
    tmp_path, monkeypatch, capsys
):
    expected = train_toy(tmp_path / "whole")
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(Stopped):
            train_toy(tmp_path / "run")
    newest = tmp_path / "run" / "checkpoints" / "step_00000006"
    data = newest / "variables.data-00000-of-00001"
    held = bytearray(data.read_bytes())
    held[len(held) // 2] ^= 1
    data.write_bytes(held)
    check_same(train_toy(tmp_path / "run"), expected)
    output = capsys.readouterr().out
    assert f"{newest} is damaged and not used" in output
    assert "Resuming after step 5." in output


def test_overwrite_replaces_what_a_run_wrote_and_nothing_else(tmp_path):
    tmp_path.joinpath("mine.txt").write_text("mine")
    train_toy(tmp_path, epochs=2)
    (events,) = (tmp_path / "tensorboard" / "train").iterdir()
    (tmp_path / "tensorboard" / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="holds a finished run.*Read .*"):
        train_toy(tmp_path, epochs=2)
    # An argument that is wrong late leaves the old run, too.
    kept = (tmp_path / "model.keras").read_bytes()
    with pytest.raises(ValueError, match="learning_rate"):
        train_toy(tmp_path, learning_rate="high", overwrite=True)
    assert (tmp_path / "model.keras").read_bytes() == kept
    _, results = train_toy(tmp_path, epochs=1, overwrite=True)
    assert len(results["history"]["loss"]) == 1
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 2
    assert names_in(tmp_path) == {*FILES, "notes.txt", "mine.txt"}
    assert not events.exists()
    assert (tmp_path / "tensorboard" / "mine").read_text() == "mine"


@pytest.mark.parametrize(
    "change",
    [{"epochs": 2}, pytest.param({"text": "another text"}, marks=pytest.mark.slow)],
)
def test_overwrite_replaces_a_stopped_run_of_other_options_or_texts(
    tmp_path, monkeypatch, capsys, change
):
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(Stopped):
            train_toy(tmp_path)
    with pytest.raises(ValueError, match="a run with other options: "):
        train_toy(tmp_path, **change)
    _, results = train_toy(tmp_path, overwrite=True, **change)
    assert "Resuming" not in capsys.readouterr().out
    assert results["checksums"] == change.get("text", "a text")


def test_overwrite_resumes_a_stopped_run_of_these_options(
    tmp_path, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        stop_at(patch, 6)
        with pytest.raises(Stopped):
            train_toy(tmp_path)
    train_toy(tmp_path, overwrite=True)
    assert "Resuming after step 6." in capsys.readouterr().out


def test_a_run_that_ended_as_it_wrote_is_finished_without_training(
    tmp_path, monkeypatch
):
    def fail(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "it")

    expected = train_toy(tmp_path / "whole")
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        for place in (
            (ToyModel, "save"),
            (ToyModel, "save_preset"),
            (run_module, "write_json"),
        ):
            message = "no space is left.*checkpoint of step 12 is intact: make room"
            with monkeypatch.context() as inner:
                inner.setattr(*place, fail)
                with pytest.raises(OSError, match=message):
                    train_toy(folder)
            patch.setattr(keras.Model, "fit", fail)
            assert not (folder / "results.json").exists()
        check_same(train_toy(folder), expected)
    assert names_in(folder) == {*FILES, "notes.txt"}


def test_a_loss_that_is_no_number_ends_the_run_at_its_step(tmp_path):
    message = r"diverged: .* after step \d+\. .*(kept|Nothing was written).*lower lear"
    with pytest.raises(RuntimeError, match=message):
        train_toy(tmp_path, learning_rate=1e30)
    assert names_in(tmp_path) <= {"notes.txt", "tensorboard", "checkpoints"}
