"""Every registered encoder passes the contract; new names join by registering."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import build_shrunk, first_alike, token_batch
from model_contract import run_model_contract

import keras_recbert

NAMES = keras_recbert.list_models()
FIRST = [name for name in NAMES if first_alike(name) == name]


@functools.cache
def _shrunk_outputs(name):
    encoder = build_shrunk(name)
    config = {**encoder.get_config(), "name": None}
    return config, [x.numpy() for x in tf.nest.flatten(encoder(token_batch()))]


# Shrunk, `bert_large` is `bert_tiny`: the test below proves it, so that the contract
# runs once for each architecture.
@pytest.mark.parametrize("name", FIRST)
def test_encoder_keeps_the_contract(name, tmp_path):
    run_model_contract(name, tmp_path, is_of_zoo=True)


@pytest.mark.parametrize("name", sorted({*NAMES} - {*FIRST}))
def test_sizes_of_one_architecture_shrink_to_the_same_encoder(name):
    config, outputs = _shrunk_outputs(name)
    first_config, first_outputs = _shrunk_outputs(first_alike(name))
    assert config == first_config
    for output, first_output in zip(outputs, first_outputs, strict=True):
        np.testing.assert_array_equal(output, first_output)
