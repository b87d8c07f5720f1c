"""The contract of every registered encoder."""

import keras
import numpy as np
import tensorflow as tf
from harness import (
    assert_close,
    assert_close_in_bfloat16,
    assert_every_weight_learns,
    build_shrunk,
    copy_weights,
    gradients,
    largest_difference,
    token_batch,
)

from keras_recbert.ops.implementation import portable_graphs


def run_model_contract(name, tmp_path, is_of_zoo=False):
    """Checks one registered encoder, shrunk.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        tmp_path: pathlib.Path. Where a model may be saved.
        is_of_zoo: bool. Whether bfloat16 and mixed bfloat16 give the same to the bit: a
            block of one's own may have weights of Keras that stay float32 in one.
    """
    encoder = build_shrunk(name)
    batch = token_batch()
    expected = encoder(batch)

    _check_structure(encoder, batch, expected)
    _check_padding(encoder, batch, expected)
    _check_rows(encoder, batch, expected)
    _check_fully_padded_row(encoder, batch, expected)
    assert_every_weight_learns(encoder, batch)
    _check_bfloat16(name, encoder, batch, expected, is_of_zoo)
    _check_compiled(encoder, batch, expected)
    _check_served(encoder, batch, expected)
    _check_round_trip(encoder, batch, expected, tmp_path)
    _check_fit(encoder, batch)  # last: it moves the weights


def _check_structure(encoder, batch, outputs):
    rows, length = batch["token_ids"].shape
    width = encoder.hidden_dim
    assert isinstance(encoder, keras.Model)
    assert {"sequence_output", "pooled_output"} <= set(outputs)
    assert outputs["sequence_output"].shape == (rows, length, width)
    pooled_dim = encoder.get_config().get("pooled_dim", width)
    assert outputs["pooled_output"].shape == (rows, pooled_dim)
    siamese = encoder.get_config().get("siamese", False)
    assert ("encoder_outputs" in outputs) is not siamese
    assert len(outputs) == 3 - siamese
    layers = outputs.get("encoder_outputs", [outputs["sequence_output"]])
    assert siamese or len(layers) == len(encoder.blocks)
    for layer in layers:
        assert layer.shape == (rows, length, width)
    for output in tf.nest.flatten(outputs):
        assert output.dtype == "float32"
        assert np.all(np.isfinite(output))
    assert_close(layers[-1], outputs["sequence_output"], 0.0)
    for below, above in zip(layers, layers[1:], strict=False):
        assert largest_difference(below, above) > 1e-2  # no layer passes through
    # Rows of length 11, 7 and 1: all differ.
    pooled = outputs["pooled_output"].numpy()
    assert largest_difference(pooled[0], pooled[1]) > 1e-3
    assert len({weight.path for weight in encoder.weights}) == len(encoder.weights)


def _check_padding(encoder, batch, expected):
    length = batch["token_ids"].shape[1]
    # Six more positions, and other ids in all that is padding.
    padded = token_batch(sequence_length=length + 6, seed=5)
    for key, value in batch.items():
        real = batch["padding_mask"] == 1
        padded[key][:, :length][real] = value[real]
    padded["padding_mask"][:, length:] = 0
    _assert_same_at_real_positions(encoder(padded), expected, batch["padding_mask"])


def _check_rows(encoder, batch, expected):
    for row, real in enumerate(batch["padding_mask"]):
        alone = encoder({key: value[row : row + 1] for key, value in batch.items()})
        one = tf.nest.map_structure(lambda x, row=row: x[row : row + 1], expected)
        _assert_same_at_real_positions(alone, one, real[None])


def _check_fully_padded_row(encoder, batch, expected):
    empty = token_batch(lengths=(0,), sequence_length=11, seed=9)
    with_empty = {
        key: np.concatenate([value, empty[key]]) for key, value in batch.items()
    }
    outputs = encoder(with_empty)
    for output in tf.nest.flatten(outputs):
        assert np.all(np.isfinite(output))
    others = tf.nest.map_structure(lambda x: x[:-1], outputs)
    _assert_same_at_real_positions(others, expected, batch["padding_mask"])
    for inputs in (with_empty, empty):
        for gradient in gradients(encoder, encoder.trainable_weights, inputs):
            assert np.all(np.isfinite(gradient))


