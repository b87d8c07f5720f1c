"""Names of the variables in TF2 checkpoints of the TensorFlow Model Garden.

The keys of a TF2 checkpoint are paths through the Python objects that were saved.
They differ with the class of the encoder, with what was saved around it, and with
the release, and the word embeddings of a pre-trained model stand under its masked
language model. The file also says the name of every variable, in its object graph;
those names hardly changed, so they are what this reader goes by.
"""

import collections
import difflib
import re

from keras_recbert.convert.checkpoint import CheckpointError, Naming

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
LOWERCASE = "do_lower_case/.ATTRIBUTES/VARIABLE_VALUE"
TOKEN_EMBEDDING = "word_embeddings/embeddings"


def find_names(prefix, stored, read):
    """Names of the variables.

    Args:
        prefix: path of the checkpoint.
        stored: dict of key to shape.
        read: function from a key to its value.

    Returns:
        Tuple of a dict of name to key of all tensors, and the `Naming` of the BERT
        among them.
    """
    if OBJECT_GRAPH not in stored:
        raise CheckpointError(
            f"{prefix} holds no object graph ({OBJECT_GRAPH}), which TF2 writes. TF "
            "Hub modules of TF1 are not read; get the TF2 version of the model."
        )
    names = _variable_names(prefix, read(OBJECT_GRAPH))
    # Sorted, as TensorFlow gives them in any order.
    names = dict(sorted((key, names.get(key) or key) for key in stored))
    tables = [
        (name, key)
        for key, name in names.items()
        if name == TOKEN_EMBEDDING or name.endswith("/" + TOKEN_EMBEDDING)
        # What an optimizer keeps of each variable is named after it.
        if "_variables" not in key.split("/") and ".OPTIMIZER_SLOT" not in key
    ]
    if not tables:
        nearest = difflib.get_close_matches(TOKEN_EMBEDDING, names.values(), n=1)
        hint = nearest[0] if nearest else next(iter(names.values()))
        raise CheckpointError(
            f"{prefix} lacks the tensor {TOKEN_EMBEDDING!r}, which every BERT of the "
            f"Model Garden has. It has {hint!r}. Of a SavedModel that this package "
            "exported pass what it was written from: a preset or a model.keras."
        )
    if len(tables) > 1:
        held = ", ".join(f"{name!r} at {key!r}" for name, key in tables)
        raise CheckpointError(
            f"{prefix} holds {len(tables)} encoders: {held}. Save the one to read, "
            "with tf.train.Checkpoint(encoder=encoder).write(path)."
        )
    times = collections.Counter(names.values())
    keys = {
        (name if times[name] == 1 else key): key
        for key, name in names.items()
        # Not tensors of a model: both are read here.
        if key not in (OBJECT_GRAPH, LOWERCASE)
    }
    return keys, _naming(tables[0][0].removesuffix(TOKEN_EMBEDDING), keys)


def _variable_names(prefix, graph):
    """Key to name of each variable, as the object graph has it."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.trackable_object_graph_pb2 import (
        TrackableObjectGraph,
    )

    try:
        nodes = TrackableObjectGraph.FromString(graph).nodes
    except DecodeError as error:
        raise CheckpointError(
            f"{prefix}: the tensor {OBJECT_GRAPH!r} is damaged ({error}). Get the "
            "checkpoint again."
        ) from error
    return {
        attribute.checkpoint_key: attribute.full_name
        for node in nodes
        for attribute in node.attributes
    }


def _naming(prefix, names):
    """Names of the BERT whose variables begin with `prefix`."""
    # Until early 2020, and TF Hub's versions 1 and 2: what the Model Garden's
    # tf1_bert_checkpoint_converter_lib calls BERT_NAME_REPLACEMENTS.
    if any(name.startswith(f"{prefix}encoder/layer_") for name in names):
        layers = f"{prefix}encoder/layer_"
        embeddings = f"{prefix}embedding_postprocessor/"
        segments, positions, norm = (
            "type_embeddings",
            "position_embeddings",
            "layer_norm",
        )
    else:
        layers = f"{prefix}transformer/layer_"
        embeddings = prefix
        segments, positions = (
            "type_embeddings/embeddings",
            "position_embedding/embeddings",
        )
        norm = "embeddings/layer_norm"
    projection = "self_attention/attention_output"
    if f"{layers}0/self_attention_output/kernel" in names:  # until mid-2020
        projection = "self_attention_output"
    layer = layers + "{layer}/"
    return Naming(
        token_embedding=prefix + TOKEN_EMBEDDING,
        segment_embedding=embeddings + segments,
        position_embedding=embeddings + positions,
        embedding_norm=embeddings + norm,
        query=layer + "self_attention/query",
        key=layer + "self_attention/key",
        value=layer + "self_attention/value",
        attention_output=layer + projection,
        attention_norm=layer + "self_attention_layer_norm",
        intermediate=layer + "intermediate",
        output=layer + "output",
        output_norm=layer + "output_layer_norm",
        pooler=prefix + "pooler_transform",
        heads_apart=True,
    )


def count_layers(naming, shapes):
    """Number of the last layer that has a tensor, plus 1."""
    layer = re.compile(re.escape(naming.query.split("{layer}")[0]) + r"(\d+)/")
    found = filter(None, map(layer.match, shapes))
    return 1 + max((int(match[1]) for match in found), default=-1)
