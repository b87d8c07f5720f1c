"""LiteRT files: packed ids in, scores out, on phones and without TensorFlow."""

import contextlib
import pathlib
import re
import tempfile
import warnings

import numpy as np
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema
from tensorflow.lite.python.convert_phase import ConverterError

from keras_recbert.core.folders import check_file, new_file
from keras_recbert.core.json_files import file_sha256, read_json, to_json
from keras_recbert.models.precision import in_precision
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.answers import Predictor
from keras_recbert.serving.savedmodel import PACKED, without_notes
from keras_recbert.text.packers import get_packer
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.text.word_tokenizer import get_tokenizer

SUFFIX = ".tflite"
FORMAT_VERSION = 1
# Heads of one row of logits a text.
HEADS = ("classifier", "multilabel_classifier", "regressor")
_MISSING_OP = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")


def write_litert(model, path, int8=False, overwrite=False):
    """Writes a model for LiteRT (TensorFlow Lite), of built-in ops alone.

    The file takes what the packer gives of one text: `token_ids`, `segment_ids`,
    `padding_mask`, int32 `(1, sequence_length)`, of any length. It gives the numbers of
    `Head.answer`: `scores`, float32 `(1, num_classes)`, and `has_label` of several
    labels. It computes in float32, whatever the model was trained in.

    Beside `NAME.tflite` come `NAME.vocab.txt`, the vocabulary, and `NAME.json`: how
    texts become ids, names of labels, checksums. `read_litert` reads all three.

    Args:
        model: `keras_recbert.tasks.text_model.TextModel` of one head on texts: a
            classifier, a multi-label classifier or a regressor.
        path: str or path of a file that ends with .tflite.
        int8: bool. Weights of 8 bits with a scale a channel (dynamic range
            quantization); what is computed between the products stays float32.
        overwrite: bool. Replaces the three files if they exist.

    Raises:
        ValueError: if the model is none of these; if the path ends otherwise; if the
            encoder has an op that LiteRT lacks, which it names.
        FileExistsError: if one of the files exists and `overwrite` is False.
        OSError: if they cannot be written.
    """
    path = pathlib.Path(path)
    side = _files_beside(path)
    _check_model(model)
    for file in (path, *side):
        check_file(file)
        if file.exists() and not overwrite:
            raise FileExistsError(
                f"{file} exists already. Choose another path, or pass overwrite=True "
                "(--overwrite) to replace it."
            )
    content = _converted(in_precision(model, "float32"), int8)
    with contextlib.ExitStack() as stack:
        # Their names are theirs in the reverse order: the model's comes last.
        written = [stack.enter_context(new_file(file)) for file in (path, *side)]
        written[0].write_bytes(content)
        vocabulary = "".join(f"{w}\n" for w in model.preprocessor.tokenizer.vocabulary)
        written[1].write_text(vocabulary, encoding="utf-8", newline="")
        checksums = {
            name.name: file_sha256(file)
            for name, file in zip((path, side[0]), written[:2], strict=True)
        }
        description = {**_describe(model), "sha256": checksums}
        written[2].write_text(to_json(description), encoding="utf-8")


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
    vocabulary, card = _files_beside(path)
    for file in (path, vocabulary, card):
        if not file.is_file():
            raise FileNotFoundError(
                f"There is no file {file}. A LiteRT model is {path.name}, "
                f"{vocabulary.name} and {card.name}: recbert export MODEL {path} "
                "--format litert."
            )
    described = read_json(card)
    for file in (path, vocabulary):
        if described["sha256"].get(file.name) != file_sha256(file):
            raise ValueError(
                f"{file} is not the file that {card.name} was written for. Write them "
                f"anew: recbert export MODEL {path} --format litert --overwrite."
            )
    tokenizer = get_tokenizer(described["tokenizer"])(
        load_vocabulary(vocabulary), **described["tokenizer_options"]
    )
    packer = get_packer(described["packer"])(tokenizer, **described["packer_arguments"])
    with warnings.catch_warnings():
        # "deprecated" since TensorFlow 2.19, in favour of a package of the same code.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(str(path), num_threads=num_threads)
    run = interpreter.get_signature_runner()
    names = described["label_names"]

    def function(**texts):
        return _answers(run, packer(texts), described["task"], names)

    return Predictor(function, tuple(described["fields"]))


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


