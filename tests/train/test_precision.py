"""Which precision a run takes, why, and what it then computes in."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from test_training_run import config

import keras_recbert
from keras_recbert.config import FineTuningConfig
from keras_recbert.train import precision
from keras_recbert.train.fine_tuning import fine_tune
from keras_recbert.train.precision import (
    THRESHOLD,
    choose_precision,
    measure_matrix_rates,
)


def rates(float32, bfloat16):
    """Stands for the measurement."""
    return lambda: {"float32": float32, "bfloat16": bfloat16}


@pytest.mark.parametrize(
    ("ratio", "chosen"),
    [(0.1, "float32"), (THRESHOLD - 0.01, "float32"), (THRESHOLD, "bfloat16")],
)
def test_auto_takes_bfloat16_where_it_pays(ratio, chosen):
    found = choose_precision("auto", rates(200.0, 200.0 * ratio))
    assert found.chosen == chosen
    assert found.gflops == {"float32": 200.0, "bfloat16": 200.0 * ratio}


def test_the_reason_names_what_was_measured():
    found = choose_precision("auto", rates(2000.0, 7350.0))
    assert found.reason == (
        "matrix products run at 7,350 GFLOP/s in bfloat16 and 2,000 in float32, 3.67 "
        "times as fast; bfloat16 pays from 1.5 times"
    )


@pytest.mark.parametrize(
    ("name", "policy"), [("float32", "float32"), ("bfloat16", "mixed_bfloat16")]
)
def test_what_is_named_is_not_measured(name, policy):
    found = choose_precision(name, measure=None)
    assert (found.chosen, found.policy, found.gflops) == (name, policy, None)


def test_a_tpu_is_not_measured(monkeypatch):
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: [kind] * (kind == "TPU")
    )
    found = choose_precision("auto", rates(1.0, 1.0))
    assert (found.chosen, found.gflops) == ("bfloat16", None)
    assert found.reason == "a TPU multiplies in bfloat16"


def test_another_precision_is_refused():
    message = "must be auto, float32 or bfloat16. Received: precision='mixed_bfloat16'"
    with pytest.raises(ValueError, match=message):
        choose_precision("mixed_bfloat16")
    with pytest.raises(ValueError, match="auto or float32 or bfloat16. Received"):
        FineTuningConfig(precision="mixed_bfloat16")


def test_the_default_is_the_same_on_every_machine():
    assert FineTuningConfig().precision == "float32"


def test_the_measurement_gives_a_rate_for_each_dtype():
    found = measure_matrix_rates(rows=8, seconds=0.0)
    assert list(found) == ["float32", "bfloat16"]
    for rate in found.values():
        assert np.isfinite(rate)
        assert rate > 0.0


def test_the_fastest_of_the_calls_counts(monkeypatch):
    """float32 takes 3 s and 1 s, bfloat16 half a second and 8 s."""
    warm_up = [0.0, 9.0, 0.0, 9.0]
    first, second = [0.0, 3.0, 0.0, 0.5], [0.0, 1.0, 0.0, 8.0]
    clock = iter([*warm_up, 100.0, *first, 101.9, *second, 102.1])
    stopwatch = types.SimpleNamespace(perf_counter=lambda: next(clock))
    monkeypatch.setattr(precision, "time", stopwatch)
    found = measure_matrix_rates(rows=8, seconds=2.0)
    assert next(clock, None) is None
    # Two products of 2 n k m operations.
    assert found["float32"] == pytest.approx(2 * 2 * 8 * 768 * 3072 / 1e9)
    assert found["bfloat16"] == pytest.approx(2 * found["float32"])


def test_a_run_in_bfloat16_builds_a_mixed_model(tmp_path, capsys):
    model, results = fine_tune(
        config(tmp_path, precision="bfloat16", gradient_checkpointing=True, epochs=1)
    )
    assert "Computing in" not in capsys.readouterr().out
    for block in model.encoder.blocks:
        assert block.compute_dtype == "bfloat16"
        assert {weight.dtype for weight in block.weights} == {"float32"}
    assert model.encoder.config["gradient_checkpointing"] is True
    run = tmp_path / "run"
    assert results == json.loads((run / "results.json").read_text())
    assert results["precision"] == {
        "policy": "mixed_bfloat16",
        "chosen": "bfloat16",
        "reason": "asked for",
        "gflops": None,
    }
    card = json.loads((run / "preset" / "card.json").read_text())
    assert card["metrics"]["precision"] == "bfloat16"
    loaded = keras_recbert.load(run / "preset")
    assert loaded.encoder.policy.name == "mixed_bfloat16"
    texts = ["a good film", "dull"]
    np.testing.assert_array_equal(loaded.predict(texts), model.predict(texts))


@pytest.mark.slow
def test_a_run_says_what_it_chose_and_keeps_to_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(precision, "measure_matrix_rates", rates(100.0, 400.0))
    options = config(tmp_path, precision="auto", epochs=1)
    model, results = fine_tune(options)
    line = "Computing in bfloat16: matrix products run at 400 GFLOP/s in bfloat16 and"
    assert line in capsys.readouterr().out
    assert model.encoder.policy.name == "mixed_bfloat16"
    assert results["precision"]["gflops"] == {"float32": 100.0, "bfloat16": 400.0}
    assert results["config"]["precision"] == "auto"
