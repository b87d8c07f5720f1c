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
    columns, key = job["columns"], job["answer"]
    items = len(next(iter(columns.values())))
    batches = [
        {name: column[start : start + size] for name, column in columns.items()}
        for start in range(0, items, size)
    ]

    def step():
        loaded  # noqa: B018  its variables live as long as it does
        answers = []
        for batch in batches:
            strings = {name: tf.constant(column) for name, column in batch.items()}
            answers.append(answer(**strings)[key].numpy())
        return answers

    parameters = sum(variable.shape.num_elements() for variable in loaded.variables)
    return step, {"parameters": parameters, "items": items}


if __name__ == "__main__":
    serve(load, prepare)
