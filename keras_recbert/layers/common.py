"""Initial values shared by the layers."""

import keras


def bert_initializer():
    """Truncated normal of deviation 0.02 (BERT's released code)."""
    return keras.initializers.TruncatedNormal(stddev=0.02)
