import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, randomize
from partly_trained import KINDS, LABELS, TEXTS, moved, small, train, values

from keras_recbert.convert.load_keras import load_model
from keras_recbert.tasks import TextClassifier, TextRegressor
from keras_recbert.tasks.fine_tuning_optimizer import (
    LayerwiseAdamW,
    WarmupLinearDecay,
    fine_tuning_optimizer,
)
from keras_recbert.tasks.optimizers import AdamW
from keras_recbert.tasks.partial_training import learning_rate_factors

QUIET = {"verbose": 0}


# Freezing ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder():
    """An encoder that no test changes."""
    return small().encoder


@pytest.mark.parametrize(
    ("name", "freeze", "frozen"),
    [
        ("bert_tiny", None, ()),
        ("bert_tiny", "embeddings", ("embeddings/",)),
        ("bert_tiny", 0, ("embeddings/",)),
        ("bert_tiny", 2, ("embeddings/", "block_")),
        ("bert_tiny", "encoder", ("embeddings/", "block_", "pooler/")),
        ("swish_tiny", 2, ("embeddings/", "block_0/", "block_1/")),
        *((name, 1, ("embeddings/", "block_0/")) for name in list(KINDS)[2:]),
    ],
)
def test_what_is_frozen_stays_and_the_rest_learns(name, freeze, frozen):
    model = small(name, freeze=freeze)
    randomize(model)
    before = values(model)
    free = {path for path in before if not path.startswith(frozen)}
    assert 0 < len(free) < len(before) or freeze is None
    assert {weight.path for weight in model.trainable_weights} == free
    train(model)
    assert len(model.optimizer._momentums) == len(free)
    assert moved(before, values(model)) == free


def test_a_frozen_part_stays_frozen_in_a_file(tmp_path):
    model = small(freeze=1, task="regressor", layerwise_decay=0.5)
    model.save(tmp_path / "model.keras")
    loaded = load_model(tmp_path / "model.keras")
    assert (loaded.freeze, loaded.lora_rank, loaded.layerwise_decay) == (1, None, 0.5)
    before = values(loaded)
    loaded.fit(TEXTS, LABELS, **QUIET)  # compiles by itself
    assert not loaded.run_eagerly
    assert isinstance(loaded.optimizer, LayerwiseAdamW)
    free = {path for path in before if not path.startswith(("embeddings", "block_0"))}
    assert moved(before, values(loaded)) == free


def test_files_from_before_these_arguments_load():
    config = small(layerwise_decay=0.5).get_config()
    for key in ("freeze", "lora_rank", "layerwise_decay"):
        del config[key]
    model = TextClassifier.from_config(config)
    assert (model.freeze, model.lora_rank, model.layerwise_decay) == (None, None, None)
    assert model.trainable_weights == model.weights
    model.compile_for_fine_tuning(1)
    assert type(model.optimizer) is AdamW


def test_mean_pooling_leaves_the_pooler_out_too():
    model = small(freeze=2, pooling="mean")
    assert {w.path for w in model.trainable_weights} == {"head/kernel", "head/bias"}
    model = small(lora_rank=2, pooling="mean")
    assert all("lora" in w.path for w in model.trainable_weights[:-2])


# Layer-wise learning rates -----------------------------------------------------


