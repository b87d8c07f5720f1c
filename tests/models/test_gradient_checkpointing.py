"""Gradient checkpointing: the same numbers from less that is kept."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import (
    assert_close,
    assert_every_weight_learns,
    build_shrunk,
    largest_difference,
    token_batch,
)

import keras_recbert

NAMES = ("bert_tiny", "swish_tiny", "trans_blstm_tiny")
SLOWEST = pytest.param("blstm_base", marks=pytest.mark.slow)
kinds = pytest.mark.parametrize("name", [*NAMES, SLOWEST])


def both(name, **overrides):
    """The same encoder without and with checkpointing, the same seeds of dropout."""
    overrides = {"dropout": 0.3, **overrides}
    return [
        build_shrunk(name, gradient_checkpointing=flag, **overrides)
        for flag in (False, True)
    ]


def training_step(encoder, compiled=False, **jit):
    """A function of a batch to outputs and gradients, dropout on."""
    weights = [weight.value for weight in encoder.trainable_weights]

    def step(batch):
        with tf.GradientTape() as tape:
            outputs = encoder(batch, training=True)
            # Not the inner ones: their gradients are added up in another order, which
            # shows in bfloat16.
            outputs = [outputs["pooled_output"], outputs["sequence_output"]]
            # Cubes: the sum of what a LayerNorm puts out is constant.
            total = sum(tf.reduce_mean(tf.cast(x, "float32") ** 3) for x in outputs)
        gradients = tape.gradient(total, weights)
        return outputs, [tf.convert_to_tensor(gradient) for gradient in gradients]

    return tf.function(step, **jit) if compiled else step


def tensors(batch):
    return {key: tf.constant(value) for key, value in batch.items()}


def assert_same_steps(plain, checkpointed, tolerance=1e-6, **options):
    """Two steps in a row are the same: outputs, gradients and what seeds become."""
    steps = [training_step(one, **options) for one in (plain, checkpointed)]
    batch, seen = tensors(token_batch()), []
    for _ in range(2):
        (outputs, gradients), (same, others) = (step(batch) for step in steps)
        for one, other in zip(outputs, same, strict=True):
            assert_close(one, other, 1e-5, "outputs")
        for weight, one, other in zip(
            plain.trainable_weights, gradients, others, strict=True
        ):
            scale = max(1.0, float(tf.reduce_max(tf.abs(one))))
            assert_close(one, other, tolerance * scale, f"gradients of {weight.path}")
        seen.append(outputs[0])
    # Else dropout was off, or draws the same masks in every step.
    assert largest_difference(*seen) > 1e-2


@kinds
@pytest.mark.parametrize(
    "dtype", ["float32", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
def test_training_is_the_same_with_dropout(name, dtype):
    assert_same_steps(*both(name, dtype=dtype))


# The fit of a Transformer is compared below.
@pytest.mark.parametrize(
    "name",
    ["swish_tiny", "trans_blstm_tiny", SLOWEST],
)
@pytest.mark.slow
def test_compiled_training_is_the_same_with_dropout(name):
    assert_same_steps(*both(name, num_layers=2), compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["swish_tiny", "trans_blstm_tiny"])
def test_training_under_xla_is_the_same_with_dropout(name):
    assert_same_steps(*both(name), tolerance=1e-5, compiled=True, jit_compile=True)


@kinds
def test_every_weight_learns(name):
    _, encoder = both(name)
    assert_every_weight_learns(encoder, token_batch(), training=True)


def kept_bytes(encoder, batch):
    """Bytes that the backward pass of a compiled step reads of the forward pass.

    Weights and inputs apart, which are there anyway. What runs again is part of the
    backward pass here, as it is in time.
    """
    kept = {}

    @tf.function
    def step(batch):
        graph = tf.compat.v1.get_default_graph()
        with tf.GradientTape() as tape:
            outputs = encoder(batch, training=True)
            total = tf.reduce_mean(outputs["sequence_output"] ** 3)
        forward = {op.name for op in graph.get_operations()}
        weights = [weight.value for weight in encoder.trainable_weights]
        gradients = tape.gradient(total, weights)
        for op in graph.get_operations():
            if op.name not in forward:
                kept.update({x.name: x for x in op.inputs if x.op.name in forward})
        return gradients

    step.get_concrete_function(batch)
    sizes = {
        name: tensor.shape.num_elements() * tensor.dtype.size
        for name, tensor in kept.items()
        if tensor.dtype.is_floating and tensor.shape.is_fully_defined()
    }
    weights = {weight.shape for weight in encoder.weights}
    return sum(
        size for name, size in sizes.items() if tuple(kept[name].shape) not in weights
    )


@kinds
def test_only_the_inputs_of_the_blocks_are_kept(name):
    batch = tensors(token_batch(lengths=(63,) * 8, sequence_length=63))
    sizes = {"num_layers": 2, "max_sequence_length": 64}
    plain, checkpointed = (kept_bytes(one, batch) for one in both(name, **sizes))
    hidden = 8 * 63 * 12 * 4  # bytes of the input of a block
    # One for each block, as much again for the loss and the embeddings. Without
    # checkpointing, more than that for every block.
    assert 2 * hidden <= checkpointed <= 10 * hidden
    assert plain > 2 * 8 * hidden


def test_the_backward_pass_waits_for_what_comes_from_above():
    """Nothing of the second run starts before the gradient of its output is there.

    Else all blocks would run again at once, and their memory be taken at once.
    """
    encoder = both("bert_tiny")[1]
    operations = {}

    @tf.function
    def step(batch):
        graph = tf.compat.v1.get_default_graph()
        with tf.GradientTape() as tape:
            total = tf.reduce_mean(encoder(batch, training=True)["sequence_output"])
        forward = {op.name for op in graph.get_operations()}
        weights = [weight.value for weight in encoder.trainable_weights]
        gradients = tape.gradient(total, weights)
        operations["all"] = graph.get_operations()
        operations["forward"] = forward
        return gradients

    step.get_concrete_function(tensors(token_batch()))
    # Everything behind the gradient of the loss.
    backward = [op for op in operations["all"] if op.name not in operations["forward"]]
    reached = {op.name for op in backward if op.type == "IsNan"}
    assert len(reached) == len(encoder.blocks)
    for op in backward:
        if any(source.op.name in reached for source in op.inputs):
            reached.add(op.name)
    # In either run; in the backward pass all of them wait.
    softmaxes = [op.name for op in backward if op.type == "Softmax"]
    assert len(softmaxes) == len(encoder.blocks)
    assert set(softmaxes) <= reached


@kinds
def test_inference_is_the_same_graph(name):
    def operations(encoder):
        call = tf.function(lambda batch: encoder(batch, training=False))
        graph = call.get_concrete_function(tensors(token_batch())).graph
        return [op.type for op in graph.get_operations()]

    plain, checkpointed = both(name)
    assert operations(plain) == operations(checkpointed)
    batch = token_batch()
    expected = tf.nest.flatten(plain(batch))
    for one, other in zip(expected, tf.nest.flatten(checkpointed(batch)), strict=True):
        assert_close(one, other, 0.0)


def test_a_fit_is_the_same_and_saving_keeps_the_flag(tmp_path):
    name = "bert_tiny"
    batch, targets = token_batch(), np.array([[3.0], [-2.0], [5.0]])
    encoders = both(name)
    for encoder in encoders:
        inputs = {
            key: keras.Input((None,), dtype="int32", name=key) for key in encoder.input
        }
        head = keras.layers.Dense(1, kernel_initializer="ones")
        model = keras.Model(inputs, head(encoder(inputs)["pooled_output"]))
        model.compile(keras.optimizers.SGD(0.01), "mse")
        model.fit(batch, targets, epochs=2, verbose=0)
    plain, checkpointed = encoders
    start = build_shrunk(name)
    for one, other, old in zip(
        plain.weights, checkpointed.weights, start.weights, strict=True
    ):
        assert_close(one, other, 1e-5, one.path)
        if "pooler" in one.path:
            assert largest_difference(one, old) > 1e-5

    checkpointed.save(tmp_path / "encoder.keras")
    checkpointed.save_preset(tmp_path / "preset")
    for path in ("encoder.keras", "preset"):
        loaded = keras_recbert.load(tmp_path / path)
        assert loaded.get_config() == checkpointed.get_config()
        assert loaded.get_config()["gradient_checkpointing"] is True
        outputs = loaded(batch)["sequence_output"]
        assert_close(outputs, checkpointed(batch)["sequence_output"], 1e-6)
    # The same files serve both: no weight has another name.
    path = tmp_path / "encoder.weights.h5"
    checkpointed.save_weights(path)
    plain.load_weights(path)
    # A preset starts an encoder of the other kind.
    for flag in (True, False):
        again = build_shrunk(
            name, weights=tmp_path / "preset", gradient_checkpointing=flag
        )
        assert again.config["gradient_checkpointing"] is flag


def test_frozen_blocks_pass_gradients_on():
    encoders = both("trans_blstm_tiny")
    for encoder in encoders:
        encoder.blocks[1].trainable = False
    frozen = {id(weight) for weight in encoders[1].blocks[1].weights}
    assert not frozen & {id(weight) for weight in encoders[1].trainable_weights}
    assert_same_steps(*encoders)


def test_weights_that_are_added_later_are_seen():
    encoders = both("bert_tiny")
    for encoder in encoders:
        for block in encoder.blocks:
            kernel = block.feed_forward.output_dense
            kernel.enable_lora(2)
            kernel.lora_kernel_b.assign(np.full(kernel.lora_kernel_b.shape, 0.1))
    paths = [weight.path for weight in encoders[1].trainable_weights]
    assert sum("lora" in path for path in paths) == 4
    # The adapters' initial values are drawn, here one after the other.
    encoders[1].set_weights(encoders[0].get_weights())
    assert_same_steps(*encoders)


def test_a_flag_that_is_none_is_refused():
    message = "must be True or False. Received: gradient_checkpointing='yes'"
    with pytest.raises(ValueError, match=message):
        build_shrunk("bert_tiny", gradient_checkpointing="yes")


TWO_DEVICES = """
    import sys
    sys.path.insert(0, {tests!r})
    import keras, numpy as np, tensorflow as tf
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    from harness import build_shrunk, token_batch
    batch = token_batch(lengths=(11, 7, 3, 5))
    targets = np.array([[3.0], [-2.0], [5.0], [1.0]])
    trained = []
    for flag in (False, True):
        with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
            encoder = build_shrunk(
                "swish_tiny", dropout=0.3, gradient_checkpointing=flag
            )
            inputs = {{
                key: keras.Input((None,), dtype="int32", name=key) for key in batch
            }}
            head = keras.layers.Dense(1, kernel_initializer="ones")
            model = keras.Model(inputs, head(encoder(inputs)["pooled_output"]))
            model.compile(keras.optimizers.SGD(0.01), "mse")
        before = encoder.get_weights()
        model.fit(batch, targets, batch_size=4, epochs=2, verbose=0)
        trained.append(encoder.get_weights())
    assert any(np.abs(a - b).max() > 1e-3 for a, b in zip(before, trained[0]))
    print(max(np.abs(a - b).max() for a, b in zip(*trained)))
"""


@pytest.mark.slow
def test_two_devices_train_the_same(request):
    tests = str(request.config.rootpath / "tests")
    code = textwrap.dedent(TWO_DEVICES).format(tests=tests)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 1e-5
