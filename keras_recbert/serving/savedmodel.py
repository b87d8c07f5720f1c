"""SavedModels that take raw strings and need nothing of this package."""

import pathlib

import keras
import tensorflow as tf

from keras_recbert.folders import check_folder, write_folder
from keras_recbert.ops.implementation import portable_graphs

MARKER = "saved_model.pb"
# What TensorFlow writes beside it.
FILES = (MARKER, "variables", "assets", "fingerprint.pb")


def write_savedmodel(
    model, path, *, preprocessor, answer, num_texts=1, overwrite=False
):
    """Writes a SavedModel whose default signature takes raw strings.

    Signatures:
        serving_default: `text`, string `(batch_size,)`, and for pairs `text_pair`.
        ids: `token_ids`, `segment_ids`, `padding_mask`, int32
            `(batch_size, sequence_length)`. Padding ids never count, whatever the
            mask says: TF Serving pads a mask of ones with ones.

    Both give the dict that `answer` makes. To load it, a process needs `tensorflow`
    and, for the ops of the tokenizer, `import tensorflow_text`; nothing in it is left
    to cuDNN or XLA, so it runs on any device. It is written under a temporary name
    beside `path` and renamed, so that nothing half-written stays behind.

    Args:
        model: `keras.Model` from packed ids to logits.
        path: str or path. A folder that does not exist yet.
        preprocessor: layer from strings to packed ids.
        answer: function from logits to a dict of tensors.
        num_texts: 1 or 2. Texts an example has.
        overwrite: bool. Replaces `path` if it exists.

    Raises:
        ValueError: if `num_texts` is neither 1 nor 2.
        FileExistsError: if `path` exists and `overwrite` is False, or it is something
            else than a SavedModel.
    """
    if num_texts not in (1, 2):
        raise ValueError(f"`num_texts` must be 1 or 2. Received: {num_texts!r}.")
    path = pathlib.Path(path)
    check_folder(path, FILES, overwrite)
    pad_id = preprocessor.tokenizer.pad_id

    def from_text(text):
        return answer(model(preprocessor(text), training=False))

    def from_pair(text, text_pair):
        return answer(model(preprocessor((text, text_pair)), training=False))

    def from_ids(token_ids, segment_ids, padding_mask):
        real = tf.cast(token_ids != pad_id, tf.int32)
        features = {
            "token_ids": token_ids,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask * real,
        }
        return answer(model(features, training=False))

    texts = [tf.TensorSpec([None], tf.string, name) for name in ("text", "text_pair")]
    ids = [
        tf.TensorSpec([None, None], tf.int32, name)
        for name in ("token_ids", "segment_ids", "padding_mask")
    ]
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.track(preprocessor)
    with portable_graphs():
        archive.add_endpoint(
            "serving_default",
            from_pair if num_texts == 2 else from_text,
            input_signature=texts[:num_texts],
        )
        archive.add_endpoint("ids", from_ids, input_signature=ids)
        with write_folder(path, FILES, overwrite) as folder:
            archive.write_out(str(folder), verbose=False)  # traces once more


def read_savedmodel(path):
    """Loads a SavedModel with TensorFlow and TF Text alone.

    Args:
        path: str or path. A folder written by `write_savedmodel`.

    Returns:
        The default signature, a function of string tensors.

    Raises:
        FileNotFoundError: if there is no SavedModel at `path`.
    """
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    if not (pathlib.Path(path) / MARKER).is_file():
        raise FileNotFoundError(
            f"There is no SavedModel at {path}: it holds no saved_model.pb. "
            "`recbert export` and `model.export_savedmodel(path)` write one."
        )
    loaded = tf.saved_model.load(str(path))
    signature = loaded.signatures["serving_default"]
    signature.loaded = loaded  # its variables live as long as the root does
    return signature


def foreign_ops(path):
    """Ops of a SavedModel that a plain TensorFlow with TF Text cannot run anywhere.

    Args:
        path: str or path. A folder that holds `saved_model.pb`.

    Returns:
        Sorted list of names of ops that are neither TensorFlow's nor TF Text's, or
        that are cuDNN's and need a GPU.
    """
    import tensorflow_text  # noqa: F401  registers its ops
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow.python.framework import op_def_registry

    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((pathlib.Path(path) / MARKER).read_bytes())
    graph = proto.meta_graphs[0].graph_def
    functions = {function.signature.name for function in graph.library.function}
    nodes = list(graph.node)
    for function in graph.library.function:
        nodes.extend(function.node_def)
    ops = {node.op for node in nodes} - functions
    return sorted(op for op in ops if op_def_registry.get(op) is None or "Cudnn" in op)
