import errno
import os
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_recbert.train.checkpoints import Checkpoints


def trained_model(seed):
    """A compiled model whose optimizer has taken a step."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile("adam")
    model.optimizer.apply([v + seed for v in model.weights], model.trainable_variables)
    return model


def values_of(model):
    return [v.numpy() for v in [*model.weights, *model.optimizer.variables]]


def test_the_latest_are_kept_and_the_last_is_restored(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    assert checkpoints.restore(trained_model(0)) is None
    models = {step: trained_model(step) for step in (3, 20, 100)}
    for step, model in models.items():
        checkpoints.save(model, step, {"step": step})
    assert checkpoints.steps() == [20, 100]
    assert checkpoints.read_state() == {"step": 100}
    model = trained_model(7)
    assert checkpoints.restore(model) == {"step": 100}
    for found, expected in zip(values_of(model), values_of(models[100]), strict=True):
        np.testing.assert_array_equal(found, expected)


def flip(path):
    """Changes one byte in the middle."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: flip(folder / "variables.data-00000-of-00001"),
        lambda folder: flip(folder / "state.json"),
        lambda folder: (folder / "variables.index").unlink(),
        lambda folder: (folder / "state.json").write_text("[]"),
        lambda folder: (folder / "variables.data-00000-of-00001").write_bytes(b""),
    ],
    ids=["weights", "state", "no index", "no state", "no weights"],
)
def test_a_damaged_one_gives_way_to_the_one_before(tmp_path, capsys, damage):
    checkpoints = Checkpoints(tmp_path)
    kept = trained_model(1)
    checkpoints.save(kept, 1, {"step": 1})
    checkpoints.save(trained_model(2), 2, {"step": 2})
    damage(tmp_path / "step_00000002")
    model = trained_model(5)
    assert checkpoints.restore(model) == {"step": 1}
    for found, expected in zip(values_of(model), values_of(kept), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert "step_00000002 is damaged and not used" in capsys.readouterr().out


def test_all_damaged_is_an_error(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(trained_model(1), 1, {})
    (tmp_path / "step_00000001" / "variables.index").unlink()
    with pytest.raises(ValueError, match="None of the 1 checkpoints in .* can be read"):
        checkpoints.restore(trained_model(2))


def test_what_cannot_be_written_leaves_the_last_one(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path)
    model = trained_model(1)
    checkpoints.save(model, 1, {})
    message = "ended: The .* of step 2 could not .* step 1 is intact: run the same com"
    with pytest.raises(OSError, match=message), checkpoints.report_write_errors():
        # A path too long for any disk.
        monkeypatch.setattr(
            Checkpoints, "_path", lambda self, step: self.folder / ("x" * 300)
        )
        checkpoints.save(model, 2, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000001"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "file"),
        tf.errors.ResourceExhaustedError(None, None, "a; No space left on device"),
    ],
)
def test_a_full_disk_asks_for_room(tmp_path, error):
    message = "no space is left on .* There is no checkpoint yet: make room, and start"
    with (
        pytest.raises(OSError, match=message),
        Checkpoints(tmp_path).report_write_errors(),
    ):
        raise error


def test_what_is_no_file_is_left_as_it_is(tmp_path):
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor")
    with (
        pytest.raises(tf.errors.ResourceExhaustedError, match="^OOM"),
        Checkpoints(tmp_path).report_write_errors(),
    ):
        raise error


def test_state_and_weights_belong_together(tmp_path, capsys):
    """Of other checkpoints, each whole in itself."""
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2, 3):
        checkpoints.save(trained_model(step), step, {"step": step})
    first, second, third = (tmp_path / f"step_{step:08d}" for step in (1, 2, 3))
    shutil.copy(first / "state.json", third / "state.json")
    for name in ("variables.index", "variables.data-00000-of-00001"):
        shutil.copy(first / name, second / name)
    assert checkpoints.read_state() == {"step": 1}
    assert checkpoints.restore(trained_model(7)) == {"step": 1}
    output = capsys.readouterr().out
    for folder in (second, third):
        assert f"{folder} is damaged and not used: state.json and" in output
    # A whole one under the name of another.
    shutil.rmtree(third)
    first.rename(third)
    with pytest.raises(ValueError, match="None of the 2 checkpoints"):
        checkpoints.restore(trained_model(7))


def test_what_is_needed_is_kept_and_later_ones_are_not(tmp_path):
    checkpoints = Checkpoints(tmp_path, keep=2)
    model = trained_model(1)
    for step, needs in ((1, []), (2, [1]), (3, [1]), (4, [3]), (5, [3])):
        checkpoints.save(model, step, {"needs": needs})
    assert checkpoints.steps() == [3, 4, 5]
    # After damage a run resumes before the others.
    (tmp_path / "step_00000005" / "state.json").write_text("{")
    checkpoints.save(model, 4, {"needs": [3]})
    assert checkpoints.steps() == [3, 4]


def test_nothing_that_is_not_finite_is_written(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    model = trained_model(1)
    checkpoints.save(model, 1, {})
    model.optimizer.variables[-1].assign([1.0, np.nan])
    with pytest.raises(RuntimeError, match="NaN or .* after step 2. The .* step 1 is"):
        checkpoints.save(model, 2, {})
    assert checkpoints.steps() == [1]


def test_what_a_killed_process_left_is_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(trained_model(1), 1, {})
    (tmp_path / "checkpoints" / ".step_00000002.abcd_123" / "new").mkdir(parents=True)
    (tmp_path / "checkpoints" / "mine").mkdir()
    checkpoints.remove_unfinished()
    names = [path.name for path in (tmp_path / "checkpoints").iterdir()]
    assert sorted(names) == ["mine", "step_00000001"]
    checkpoints.clear()
    assert [path.name for path in tmp_path.rglob("*")] == ["checkpoints", "mine"]
