"""SavedModels that take raw strings and need nothing of this package."""

import contextlib
import itertools
import os
import pathlib
import re
import shlex

import absl.logging
import keras
import tensorflow as tf
from google.protobuf import message

from keras_recbert.core.folders import check_folder, write_folder
from keras_recbert.core.os_errors import naming
from keras_recbert.models.precision import in_precision
from keras_recbert.ops.implementation import portable_graphs
from keras_recbert.serving.input_x_gradient import check_gradients, input_x_gradient

MARKER = "saved_model.pb"
# What TensorFlow writes beside it.
FILES = (MARKER, "variables", "assets", "assets.extra", "fingerprint.pb")
PACKED = ("token_ids", "segment_ids", "padding_mask")
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}")
_NOTES = ("Assets written to:", "with ops with unsaved custom gradients")
# What TensorFlow raises for files that were cut, lost or changed.
_DAMAGED = (
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    tf.errors.OpError,
    message.Error,
)


def write_savedmodel(
    model, path, fields=("text",), overwrite=False, finish=None, gradients=False
):
    """Writes a SavedModel whose default signature takes raw strings.

    Signatures:
        serving_default: the fields, string `(batch_size,)` each: `text`, and for pairs
            `text_pair`; or `question` and `context`, of any length. Lists of strings,
            such as `choices`, are `(batch_size, most)`, padded with "". A model of
            words takes raw `text` here.
        words: of a model of words only: `words`, string `(batch_size, num_words)`,
            padded with "" behind the last word.
        ids: `token_ids`, `segment_ids`, `padding_mask`, int32
            `(batch_size, sequence_length)`, or `(batch_size, num_choices,
            sequence_length)`. Padding ids never count, whatever the
            mask says: TF Serving pads a mask of ones with ones. Ids outside the
            vocabulary are an error.
        tokenize: the fields again; gives what `ids` takes of them, and reads "[MASK]"
            in a text as that piece. Of models whose examples are one row of `ids` each.
        input_x_gradient: with `gradients`, the fields again; gives what the answer owes
            to each token, see `keras_recbert.serving.input_x_gradient`.

    `serving_default` and `ids` give what `answer_texts` and `answer` of the model
    make; where it has several heads, a signature of the name of each takes the fields
    of its examples and gives what that head answers. To load it, a process needs
    `tensorflow` and, for the ops of the tokenizer, `import tensorflow_text`; nothing in
    it is left to cuDNN or XLA, so it runs on any device. It is written under a
    temporary name beside `path` and renamed, so that nothing half-written stays behind.
    Of a model in mixed bfloat16 the weights are stored as it casts them in each call:
    the same answers, half the bytes, and nothing to cast.

    Args:
        model: `keras_recbert.tasks.text_model.TextModel` with a preprocessor; or
            `keras_recbert.tasks.sentence_encoder.SentenceEncoder`, which gives
            `embeddings`.
        path: str or path. A folder that does not exist yet.
        fields: sequence of str. Fields an example has.
        overwrite: bool. Replaces `path` if it exists.
        finish: optional function of the path of the folder, called before that takes
            its name, to add files to it.
        gradients: bool. Whether there is a signature `input_x_gradient`: the graph of
            the gradient, no weights.

    Raises:
        ValueError: if `fields` are not those of the preprocessor, or `gradients` are
            not known of the model.
        FileExistsError: if `path` exists and `overwrite` is False, or it is something
            else than a SavedModel.
        OSError: if it cannot be written, such as where the disk is full.
    """
    model.preprocessor.check_fields(fields)
    if gradients:
        check_gradients(model)
    model = _as_cast(model)
    path = pathlib.Path(path)
    check_folder(path, FILES, overwrite)
    tokenizer = model.preprocessor.tokenizer

    def from_fields(answer):
        return lambda *columns: model.answer_texts(columns, answer)

    def from_ids(token_ids, segment_ids, padding_mask):
        token_ids = _checked(token_ids, tokenizer.vocabulary_size)
        real = tf.cast(token_ids != tokenizer.pad_id, tf.int32)
        features = {
            "token_ids": token_ids,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask * real,
        }
        return model.answer(model(features, training=False))

    strings = list(map(model.preprocessor.column_spec, fields))
    ids = list(_packed_specs(model).values())
    endpoints = {
        "serving_default": (from_fields(None), strings),
        "ids": (from_ids, ids),
    }
    if not model.preprocessor.row_features and not model.preprocessor.list_fields:
        masking = model.preprocessor.reading_masks()
        endpoints["tokenize"] = lambda *columns: _packed(masking, columns), strings
    if gradients:
        endpoints["input_x_gradient"] = (
            lambda *columns: input_x_gradient(model, columns),
            strings,
        )
    text_field = model.preprocessor.text_field
    if text_field is not None:
        endpoints["_".join(fields)] = endpoints["serving_default"]
        text = [tf.TensorSpec([None], tf.string, text_field)]
        endpoints["serving_default"] = (model.answer_raw_texts, text)
    for name, one in model.answers_by_head().items():
        own = model.heads[name].own_fields or fields
        specs = list(map(model.preprocessor.column_spec, own))
        endpoints[name] = from_fields(one), specs
    with write_folder(path, FILES, overwrite) as folder:
        _write(folder, endpoints, model)
        if finish is not None:
            finish(folder)


