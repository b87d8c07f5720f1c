"""ONNX files: packed ids in, scores out, by ONNX Runtime and without TensorFlow."""

import contextlib
import logging
import pathlib

import numpy as np
import tensorflow as tf

from keras_recbert.core.extras import check_installed
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.packed_file import (
    PackedFormat,
    conversion_error,
    packed_answer,
    packed_predictor,
    packed_signature,
    read_side_files,
    write_packed_file,
)
from keras_recbert.serving.savedmodel import PACKED

ONNX = PackedFormat("ONNX", "An", ".onnx", "onnx")
OPSET = 17  # which ONNX Runtime reads since 1.12
# Of packed texts that a file is tried with: odd, even, the shortest there is.
_LENGTHS = ((11, 6, 2), (7,))
_TOLERANCE = 1e-3  # far above rounding, far below another op


def write_onnx(model, path, overwrite=False):
    """Writes a model for ONNX Runtime, of ops of the ONNX standard alone.

    The file takes what the packer gives: `token_ids`, `segment_ids`, `padding_mask`,
    int32 `(batch_size, sequence_length)`, any number of texts of any length. It gives
    the numbers of `Head.answer`: `scores`, float32 `(batch_size, num_classes)`, and
    `has_label` of several labels. It computes in float32, whatever the model was
    trained in. Before it is written, its scores are compared with the model's.

    Beside `NAME.onnx` come `NAME.vocab.txt`, the vocabulary, and `NAME.json`: how texts
    become ids, names of labels, checksums. `read_onnx` reads all three. Where it cannot
    be, `reference_tokenizer.py`, which comes too, makes the ids.

    Args:
        model: `keras_recbert.tasks.text_model.TextModel` of one head on texts: a
            classifier, a multi-label classifier or a regressor.
        path: str or path of a file that ends with .onnx.
        overwrite: bool. Replaces the files if they exist.

    Raises:
        ImportError: if tf2onnx, onnx or onnxruntime is not installed.
        ValueError: if the model is none of these; if the path ends otherwise; if the
            encoder has an op that ONNX lacks, which it names, or scores differ.
        FileExistsError: if one of the files exists and `overwrite` is False.
        OSError: if they cannot be written.
    """
    check_installed("An ONNX file", "onnx", "tf2onnx", "onnx", "onnxruntime")
    write_packed_file(model, path, ONNX, _converted, overwrite)


def read_onnx(path, num_threads=1):
    """Loads what `write_onnx` wrote, with the packer of its texts.

    Args:
        path: str or path of the .onnx file.
        num_threads: int. Threads of ONNX Runtime.

    Returns:
        `keras_recbert.serving.answers.Predictor`, as of `read_litert`.

    Raises:
        ImportError: if onnxruntime is not installed.
        FileNotFoundError: if one of the three files is missing.
        ValueError: if one is not the file that was written.
    """
    check_installed("An ONNX file", "onnx", "onnxruntime")
    path = pathlib.Path(path)
    packer, described = read_side_files(path, ONNX)
    run = _session_run(str(path), num_threads)
    return packed_predictor(packer, described, run)


def _session_run(model, num_threads):
    """Function of a dict of `PACKED` that gives a dict of arrays.

    Args:
        model: str, path of a file; or bytes, what is in it.
        num_threads: int.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_threads
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return lambda rows: dict(zip(names, session.run(names, rows), strict=True))


def _converted(model):
    """The bytes of the file."""
    import tf2onnx

    signature = packed_signature(None)
    with portable_graphs(), _without_logs("tf2onnx"):
        function = tf.function(packed_answer(model), signature, autograph=False)
        proto, _ = tf2onnx.convert.from_function(
            function, signature, OPSET, custom_op_handlers={"Erfc": (_erfc, [])}
        )
    missing = _foreign_ops(proto.graph)
    if missing:
        why = f"ONNX has no {', '.join(sorted(missing))}"
        raise conversion_error(model, ONNX, why)
    for value in (*proto.graph.input, *proto.graph.output):
        axes = value.type.tensor_type.shape.dim
        for axis, name in zip(axes, ("batch_size", "sequence_length"), strict=False):
            if not axis.HasField("dim_value"):
                axis.dim_param = name
    content = proto.SerializeToString()
    _check_scores(model, content)
    return content


@contextlib.contextmanager
def _without_logs(name):
    """Keeps a library from logging errors of ops, which are raised here."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _erfc(graph, node, name, args):
    """`Erfc(x)`, which TensorFlow makes of a GELU, as `1 - Erf(x)`."""
    from tf2onnx import utils

    (result,) = node.output
    like = {"shapes": [graph.get_shape(result)], "dtypes": [graph.get_dtype(result)]}
    graph.remove_node(name)
    erf = graph.make_node("Erf", node.input, **like)
    one = np.ones([], utils.map_onnx_to_numpy_type(like["dtypes"][0]))
    one = graph.make_const(utils.make_name("one"), one)
    inputs = [one.output[0], erf.output[0]]
    graph.make_node("Sub", inputs, outputs=[result], name=name, **like)


def _foreign_ops(graph):
    """Types of the ops of a graph that are not in the standard."""
    import onnx

    found = set()
    for node in graph.node:
        if not onnx.defs.has(node.op_type, node.domain):
            found.add(node.op_type)
        for attribute in node.attribute:
            found |= _foreign_ops(attribute.g)
    return found


def _check_scores(model, content):
    """Compares the scores of a file with those of its model, op by op.

    An op may mean something else in ONNX: its loops stack what a step writes in the
    order of the steps, its quotients of whole numbers are rounded towards zero.

    Args:
        model: the model in float32.
        content: bytes of the file.

    Raises:
        ValueError: if ONNX Runtime refuses the file, or scores differ.
    """
    batches = [_trial_batch(model.preprocessor, lengths) for lengths in _LENGTHS]
    try:
        run = _session_run(content, num_threads=1)
        found = [run(batch)["scores"] for batch in batches]
    except Exception as error:  # those of ONNX Runtime have no class in common
        raise conversion_error(model, ONNX, str(error).splitlines()[0]) from error
    answer = packed_answer(model)
    for batch, scores in zip(batches, found, strict=True):
        with portable_graphs():
            expected = answer(*map(tf.constant, batch.values()))["scores"].numpy()
        error = np.abs(scores - expected).max() / max(1.0, np.abs(expected).max())
        if not error <= _TOLERANCE:
            shape = " x ".join(map(str, batch["token_ids"].shape))
            why = f"ONNX gives other scores to {shape} random tokens, by {error:.2g}"
            raise conversion_error(model, ONNX, why)


def _trial_batch(packer, lengths):
    """Random ids of texts of these lengths, or what the packer has room for."""
    tokenizer, lengths = packer.tokenizer, np.array(lengths)[:, None]
    places = np.arange(min(lengths.max(), packer.limit))
    mask = places < lengths
    ids = np.random.default_rng(0).integers(tokenizer.vocabulary_size, size=mask.shape)
    ids = np.where(mask, ids, tokenizer.pad_id)
    rows = ids, mask & (places >= lengths // 2), mask
    return {k: row.astype("int32") for k, row in zip(PACKED, rows, strict=True)}
