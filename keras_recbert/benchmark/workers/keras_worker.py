"""What Keras itself offers instead of the layers of this zoo."""

from worker_protocol import serve


def load():
    import keras  # noqa: F401
    import tensorflow  # noqa: F401

    return ["keras", "tensorflow"]


def prepare(job):
    import keras
    from keras_steps import layer_step

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(job["precision"])
    if job["name"] == "bidirectional_lstm":
        lstm = keras.layers.LSTM(
            job["arguments"]["units"],
            return_sequences=True,
            # The orthogonal default has no bfloat16 kernel.
            recurrent_initializer="glorot_uniform",
        )
        layer = keras.layers.Bidirectional(lstm)
    elif job["name"] == "feed_forward":
        layer = keras.Sequential(
            [
                keras.layers.Dense(
                    job["arguments"]["intermediate_dim"], activation="gelu"
                ),
                keras.layers.Dense(job["hidden_dim"]),
            ]
        )
    else:
        raise ValueError(f"No layer is called {job['name']!r} here.")
    return layer_step(keras, layer, job)


if __name__ == "__main__":
    serve(load, prepare)
