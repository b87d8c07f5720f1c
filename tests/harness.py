"""Checks that every public layer and every registered encoder must pass."""

from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

import keras_recbert
from keras_recbert.blocks import get_block, list_blocks
from keras_recbert.builder.encoder import encoder_class

# A bfloat16 number has 8 significant bits, so one rounding errs by up to 0.4 %. A
# shrunk encoder rounds some twenty times in a row; outputs are compared relative
# to their largest entry.
BFLOAT16_TOLERANCE = 0.06

# Two or three layers, narrow, with no two sizes alike.
SHRUNK = {block: get_block(block).test_sizes for block in list_blocks()}
VOCABULARY_SIZE = 37


def set_seed(seed):
    """As `keras.utils.set_random_seed`, and what ran before stays ready to run again.

    TensorFlow throws away each kernel of the process, so that the counters of stateful
    random ops begin anew, which Keras has none of. To make the graph of a packer ready
    to run takes longer than to build a small model.
    """
    with mock.patch.object(context.pywrap_tfe, "TFE_ContextClearCaches"):
        keras.utils.set_random_seed(seed)


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


def copy_weights(source, target):
    paths = [weight.path.split("/")[1:] for weight in source.weights]
    assert paths == [weight.path.split("/")[1:] for weight in target.weights]
    target.set_weights(source.get_weights())


def assert_close_in_bfloat16(output, expected):
    output = tf.cast(output, "float32").numpy()
    assert np.all(np.isfinite(output))
    scale = np.max(np.abs(expected))
    tolerance = BFLOAT16_TOLERANCE * scale
    assert_close(output, expected, tolerance, "bfloat16 and float32 outputs")


# Encoders ----------------------------------------------------------------------


def shrunk_sizes(name):
    """Sizes of a registered encoder that make it small."""
    card = keras_recbert.get_card(name)
    if "block" in card.sizes:
        return get_block(card.sizes["block"]).test_sizes
    return dict(encoder_class(card.encoder).test_sizes)


def first_alike(name):
    """The first name that shrinks to the same encoder: of `bert_large` `bert_tiny`."""
    names = keras_recbert.list_models()
    return next(one for one in names if _architecture(one) == _architecture(name))


def _architecture(name):
    """What is left of a card's sizes once the shrunk ones replace them."""
    card = keras_recbert.get_card(name)
    sizes = {"encoder": card.encoder, **card.sizes, **shrunk_sizes(name)}
    return str(sorted(sizes.items(), key=str))


def build_shrunk(name, **overrides):
    """A registered encoder, small, with random weights off their initial values."""
    set_seed(0)
    sizes = {
        **shrunk_sizes(name),
        "vocabulary_size": VOCABULARY_SIZE,
        "max_sequence_length": 24,
        **overrides,
    }
    encoder = keras_recbert.build(name, **sizes)
    randomize(encoder)
    return encoder
