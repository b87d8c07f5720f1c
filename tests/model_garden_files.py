"""Checkpoints of the Model Garden that tests read and change."""

import pathlib

import pytest
import tensorflow as tf
from harness import assert_close

from keras_recbert.convert.model_garden import read_model_garden

GOLDEN = pathlib.Path(__file__).parent / "golden" / "model_garden"


def of(*layouts):
    return pytest.mark.parametrize("folder", layouts, indirect=True)


def batch_of(expected):
    return {key: expected[key] for key in ("token_ids", "segment_ids", "padding_mask")}


def assert_official(encoder, expected):
    batch = batch_of(expected)
    outputs = encoder(batch)
    real = batch["padding_mask"] == 1
    for key, where in (("sequence_output", real), ("pooled_output", slice(None))):
        wanted = expected[f"exact_{key}"][where]
        assert_close(outputs[key].numpy()[where], wanted, 1e-5, key)


def tensors_of(checkpoint):
    return {name: checkpoint.read(name) for name in checkpoint.shapes}


def write(prefix, tensors):
    """A TF2 checkpoint of variables with these names."""
    variables = {
        f"v{index}": tf.Variable(value, name=name)
        for index, (name, value) in enumerate(tensors.items())
    }
    tf.train.Checkpoint(**variables).write(str(prefix))


def change(folder, edit):
    """Writes the archive again, its tensors edited in place."""
    prefix = folder / "bert_model.ckpt"
    tensors = tensors_of(read_model_garden(prefix))
    edit(tensors)
    write(prefix, tensors)
