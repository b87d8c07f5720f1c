"""Asks a SavedModel with TensorFlow and TF Text alone. Run as a script.

Reads JSON from standard input, `{"path": ..., "requests": [[signature, {name: list}],
...]}`, and prints JSON: `answers`, the outputs of each request, `seconds` that each
took, and `ops`, those that TensorFlow has without TF Text. Nothing of this package is
imported, and importing it is made impossible first: what runs here runs in any server.
"""

import json
import os
import sys
import time

sys.modules["keras_recbert"] = None  # from here on, importing it raises
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main():
    import tensorflow as tf

    ops = registered_ops()
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    job = json.load(sys.stdin)
    loaded = tf.saved_model.load(job["path"])
    answers, seconds = [], []
    for name, inputs in job["requests"]:
        signature = loaded.signatures[name]
        specs = signature.structured_input_signature[1]
        inputs = {k: tf.constant(v, specs[k].dtype) for k, v in inputs.items()}
        start = time.perf_counter()
        outputs = {k: value.numpy() for k, value in signature(**inputs).items()}
        seconds.append(time.perf_counter() - start)
        answers.append(
            {key: [_plain(row) for row in value] for key, value in outputs.items()}
        )
    json.dump({"answers": answers, "seconds": seconds, "ops": ops}, sys.stdout)


def registered_ops():
    """Names of the ops that this process knows, a list."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    known = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ops = op_def_pb2.OpList.FromString(known)
    return [op.name for op in ops.op]


def _plain(value):
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if getattr(value, "ndim", 0):
        return [_plain(item) for item in value]
    return value.item()


if __name__ == "__main__":
    main()
