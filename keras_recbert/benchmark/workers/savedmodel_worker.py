"""A SavedModel that takes raw strings, in a process that knows nothing of this zoo."""

import sys

from worker_protocol import serve

sys.modules["keras_recbert"] = None  # from here on, importing it raises


def load():
    import tensorflow  # noqa: F401
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    return ["tensorflow", "tensorflow-text"]


def prepare(job):
    import tensorflow as tf

    loaded = tf.saved_model.load(job["savedmodel"])
    answer = loaded.signatures["serving_default"]
    size = job["batch_size"]
    texts = job["texts"]
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]

    def step():
        loaded  # noqa: B018  its variables live as long as it does
        return [answer(text=tf.constant(batch))["scores"].numpy() for batch in batches]

    parameters = sum(variable.shape.num_elements() for variable in loaded.variables)
    return step, {"parameters": parameters, "items": len(texts)}


if __name__ == "__main__":
    serve(load, prepare)
