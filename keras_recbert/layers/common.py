"""What layers and encoders share: initial values, LayerNorm, a layer with ReLU."""

import keras


def bert_initializer():
    """Truncated normal of deviation 0.02 (BERT's released code)."""
    return keras.initializers.TruncatedNormal(stddev=0.02)


def layer_norm(policy, name="norm"):
    """BERT's LayerNorm; its weights are float32 where others are bfloat16.

    Keras's casts no weight of its own, so `"bfloat16"` would round what
    `"mixed_bfloat16"` does not.
    """
    policy = "mixed_bfloat16" if policy.name == "bfloat16" else policy
    return keras.layers.LayerNormalization(epsilon=1e-12, dtype=policy, name=name)


def relu_layer(units, policy, name):
    """A dense layer with ReLU; of `units=None` one that changes nothing."""
    if units is None:
        return keras.layers.Identity(dtype=policy, name=name)
    return keras.layers.Dense(units, activation="relu", dtype=policy, name=name)