def write_packed_savedmodel(model, path, input_signature=None, verbose=None):
    """Writes what `keras.Model.export` writes, each weight once.

    Args:
        model: `keras.Model` of packed ids.
        path: str or path of a folder; what is there is replaced.
        input_signature: as for `keras.Model.export`; by default rows of any number
            and length.
        verbose: bool or None. Whether the endpoint is printed; None means True.

    Raises:
        OSError: if it cannot be written, such as where the disk is full.
    """
    if input_signature is None:
        input_signature = [_packed_specs(model)]
    signature = keras.tree.map_structure(
        lambda spec: tf.TensorSpec(spec.shape, spec.dtype, spec.name), input_signature
    )
    with naming(path, path):
        traced = _write(path, {"serve": (model.__call__, signature)}, model)
    if verbose is None or verbose:
        endpoint = traced["serve"].pretty_printed_signature()
        print(f"Saved artifact at '{path}'. Its endpoint `serve`:\n{endpoint}")


def _packed_specs(model):
    """Specs of packed ids, by name: rows of any number and length."""
    return {
        name: tf.TensorSpec([None] * len(model.input[name].shape), tf.int32, name)
        for name in PACKED
    }


def _packed(packer, columns):
    """What `ids` takes of columns of strings."""
    packed = packer(packer.columns(columns))
    return {name: packed[name] for name in PACKED}


class _Root(tf.Module):
    """What a SavedModel holds, where those who load it look for it."""

    variables = trainable_variables = ()


def _as_cast(model):
    """A task model; of mixed bfloat16 with its weights in bfloat16."""
    encoder = getattr(model, "encoder", None)
    if encoder is None or encoder.policy.name != "mixed_bfloat16":
        return model
    layers = model._flatten_layers()
    if any(getattr(layer, "quantization_mode", None) for layer in layers):
        return model
    return in_precision(model, "bfloat16")


def _write(folder, endpoints, model):
    """Writes functions of a model, a dict of name to `(function, input_signature)`.

    Only what a function reads is written, and each weight once: with the model itself
    Keras's variables would be there beside TensorFlow's. The tokenizer holds no table
    that must be tracked. Functions are traced here, as TensorFlow traces what is no
    concrete function a second time.
    """
    read, traced = {}, {}
    with portable_graphs(packing=True):
        for name, (function, signature) in endpoints.items():
            function = tf.function(function, signature, autograph=False)
            traced[name] = function.get_concrete_function()
            read |= {id(variable): variable for variable in traced[name].variables}
        # TensorFlow's variables do not know what Keras has frozen.
        frozen = {id(weight.value) for weight in model.non_trainable_weights}
        root = _Root()
        root.variables = [*read.values()]
        root.trainable_variables = [
            v for key, v in read.items() if v.trainable and key not in frozen
        ]
        for name, function in traced.items():
            setattr(root, name, function)
        signatures = {"serving_default": next(iter(traced.values())), **traced}
        with without_notes():
            tf.saved_model.save(root, str(folder), signatures=signatures)
    return traced


@contextlib.contextmanager
def without_notes():
    """Keeps TensorFlow from logging what is no news of a SavedModel.

    The folder, which takes another name at the end; gradients, which a LiteRT file has
    not.
    """

    def is_useful(record):
        return not any(note in record.getMessage() for note in _NOTES)

    loggers = tf.get_logger(), absl.logging.get_absl_logger()
    for logger in loggers:
        logger.addFilter(is_useful)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_useful)


def _checked(token_ids, vocabulary_size):
    """Gives `token_ids`, or raises in graph for ids that are no word pieces.

    Keras counts negative ids from the end of the table, and a GPU reads other ids that
    are not in it as zeros.
    """
    valid = tf.debugging.Assert(
        tf.reduce_all((token_ids >= 0) & (token_ids < vocabulary_size)),
        [
            f"`token_ids` must be from 0 to {vocabulary_size - 1}, the ids of the "
            "vocabulary. Received ids from",
            tf.reduce_min(token_ids),
            "to",
            tf.reduce_max(token_ids),
        ],
    )
    with tf.control_dependencies([valid]):
        return tf.identity(token_ids)