def _check_bfloat16(name, encoder, batch, expected, is_of_zoo):
    mixed = build_shrunk(name, dtype="mixed_bfloat16")
    copy_weights(encoder, mixed)
    outputs = mixed(batch)
    for output, wanted in zip(
        tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True
    ):
        assert output.dtype == "bfloat16"
        assert_close_in_bfloat16(output, wanted.numpy())
    for weight in mixed.weights:
        assert weight.dtype == "float32", weight.path
    # What a SavedModel of it stores: weights as they are cast in each call.
    stored = build_shrunk(name, dtype="bfloat16")
    copy_weights(mixed, stored)
    assert "bfloat16" in {weight.dtype for weight in stored.weights}
    found = stored(batch)
    for output, wanted in zip(
        tf.nest.flatten(found), tf.nest.flatten(outputs), strict=True
    ):
        if is_of_zoo:
            assert_close(output, wanted, 0.0, "outputs of weights in bfloat16")
        assert_close_in_bfloat16(output, tf.cast(wanted, "float32").numpy())
    assert_every_weight_learns(mixed, batch)
    # Rows that are looked up are cast; a table would be each time, whole.
    tables = {tuple(table.shape) for table in mixed.embeddings.token_tables}
    casts = _traced(mixed, batch).graph.get_operations()
    casts = {tuple(op.inputs[0].shape) for op in casts if op.type == "Cast"}
    assert casts and not casts & tables


def _check_served(encoder, batch, expected):
    with portable_graphs(packing=True):
        served = _traced(encoder, batch)
    found = served(batch)
    for key, output in expected.items():
        for one, wanted in zip(
            tf.nest.flatten(found[key]), tf.nest.flatten(output), strict=True
        ):
            assert_close(one, wanted)


def _traced(encoder, batch):
    unknown = tf.TensorSpec((None, None), "int32")
    call = tf.function(encoder, input_signature=[dict.fromkeys(batch, unknown)])
    return call.get_concrete_function()


def _check_compiled(encoder, batch, expected):
    call = _traced(encoder, batch)
    for output, wanted in zip(
        tf.nest.flatten(call(batch)), tf.nest.flatten(expected), strict=True
    ):
        assert_close(output, wanted, 1e-5, "compiled and eager outputs")


def _check_round_trip(encoder, batch, expected, tmp_path):
    path = tmp_path / "encoder.keras"
    encoder.save(path)
    loaded = keras.saving.load_model(path)
    assert type(loaded) is type(encoder)
    assert loaded.get_config() == encoder.get_config()
    outputs = loaded(batch)
    tf.nest.map_structure(
        lambda a, b: assert_close(a, b, 1e-6, "outputs after load"), outputs, expected
    )


def _check_fit(encoder, batch):
    """One step of `fit` moves every weight and gives a finite loss."""
    inputs = {
        key: keras.Input((None,), dtype="int32", name=key) for key in encoder.input
    }
    outputs = encoder(inputs)
    joined = keras.ops.concatenate(
        [
            outputs["pooled_output"],
            keras.ops.sum(outputs["sequence_output"], axis=1),
        ],
        axis=-1,
    )
    model = keras.Model(inputs, keras.layers.Dense(1, name="head")(joined))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=False)
    before = [weight.numpy() for weight in encoder.trainable_weights]
    targets = np.array([[3.0], [-2.0], [5.0]])
    history = model.fit(batch, targets, epochs=1, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    for old, weight in zip(before, encoder.trainable_weights, strict=True):
        new = weight.numpy()
        assert np.all(np.isfinite(new)), weight.path
        assert np.any(new != old), f"a step of fit leaves {weight.path} as it was"


def _assert_same_at_real_positions(outputs, expected, padding_mask):
    length = padding_mask.shape[1]
    real = padding_mask == 1
    for key in {"sequence_output", "encoder_outputs"} & set(expected):
        for output, wanted in zip(
            tf.nest.flatten(outputs[key]), tf.nest.flatten(expected[key]), strict=True
        ):
            output, wanted = output.numpy()[:, :length], wanted.numpy()
            assert_close(output[real], wanted[real], 1e-5, key)
    rows = real.any(axis=1)
    pooled = outputs["pooled_output"].numpy()[rows]
    assert_close(pooled, expected["pooled_output"].numpy()[rows], 1e-5, "pooled_output")