@pytest.mark.parametrize("name", KINDS)
def test_rates_fall_towards_the_embeddings(name):
    model = small(name, lora_rank=2)
    num_layers = len(model.encoder.blocks)
    factors = learning_rate_factors(model, 0.5)
    assert set(factors) == {weight.path for weight in model.weights}
    by_part = {"embeddings": 0.5 ** (num_layers + 1), "pooler": 1.0, "head": 1.0}
    by_part |= {f"block_{i}": 0.5 ** (num_layers - i) for i in range(num_layers)}
    assert by_part[f"block_{num_layers - 1}"] == 0.5
    for path, factor in factors.items():
        assert factor == by_part[path.split("/")[0]], path


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bert_tiny", {}),
        ("bert_tiny", {"dtype": "mixed_bfloat16"}),
        ("swish_tiny", {"freeze": 1}),
        ("trans_blstm_tiny", {"lora_rank": 2}),
        *((name, {}) for name in list(KINDS)[3:]),
    ],
)
def test_a_step_is_scaled_by_the_factor(name, arguments):
    steps = []
    for decay in (None, 0.7):
        model = small(name, layerwise_decay=decay, **arguments)
        randomize(model)
        before = values(model)
        train(model)
        after = values(model)
        steps.append({key: after[key] - before[key] for key in before})
    factors = learning_rate_factors(model, 0.7)
    largest = [np.abs(steps[0][w.path]).max() for w in model.trainable_weights]
    assert np.median(largest) > 1e-3
    for path, step in steps[0].items():
        # Weights reach 1, and so the rounding of each sum 6e-8.
        assert_close(steps[1][path], factors[path] * step, 2e-7, path)


def test_a_decay_of_1_changes_nothing():
    expected, found = (
        values(train(small(layerwise_decay=decay), steps=2)) for decay in (None, 1.0)
    )
    for path in expected:
        assert_close(found[path], expected[path], 0.0, path)


def test_steps_equal_a_loop_in_float64():
    rng = np.random.default_rng(0)
    factors = {"kernel": 0.25, "bias": 0.5, "table": 1.0}
    weights = [
        keras.Variable(rng.normal(size=(5, 3)).astype("float32"), name=name)
        for name in factors
    ]
    factors = {w.path: f for w, f in zip(weights, factors.values(), strict=True)}
    arguments = {"learning_rate": 0.1, "warmup_fraction": 0.3, "weight_decay": 0.2}
    optimizer = fine_tuning_optimizer(6, **arguments, rate_factors=factors)
    expected = [weight.numpy().astype("float64") for weight in weights]
    first, second = [0.0] * 3, [0.0] * 3
    schedule = WarmupLinearDecay(0.1, 6, 0.3)
    for step in range(6):
        # Norms from below to far above the limit of the clipping.
        grads = [rng.normal(size=(5, 3)) * 0.05 * (1 + step) for _ in weights]
        optimizer.apply([tf.constant(g, "float32") for g in grads], weights)
        norm = np.sqrt(sum(np.sum(g**2) for g in grads))
        for i, weight in enumerate(weights):
            rate = float(schedule(step)) * factors[weight.path]
            g = grads[i] / max(1.0, norm)
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            if weight.name != "bias":
                expected[i] = expected[i] - rate * 0.2 * expected[i]
            correction = np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
            # Keras adds epsilon before it corrects the bias of the moments.
            change = first[i] / (np.sqrt(second[i]) + 1e-6)
            expected[i] = expected[i] - rate * correction * change
    for weight, value in zip(weights, expected, strict=True):
        assert_close(weight, value, 1e-5, weight.name)


def test_the_optimizer_survives_its_config():
    model = small(layerwise_decay=0.5)
    model.compile_for_fine_tuning(3)
    config = keras.saving.serialize_keras_object(model.optimizer)
    clone = keras.saving.deserialize_keras_object(config)
    assert type(clone) is LayerwiseAdamW
    assert clone.rate_factors == learning_rate_factors(model, 0.5)
    assert clone.get_config() == model.optimizer.get_config()


