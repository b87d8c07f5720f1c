"""Packers run op by op: a graph takes longer to trace than all batches of a test."""

import pytest
import tensorflow as tf

from keras_recbert.text import packer


@pytest.fixture
def graphs():
    """For a test of the graphs themselves."""


@pytest.fixture(autouse=True)
def pack_op_by_op(request, monkeypatch):
    if "graphs" in request.fixturenames:
        yield
        return
    monkeypatch.setattr(packer, "_traced", lambda packer, num_columns: packer.pack)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
