"""Checks that every public layer and every registered encoder must pass."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_recbert
from keras_recbert.blocks import get_block, list_blocks

# A bfloat16 number has 8 significant bits, so one rounding errs by up to 0.4 %. A
# shrunk encoder rounds some twenty times in a row; outputs are compared relative
# to their largest entry.
BFLOAT16_TOLERANCE = 0.06
# Layers whose outputs are logits: float32 in every precision.
LOGITS = ("MaskedLMHead",)
# Layers that take inputs of any number of axes, and those that take any width.
ANY_RANK = ("AddNorm", "Dense", "Dropout", "FeedForward")
ANY_WIDTH = ("BertEmbeddings", "ConcatenateSentence", "Dropout", "MeanPooling")

# Two or three layers, narrow, with no two sizes alike.
SHRUNK = {block: get_block(block).test_sizes for block in list_blocks()}
VOCABULARY_SIZE = 37


def largest_difference(a, b):
    """Largest absolute difference of two arrays of the same shape, in float64."""
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    assert a.shape == b.shape, f"shapes differ: {a.shape} and {b.shape}"
    return float(np.max(np.abs(a - b), initial=0.0))


def assert_close(a, b, tolerance=1e-5, what="outputs"):
    """Asserts `largest_difference(a, b) <= tolerance`; NaN is never close."""
    difference = largest_difference(a, b)
    assert difference <= tolerance, f"{what} differ by {difference} > {tolerance}"


def randomize(module, seed=0):
    """Moves every weight of a layer or model off its initial value.

    Zeros and ones hide mistakes: with beta = 0 a missing beta changes nothing.
    """
    rng = np.random.default_rng(seed)
    for weight in module.weights:
        change = rng.normal(0.0, 0.2, weight.shape)
        weight.assign(weight.numpy() + change)


def ragged_mask(lengths, sequence_length):
    """int32 `(len(lengths), sequence_length)`: 1s, then 0s."""
    return (np.arange(sequence_length) < np.array(lengths)[:, None]).astype("int32")


def token_batch(lengths=(11, 7, 1), sequence_length=11, seed=0):
    """Inputs of an encoder: rows that differ, of the given real lengths.

    Padding holds random ids, not zeros: what stands there must not matter.
    """
    rng = np.random.default_rng(seed)
    shape = (len(lengths), sequence_length)
    return {
        "token_ids": rng.integers(0, VOCABULARY_SIZE, shape).astype("int32"),
        "segment_ids": rng.integers(0, 2, shape).astype("int32"),
        "padding_mask": ragged_mask(lengths, sequence_length),
    }


def gradients(module, weights, *args, seed=1, **kwargs):
    """Gradients of a random weighted sum of all outputs, as NumPy arrays.

    Random, because a plain sum of what a LayerNorm puts out is constant.
    """
    rng = np.random.default_rng(seed)
    with tf.GradientTape() as tape:
        total = 0.0
        for output in tf.nest.flatten(module(*args, **kwargs)):
            factors = tf.constant(rng.normal(size=output.shape), "float32")
            total += tf.reduce_sum(factors * tf.cast(output, "float32"))
    found = tape.gradient(total, [weight.value for weight in weights])
    missing = [w.path for w, g in zip(weights, found, strict=True) if g is None]
    assert not missing, f"no gradient reaches {missing}"
    return [tf.convert_to_tensor(gradient).numpy() for gradient in found]


def assert_every_weight_learns(module, *args, **kwargs):
    """Every trainable weight has a finite gradient that is not all zero.

    Not element by element: rows of a table that were not looked up get none, nor,
    as a softmax ignores shifts, does the key part of an attention's bias.
    """
    weights = module.trainable_weights
    found = gradients(module, weights, *args, **kwargs)
    for weight, gradient in zip(weights, found, strict=True):
        assert np.all(np.isfinite(gradient)), f"gradient of {weight.path} not finite"
        assert np.any(gradient != 0.0), f"gradient of {weight.path} is all zero"


# Layers ------------------------------------------------------------------------


def run_layer_contract(cls, config, inputs, tmp_path, output_shape=None):
    """Checks one public layer.

    Args:
        cls: class of the layer.
        config: dict. Arguments of its constructor, without `dtype`.
        inputs: dict of arrays: its call arguments, in their order. Floats float32.
        tmp_path: pathlib.Path. Where a model may be saved.
        output_shape: tuple. Shape of the output; default: shape of the first input.
    """
    keras.utils.set_random_seed(0)
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
    _copy_weights(layer, clone)
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
    _copy_weights(layer, mixed)
    output = mixed(*inputs.values())
    assert output.dtype == ("float32" if cls.__name__ in LOGITS else "bfloat16")
    for weight in mixed.weights:
        assert weight.dtype == "float32", weight.path
    _assert_close_in_bfloat16(output, expected)
    assert_every_weight_learns(mixed, *inputs.values(), seed=2)

    double = cls(**config, dtype="float64")
    double(*inputs.values())
    _copy_weights(layer, double)
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
    predicted = model.predict(ids, verbose=0)
    assert_close(predicted, outputs, what="outputs of a Sequential model")
    loaded = keras.saving.load_model(path)
    assert_close(loaded(ids), outputs, what="outputs after save and load")


def _training(config, value):
    return {"training": value} if "dropout" in config else {}


def _copy_weights(source, target):
    paths = [weight.path.split("/")[1:] for weight in source.weights]
    assert paths == [weight.path.split("/")[1:] for weight in target.weights]
    target.set_weights(source.get_weights())


def _assert_close_in_bfloat16(output, expected):
    output = tf.cast(output, "float32").numpy()
    assert np.all(np.isfinite(output))
    scale = np.max(np.abs(expected))
    tolerance = BFLOAT16_TOLERANCE * scale
    assert_close(output, expected, tolerance, "bfloat16 and float32 outputs")


# Encoders ----------------------------------------------------------------------


def build_shrunk(name, **overrides):
    """A registered encoder, small, with random weights off their initial values."""
    keras.utils.set_random_seed(0)
    sizes = {
        **get_block(keras_recbert.get_card(name).sizes["block"]).test_sizes,
        "vocabulary_size": VOCABULARY_SIZE,
        "max_sequence_length": 24,
        **overrides,
    }
    encoder = keras_recbert.build(name, **sizes)
    randomize(encoder)
    return encoder


def run_model_contract(name, tmp_path):
    """Checks one registered encoder, shrunk.

    Args:
        name: str. One of `keras_recbert.list_models()`.
        tmp_path: pathlib.Path. Where a model may be saved.
    """
    encoder = build_shrunk(name)
    batch = token_batch()
    expected = encoder(batch)

    _check_structure(encoder, batch, expected)
    _check_padding(encoder, batch, expected)
    _check_rows(encoder, batch, expected)
    _check_fully_padded_row(encoder, batch, expected)
    assert_every_weight_learns(encoder, batch)
    _check_bfloat16(name, encoder, batch, expected)
    _check_compiled(encoder, batch, expected)
    _check_round_trip(encoder, batch, expected, tmp_path)
    _check_fit(encoder, batch)  # last: it moves the weights


def _check_structure(encoder, batch, outputs):
    rows, length = batch["token_ids"].shape
    width = encoder.hidden_dim
    assert isinstance(encoder, keras.Model)
    assert set(outputs) == {"sequence_output", "pooled_output", "encoder_outputs"}
    assert outputs["sequence_output"].shape == (rows, length, width)
    assert outputs["pooled_output"].shape == (rows, width)
    layers = outputs["encoder_outputs"]
    assert len(layers) == encoder.get_config()["num_layers"]
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


def _check_bfloat16(name, encoder, batch, expected):
    mixed = build_shrunk(name, dtype="mixed_bfloat16")
    _copy_weights(encoder, mixed)
    outputs = mixed(batch)
    for output, wanted in zip(
        tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True
    ):
        assert output.dtype == "bfloat16"
        _assert_close_in_bfloat16(output, wanted.numpy())
    for weight in mixed.weights:
        assert weight.dtype == "float32", weight.path
    assert_every_weight_learns(mixed, batch)


def _check_compiled(encoder, batch, expected):
    unknown = tf.TensorSpec((None, None), "int32")
    call = tf.function(encoder, input_signature=[dict.fromkeys(batch, unknown)])
    for outputs in (call(batch), encoder.predict(batch, verbose=0)):
        for output, wanted in zip(
            tf.nest.flatten(outputs), tf.nest.flatten(expected), strict=True
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
    model.compile(keras.optimizers.SGD(0.1), "mse")
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
    for key in ("sequence_output", "encoder_outputs"):
        for output, wanted in zip(
            tf.nest.flatten(outputs[key]), tf.nest.flatten(expected[key]), strict=True
        ):
            output, wanted = output.numpy()[:, :length], wanted.numpy()
            assert_close(output[real], wanted[real], 1e-5, key)
    rows = real.any(axis=1)
    pooled = outputs["pooled_output"].numpy()[rows]
    assert_close(pooled, expected["pooled_output"].numpy()[rows], 1e-5, "pooled_output")
