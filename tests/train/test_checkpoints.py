import keras
import numpy as np
import pytest

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
    message = (
        "ended: The .* of step 2 could not .* step 1 is intact: make room, and run"
    )
    with pytest.raises(OSError, match=message), checkpoints.naming_the_last():
        # A path too long for any disk, as one that is full would do.
        monkeypatch.setattr(
            Checkpoints, "_path", lambda self, step: self.folder / ("x" * 300)
        )
        checkpoints.save(model, 2, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step_00000001"]