def read_savedmodel(path, signature="serving_default"):
    """Loads a SavedModel with TensorFlow and TF Text alone.

    Args:
        path: str or path. A folder written by `write_savedmodel`.
        signature: str. That of a head, where the model has several.

    Returns:
        The signature, a function of string tensors.

    Raises:
        FileNotFoundError: if there is no SavedModel at `path`.
        ValueError: if it is damaged, or has no such signature.
    """
    import tensorflow_text  # noqa: F401  registers the ops of the tokenizer

    if not tf.io.gfile.exists(os.path.join(path, MARKER)):
        raise FileNotFoundError(
            f"There is no SavedModel at {path}: it holds no saved_model.pb. "
            "`recbert export` and `model.export_savedmodel(path)` write one."
        )
    try:
        loaded = tf.saved_model.load(str(path))
    except _DAMAGED as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"The SavedModel at {path} is damaged: {reason}. Copy it again, or write "
            "it anew: recbert export MODEL FOLDER."
        ) from error
    if signature not in loaded.signatures:
        advice = (
            " `recbert export` writes one." if signature == "serving_default" else ""
        )
        raise ValueError(
            f"The SavedModel at {path} has no signature {signature!r}. It has: "
            f"{', '.join(loaded.signatures) or 'none'}.{advice}"
        )
    found = loaded.signatures[signature]
    found.loaded = loaded  # its variables live as long as the root does
    return found


def saved_model_cli_line(path, fields=("text",), list_fields=()):
    """Returns a shell line that queries a SavedModel with TensorFlow's own command.

    `saved_model_cli` alone does not load the ops of TF Text.

    Args:
        path: str or path. Folder of the SavedModel.
        fields: sequence of str. Fields an example has.
        list_fields: those whose values are lists of strings.
    """
    values = itertools.chain(['["a sentence"]'], itertools.repeat('["another"]'))
    values = dict(zip(fields, values, strict=False))
    values |= dict.fromkeys(list_fields, '[["one", "two"]]')
    inputs = ";".join(f"{name}={value}" for name, value in values.items())
    return (
        'python -c "import tensorflow_text; from '
        'tensorflow.python.tools.saved_model_cli import main; main()" run '
        f"--dir {shlex.quote(str(path))} --tag_set serve "
        f"--signature_def serving_default --input_exprs '{inputs}'"
    )


def versions_on_disk(folder):
    """Paths of the SavedModels in a folder by their numbers; of one itself, by 1.

    Args:
        folder: path. `saved_model.pb`, or numbers such as `1/saved_model.pb`.
    """
    if (folder / MARKER).is_file():
        return {1: folder}
    if not folder.is_dir():
        return {}
    return {
        int(path.name): path
        for path in folder.iterdir()
        if _VERSION.fullmatch(path.name) and (path / MARKER).is_file()
    }


def read_meta_graph(path):
    """The graph and the signatures of a SavedModel, a `MetaGraphDef`; loads nothing.

    Args:
        path: str or path. A folder that holds `saved_model.pb`.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    proto = saved_model_pb2.SavedModel()
    with tf.io.gfile.GFile(os.path.join(path, MARKER), "rb") as file:
        proto.ParseFromString(file.read())
    return proto.meta_graphs[0]


def graph_ops(path):
    """Names of the ops of a SavedModel, a set; its functions are no ops.

    Args:
        path: str or path. A folder that holds `saved_model.pb`.
    """
    graph = read_meta_graph(path).graph_def
    functions = {function.signature.name for function in graph.library.function}
    nodes = list(graph.node)
    for function in graph.library.function:
        nodes.extend(function.node_def)
    return {node.op for node in nodes} - functions


def foreign_ops(path):
    """Ops of a SavedModel that a plain TensorFlow with TF Text cannot run anywhere.

    Args:
        path: str or path. A folder that holds `saved_model.pb`.

    Returns:
        Sorted list of names of ops that are neither TensorFlow's nor TF Text's, or
        that are cuDNN's and need a GPU.
    """
    import tensorflow_text  # noqa: F401  registers its ops
    from tensorflow.python.framework import op_def_registry

    ops = graph_ops(path)
    return sorted(op for op in ops if op_def_registry.get(op) is None or "Cudnn" in op)
