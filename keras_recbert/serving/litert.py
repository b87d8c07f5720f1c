"""LiteRT files: packed ids in, scores out, on phones and without TensorFlow."""

import pathlib
import re
import tempfile
import warnings

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.convert_phase import ConverterError

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
from keras_recbert.serving.savedmodel import without_notes

LITERT = PackedFormat("LiteRT", "A", ".tflite", "litert")
_MISSING_OP = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")


def write_litert(model, path, int8=False, overwrite=False):
    """Writes a model for LiteRT (TensorFlow Lite), of built-in ops alone.

    The file takes what the packer gives of one text: `token_ids`, `segment_ids`,
    `padding_mask`, int32 `(1, sequence_length)`, of any length. It gives the numbers of
    `Head.answer`: `scores`, float32 `(1, num_classes)`, and `has_label` of several
    labels. It computes in float32, whatever the model was trained in.

    Beside `NAME.tflite` come `NAME.vocab.txt`, the vocabulary, and `NAME.json`: how
    texts become ids, names of labels, checksums. `read_litert` reads all three. Where
    it cannot be, `reference_tokenizer.py`, which comes too, makes the ids.

    Args:
        model: `keras_recbert.tasks.text_model.TextModel` of one head on texts: a
            classifier, a multi-label classifier or a regressor.
        path: str or path of a file that ends with .tflite.
        int8: bool. Weights of 8 bits with a scale a channel (dynamic range
            quantization); what is computed between the products stays float32.
        overwrite: bool. Replaces the files if they exist.

    Raises:
        ValueError: if the model is none of these; if the path ends otherwise; if the
            encoder has an op that LiteRT lacks, which it names.
        FileExistsError: if one of the files exists and `overwrite` is False.
        OSError: if they cannot be written.
    """

    def convert(model):
        return _converted(model, int8)

    write_packed_file(model, path, LITERT, convert, overwrite)


def read_litert(path, num_threads=1):
    """Loads what `write_litert` wrote, with the packer of its texts.

    Args:
        path: str or path of the .tflite file.
        num_threads: int. Threads of LiteRT.

    Returns:
        `keras_recbert.serving.answers.Predictor`; its `function` takes string tensors
        by the names of the fields and gives `scores`, `label` of a classifier, and
        `has_label` with `label_names` of several labels.

    Raises:
        FileNotFoundError: if one of the three files is missing.
        ValueError: if one is not the file that was written.
    """
    path = pathlib.Path(path)
    packer, described = read_side_files(path, LITERT)
    with warnings.catch_warnings():
        # "deprecated" since TensorFlow 2.19, in favour of a package of the same code.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(str(path), num_threads=num_threads)
    run = interpreter.get_signature_runner()
    return packed_predictor(packer, described, lambda rows: _each_alone(run, rows))


def litert_ops(path):
    """Names of the ops of a LiteRT file, sorted.

    Those that LiteRT has built in are in capitals. Others have the name of a custom
    op, which begins with Flex where it is TensorFlow's.

    Args:
        path: str or path of a .tflite file.
    """
    model = schema.Model.GetRootAsModel(pathlib.Path(path).read_bytes(), 0)
    names = {code: name for name, code in vars(schema.BuiltinOperator).items()}
    found = set()
    for index in range(model.OperatorCodesLength()):
        code = model.OperatorCodes(index)
        custom = code.CustomCode()
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        found.add(names[number] if custom is None else custom.decode())
    return sorted(found)


def _converted(model, int8):
    """The bytes of the file."""
    # Of any length; but of one text, as LiteRT's loops keep states of a fixed shape.
    signature = packed_signature(1)
    root = tf.Module()
    with portable_graphs(), tempfile.TemporaryDirectory(prefix="recbert-") as folder:
        function = tf.function(packed_answer(model), signature, autograph=False)
        traced = function.get_concrete_function()
        root.weights = list(traced.variables)  # Keras's are not found in the model
        # Tracing gradients, which LiteRT has not, would take most of the time.
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
        with without_notes():
            tf.saved_model.save(root, folder, {"serving_default": traced}, options)
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
            converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
            if int8:
                converter.optimizations = [tf.lite.Optimize.DEFAULT]
            try:
                return converter.convert()
            except ConverterError as error:
                missing = sorted(set(_MISSING_OP.findall(str(error))))
                why = f"LiteRT has no {', '.join(missing)}"
                if not missing:
                    why = str(error).splitlines()[0]
                raise conversion_error(model, LITERT, why) from error


def _each_alone(run, rows):
    """What LiteRT says of packed texts, one after the other, each in its own length."""
    found = []
    for index, length in enumerate(rows["padding_mask"].sum(axis=1)):
        row = slice(index, index + 1), slice(length)
        ids = {name: np.ascontiguousarray(ids[row]) for name, ids in rows.items()}
        found.append(run(**ids))
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}
