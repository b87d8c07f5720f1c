"""The contract of every public layer."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import (
    assert_close,
    assert_close_in_bfloat16,
    assert_every_weight_learns,
    copy_weights,
    largest_difference,
    ragged_mask,
    randomize,
    set_seed,
)

# Layers whose outputs are logits: float32 in every precision.
LOGITS = ("MaskedLMHead",)
# Layers that take inputs of any number of axes, and those that take any width.
ANY_RANK = ("AddNorm", "Dense", "Dropout", "FeedForward")
ANY_WIDTH = (
    "BertEmbeddings",
    "ConcatenateSentence",
    "Dropout",
    "FinalStates",
    "MaxPooling",
    "MeanPooling",
    "WordEmbeddings",
)


def run_layer_contract(cls, config, inputs, tmp_path, output_shape=None):
    """Checks one public layer.

    Args:
        cls: class of the layer.
        config: dict. Arguments of its constructor, without `dtype`.
        inputs: dict of arrays: its call arguments, in their order. Floats float32.
        tmp_path: pathlib.Path. Where a model may be saved.
        output_shape: tuple. Shape of the output; default: shape of the first input.
    """
    set_seed(0)
    layer = cls(**config)
    first, *others = inputs.values()
    expected = layer(*inputs.values())
    randomize(layer)
    expected = layer(*inputs.values()).numpy()

    # Shape, dtype, finite numbers.
    assert expected.shape == (output_shape or first.shape)
    assert expected.dtype == "float32"
    assert np.all(np.isfinite(expected))
    promised = layer.compute_output_shape(*(x.shape for x in inputs.values()))
    assert tuple(promised) == expected.shape
    for weight in layer.weights:
        assert weight.dtype == "float32", weight.path
    assert len({weight.path for weight in layer.weights}) == len(layer.weights)

    _check_layer_config(cls, layer, config, inputs, expected)
    _check_layer_modes(layer, inputs, expected, tmp_path)
    _check_layer_dtypes(cls, layer, config, inputs, expected)
    _check_layer_dropout(layer, config, inputs, expected)
    _check_layer_shapes(cls, layer, config, inputs)
    if first.ndim == 3:  # ids have no mask of Keras
        _check_layer_passes_mask_on(layer, inputs, expected)
    if "padding_mask" in layer.call_signature_parameters:
        _check_layer_masks(layer, tmp_path)
    assert_every_weight_learns(layer, *inputs.values(), seed=2)


def _check_layer_config(cls, layer, config, inputs, expected):
    stored = json.loads(json.dumps(layer.get_config()))
    for key, value in config.items():
        assert stored[key] == value, f"get_config loses {key}"
    clone = cls.from_config(stored)
    assert clone.get_config() == layer.get_config()
    clone(*inputs.values())
    copy_weights(layer, clone)
    assert_close(clone(*inputs.values()), expected, 0.0, "outputs of the clone")


def _check_layer_modes(layer, inputs, expected, tmp_path):
    # Symbolic, batch size and length unknown. Floats `(batch_size, dim)` have none.
    symbols = {}
    for key, value in inputs.items():
        vectors = value.ndim == 2 and value.dtype.kind == "f"
        shape = value.shape[1:] if vectors else (None, *value.shape[2:])
        symbols[key] = keras.Input(shape, dtype=value.dtype.name, name=key)
    output = layer(*symbols.values())
    assert output.shape == (*[None] * (expected.ndim - 1), expected.shape[-1])
    assert output.dtype == expected.dtype
    model = keras.Model(symbols, output)
    assert_close(model(inputs), expected, 1e-6, "symbolic and eager outputs")
    predicted = model.predict(inputs, verbose=0)
    assert_close(predicted, expected, 1e-5, "predicted and eager outputs")

    # Compiled, with all shapes known.
    compiled = tf.function(lambda *args: layer(*args))
    tensors = [tf.constant(value) for value in inputs.values()]
    assert_close(compiled(*tensors), expected, 1e-5, "compiled and eager outputs")

    # `keras.saving` finds the class by its registered name alone.
    path = tmp_path / "layer.keras"
    model.save(path)
    loaded = keras.saving.load_model(path)
    assert_close(loaded(inputs), expected, 1e-6, "outputs after save and load")


def _check_layer_dtypes(cls, layer, config, inputs, expected):
    first, *others = inputs.values()
    # Masks and ids may come in any whole-number type, masks as bool too.
    for dtype in ("int64", "uint8"):
        other = [value.astype(dtype) for value in others]
        assert_close(layer(first, *other), expected, 1e-6, f"outputs for {dtype}")
    if "padding_mask" in inputs:
        other = [value.astype("bool") for value in others]
        assert_close(layer(first, *other), expected, 1e-6, "outputs for bool")

    mixed = cls(**config, dtype="mixed_bfloat16")
    mixed(*inputs.values())
    copy_weights(layer, mixed)
    output = mixed(*inputs.values())
    assert output.dtype == ("float32" if cls.__name__ in LOGITS else "bfloat16")
    for weight in mixed.weights:
        assert weight.dtype == "float32", weight.path
    assert_close_in_bfloat16(output, expected)
    assert_every_weight_learns(mixed, *inputs.values(), seed=2)

    double = cls(**config, dtype="float64")
    double(*inputs.values())
    copy_weights(layer, double)
    output = double(*inputs.values())
    assert output.dtype == "float64"
    assert_close(output, expected, 1e-5, "float64 and float32 outputs")


def _check_layer_dropout(layer, config, inputs, expected):
    again = layer(*inputs.values(), **_training(config, False))
    assert_close(again, expected, 1e-6, "outputs of two calls")
    if config.get("dropout"):
        dropped = layer(*inputs.values(), training=True)
        assert largest_difference(dropped, expected) > 1e-3


def _check_layer_shapes(cls, layer, config, inputs):
    """What does not fit is refused by name and shapes, before anything is built."""
    first, *others = inputs
    wrong = []
    if cls.__name__ not in ANY_RANK:
        wrong += [{first: inputs[first][0]}, {first: inputs[first][None]}]
    for name in others:
        value = inputs[name]
        wrong += [{name: value[:2]}, {name: value[0]}, {name: value[None]}]
        if name not in ("sentence", "mask_positions"):
            wrong.append({name: value[:, :-1]})
    for changed in wrong:
        _assert_refused(cls(**config), {**inputs, **changed})
        _assert_refused(layer, {**inputs, **changed})
    if cls.__name__ not in ANY_WIDTH:
        wider = np.concatenate([inputs[first], inputs[first][..., :1]], axis=-1)
        _assert_refused(layer, {**inputs, first: wider})


def _assert_refused(layer, inputs):
    was_built = layer.built
    symbols = [
        keras.Input(batch_shape=value.shape, dtype=value.dtype.name)
        for value in inputs.values()
    ]
    for values in (inputs.values(), symbols):
        with pytest.raises(ValueError) as error:
            layer(*values)
        message = str(error.value)
        assert f"{type(layer).__name__} {layer.name!r} expected `" in message
        for name, value in inputs.items():
            assert f"{name} {value.shape}" in message
    assert layer.built == was_built


def _check_layer_passes_mask_on(layer, inputs, expected):
    """Keras's mask goes to the next layer, if that sees the same positions."""
    first, *others = inputs.values()
    x = tf.constant(first)
    x._keras_mask = tf.constant(ragged_mask((7, 4, 1), first.shape[1]) == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Keras's, of layers that drop a mask
        output = layer(x, *others)
    passed_on = getattr(output, "_keras_mask", None)
    same_positions = expected.shape[:2] == first.shape[:2]
    assert passed_on is (x._keras_mask if same_positions else None)


def _check_layer_masks(layer, tmp_path):
    """Padding that only Keras's mask tells of changes nothing at real positions."""
    ids = np.array(
        [[3, 5, 2, 7, 0, 0, 0], [1, 2, 3, 4, 5, 6, 7], [4, 0, 0, 0, 0, 0, 0]]
    )
    embedding = keras.layers.Embedding(8, 12, mask_zero=True)
    embedding.build()
    embedding.embeddings.assign(np.random.default_rng(3).normal(size=(8, 12)))
    padded = embedding(ids)
    outputs = layer(padded)
    pooled = outputs.ndim == 2
    for row, length in enumerate((4, 7, 1)):
        short = layer(embedding(ids[row : row + 1, :length]))
        found = outputs[row] if pooled else outputs[row, :length]
        assert_close(found, short[0], what="outputs of padded and short rows")
    # Zeros first.
    found = layer(embedding(np.roll(ids[:1], 3, axis=1)))[0]
    short = layer(embedding(ids[:1, :4]))[0]
    found = found if pooled else found[3:]
    assert_close(found, short, what="outputs of left-padded and short rows")

    # By name, both, and both that differ.
    mask = ids != 0
    plain = tf.constant(padded.numpy())  # without a mask
    assert largest_difference(layer(plain), outputs) > 1e-3
    for masks in ({"padding_mask": mask}, {"mask": tf.constant(mask)}):
        assert_close(layer(plain, **masks), outputs, 0.0, "outputs by each mask")
    both = layer(padded, padding_mask=mask.astype("int32"))
    assert_close(both, outputs, 0.0, "outputs by both masks")
    for given in ({}, {"mask": tf.constant(mask)}):
        with pytest.raises(ValueError, match="two masks that differ"):
            layer(padded, padding_mask=np.ones_like(ids), **given)

    # Gradients of a padded row are those of the short one.
    real = slice(None) if pooled else (slice(None), slice(4))
    factors = np.random.default_rng(4).normal(size=short[None].shape)
    found = []
    for row in (ids[:1], ids[:1, :4]):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(factors * layer(embedding(row))[real])
        weights = [*layer.trainable_weights, embedding.embeddings]
        found.append(tape.gradient(total, [weight.value for weight in weights]))
    for a, b in zip(*found, strict=True):
        a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
        assert_close(a, b, what="gradients of padded and short rows")

    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding, layer])
    path = tmp_path / "masked.keras"
    model.save(path)
    assert_close(model(ids), outputs, what="outputs of a Sequential model")
    loaded = keras.saving.load_model(path)
    assert_close(loaded(ids), outputs, what="outputs after save and load")


def _training(config, value):
    return {"training": value} if "dropout" in config else {}
