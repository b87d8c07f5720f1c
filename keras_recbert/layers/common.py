"""What layers and encoders share: initial values, a layer with ReLU."""

import keras


def bert_initializer():
    """Truncated normal of deviation 0.02 (BERT's released code)."""
    return keras.initializers.TruncatedNormal(stddev=0.02)


def relu_layer(units, policy, name):
    """A dense layer with ReLU; of `units=None` one that changes nothing."""
    if units is None:
        return keras.layers.Identity(dtype=policy, name=name)
    return keras.layers.Dense(units, activation="relu", dtype=policy, name=name)