def test_every_weight_needs_a_factor():
    optimizer = LayerwiseAdamW(1e-3, {"head/kernel": 1.0})
    with pytest.raises(ValueError, match="`rate_factors` must .* Missing: .*head/bias"):
        optimizer.build(small().trainable_weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"freeze": 3}, "`freeze` must be .*'encoder' .*0 to 2. Received: freeze=3"),
        ({"freeze": -1}, "`freeze` must be .*Received: freeze=-1"),
        ({"freeze": True}, "`freeze` must be .*Received: freeze=True"),
        ({"freeze": 1.0}, "`freeze` must be .*Received: freeze=1.0"),
        ({"freeze": "encodre"}, "`freeze` must be .*Received: freeze='encodre'"),
        ({"lora_rank": 0}, "`lora_rank` must be a whole number of at least 1"),
        ({"lora_rank": 2.0}, "`lora_rank` must be a whole .*Received: lora_rank=2.0"),
        (
            {"lora_rank": 2, "freeze": 1},
            "`lora_rank` freezes .*lora_rank=2, freeze=1. Leave one out",
        ),
        (
            {"layerwise_decay": 0},
            "`layerwise_decay` must be .* Received: layerwise_decay=0",
        ),
        (
            {"layerwise_decay": 0.5, "freeze": "encoder"},
            "of blocks that are trained, and none is. Received: layerwise_decay=0.5",
        ),
        ({"layerwise_decay": 1.5}, "above 0 and up to 1. Received: layerwise_decay=1"),
        ({"layerwise_decay": "0.9"}, "up to 1. Received: layerwise_decay='0.9'"),
        ({"layerwise_decay": True}, "up to 1. Received: layerwise_decay=True"),
    ],
)
@pytest.mark.parametrize("task", [TextClassifier, TextRegressor])
def test_impossible_arguments_are_refused(encoder, task, arguments, message):
    with pytest.raises(ValueError, match=message):
        task(encoder, **arguments)
    assert len(encoder.trainable_weights) == len(encoder.weights)


def test_misspelt_arguments_get_the_nearest_name():
    with pytest.raises(
        ValueError, match="takes no argument 'frezee'.*Did you mean 'freeze'"
    ):
        small(frezee=1)


def test_an_encoder_takes_adapters_once():
    adapted = small(lora_rank=2).encoder
    with pytest.raises(ValueError, match="has LoRA adapters already.*a new encoder"):
        TextClassifier(adapted, lora_rank=2)


def test_another_optimizer_does_not_drop_the_decay_silently():
    model = small(layerwise_decay=0.5)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    with pytest.raises(
        ValueError, match="layerwise_decay=0.5, optimizer=Adam. Use `compile_for_fine"
    ):
        model.fit(TEXTS, LABELS, **QUIET)
    inner = fine_tuning_optimizer(1, rate_factors=learning_rate_factors(model, 0.5))
    model.compile(
        keras.optimizers.LossScaleOptimizer(inner),
        loss="sparse_categorical_crossentropy",
        run_eagerly=True,
    )
    model.fit(TEXTS, LABELS, batch_size=24, **QUIET)


# Strategies --------------------------------------------------------------------

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
    from keras_recbert.train.strategy import make_strategy

    texts, labels = reviews()
    trained = []
    for strategy_name in ("one_device", "mirrored"):
        strategy = make_strategy(strategy_name)
        with strategy.scope():
            model = tiny_model("trans_blstm_tiny", dropout=0.0, **{arguments!r})
            before = model.get_weights()
            model.compile_for_fine_tuning(9, learning_rate=1e-2, weight_decay=0.1)
        model.fit(texts, labels, batch_size=8, epochs=3, shuffle=False, verbose=0)
        trained.append(model.get_weights())
    assert strategy.num_replicas_in_sync == 2
    moved = [np.abs(a - b).max() > 1e-4 for a, b in zip(before, trained[0])]
    differ = max(np.abs(a - b).max() for a, b in zip(*trained))
    assert sum(moved) == len(model.trainable_weights), (moved, before)
    print("RESULT", differ)
"""


@pytest.mark.slow
def test_two_devices_equal_one(request):
    """With `freeze`: tests/train/test_two_devices.py."""
    arguments = {"lora_rank": 2, "layerwise_decay": 0.7}
    script = textwrap.dedent(TWO_DEVICES).format(
        tests=str(request.config.rootpath / "tests"), arguments=arguments
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr[-3000:]
    differ = float(result.stdout.split("RESULT")[1])
    print(f"{arguments}: two devices differ by {differ:.2e}")
    assert differ < 1e-4
