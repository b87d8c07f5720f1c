"""A trained model in another precision."""

import keras


def in_precision(model, policy):
    """The model, computing in a precision; itself where it does so already.

    Args:
        model: a task model of this package; it is left as it is.
        policy: str. A Keras dtype policy: `"float32"`, `"mixed_bfloat16"` (weights in
            float32) or `"bfloat16"` (weights in bfloat16, too).

    Returns:
        A model of the same class with these weights, rounded where the policy's are
        shorter.
    """
    if model.encoder.policy.name == policy:
        return model
    config = model.get_config()
    dtype = keras.dtype_policies.serialize(keras.dtype_policies.get(policy))
    config["encoder"]["config"]["dtype"] = dtype
    fields = model.fields
    changed = type(model).from_config(config)
    changed.set_weights(model.get_weights())
    changed.fields = fields
    return changed