def _files_beside(path):
    """Paths of the vocabulary and the description of a model.

    Raises:
        ValueError: if the path does not end as such a file does.
    """
    if path.suffix != SUFFIX:
        raise ValueError(
            f"A LiteRT file ends with {SUFFIX}. Received: {str(path)!r}. Try "
            f"{str(path.with_suffix(SUFFIX))!r}."
        )
    return path.with_suffix(".vocab.txt"), path.with_suffix(".json")


def _check_model(model):
    """Raises `ValueError` for a model that is not one row of scores a text."""
    task = getattr(getattr(model, "head", None), "task", None)
    if task not in HEADS:
        held = "an encoder without a head" if task is None else f"task {task!r}"
        raise ValueError(
            f"A LiteRT file is written of a {', '.join(HEADS)}. Received: {held}. "
            "Others are served as a SavedModel: recbert export MODEL FOLDER."
        )
    if model.preprocessor is None:
        raise ValueError(
            "The model has no vocabulary, so it takes no texts. Build it with one: "
            "keras_recbert.build(NAME, vocabulary=FILE, ...)."
        )
    if model.long_texts != "truncate":
        raise ValueError(
            "A LiteRT file reads a text as one row. Received: a model with "
            f"long_texts={model.long_texts!r}. Write a SavedModel of it: recbert "
            "export MODEL FOLDER."
        )


def _describe(model):
    """What makes ids of texts and labels of scores, as JSON."""
    packer = model.preprocessor
    names = getattr(model.head, "label_names", None)
    return {
        "format_version": FORMAT_VERSION,
        "encoder": model.encoder.name,
        "task": model.head.task,
        "fields": list(model.fields),
        "label_names": None if names is None else list(names),
        "packer": type(packer).__name__,
        "packer_arguments": packer.arguments(),
        "tokenizer": type(packer.tokenizer).__name__,
        "tokenizer_options": packer.tokenizer.options(),
    }


def _converted(model, int8):
    """The bytes of the file."""

    def answer(token_ids, segment_ids, padding_mask):
        packed = dict(zip(PACKED, (token_ids, segment_ids, padding_mask), strict=True))
        answers = model.answer(model(packed, training=False))
        return {k: v for k, v in answers.items() if v.dtype != tf.string}

    # Of any length; but of one text, as LiteRT's loops keep states of a fixed shape.
    signature = [tf.TensorSpec([1, None], tf.int32, name) for name in PACKED]
    root = tf.Module()
    with portable_graphs(), tempfile.TemporaryDirectory(prefix="recbert-") as folder:
        function = tf.function(answer, signature, autograph=False)
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
                raise ValueError(_why_not(model, str(error))) from error


def _why_not(model, message):
    """A sentence for an encoder that was not converted."""
    missing = sorted(set(_MISSING_OP.findall(message)))
    why = f"LiteRT has no {', '.join(missing)}" if missing else message.splitlines()[0]
    return (
        f"The encoder {model.encoder.name} was not converted: {why}. The encoders of "
        "`recbert list` convert; a block of your own does where its `call` is made of "
        "ops that LiteRT has. A SavedModel takes any: recbert export MODEL FOLDER."
    )


def _answers(run, packed, task, names):
    """Answers to packed texts, one after the other, each in its own length."""
    rows = [packed[name].numpy() for name in PACKED]
    lengths = rows[2].sum(axis=1)
    found = []
    for *row, length in zip(*rows, lengths, strict=True):
        ids = {
            name: np.ascontiguousarray(part[None, :length])
            for name, part in zip(PACKED, row, strict=True)
        }
        found.append(run(**ids))
    answers = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    if task == "classifier":
        labels = np.array(names, dtype=object)
        answers["label"] = labels[answers["scores"].argmax(axis=1)]
    if task == "multilabel_classifier":
        answers["label_names"] = np.array([names] * len(found), dtype=object)
    return {name: tf.constant(value) for name, value in answers.items()}
