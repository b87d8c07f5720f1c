"""Asks a SavedModel with TensorFlow and TF Text alone. Run as a script.

Reads JSON from standard input, `{"path": ..., "signature": ..., "inputs": {name:
list}}`, and prints the outputs as JSON. Nothing of this package is imported, and
importing it is made impossible first: what runs here runs in any server.
"""

import json
import os
import sys

sys.modules["keras_recbert"] = None  # from here on, importing it raises
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main():
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    request = json.load(sys.stdin)
    loaded = tf.saved_model.load(request["path"])
    signature = loaded.signatures[request["signature"]]
    specs = signature.structured_input_signature[1]
    outputs = signature(
        **{
            name: tf.constant(values, specs[name].dtype)
            for name, values in request["inputs"].items()
        }
    )
    answers = {
        name: [_plain(row) for row in value.numpy()] for name, value in outputs.items()
    }
    json.dump(answers, sys.stdout)


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if getattr(value, "ndim", 0):
        return [_plain(item) for item in value]
    return value.item()


if __name__ == "__main__":
    main()
