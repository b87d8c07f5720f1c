"""What tests of packers share."""

import pytest
import tensorflow as tf

from keras_recbert.text import packer


@pytest.fixture
def graphs():
    """For a test of the graphs themselves."""


@pytest.fixture
def pack_op_by_op(request, monkeypatch):
    """A graph takes longer to trace than to pack all batches of a test op by op."""
    if "graphs" in request.fixturenames:
        yield
        return
    monkeypatch.setattr(packer, "_traced", lambda packer, num_columns: packer.pack)
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
