"""Which layer of a block feeds which, read from the graph of a call."""

import dataclasses
import re

import keras
import tensorflow as tf

from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM

WORDS = {
    "AddNorm": "add, LayerNorm",
    "BidirectionalLSTM": "BiLSTM",
    "Dense": "linear",
    "FeedForward": "feed-forward",
    "SelfAttention": "self-attention",
}
INPUT, OUTPUT = "x", "y"


@dataclasses.dataclass
class Part:
    """A layer of a block, or a sum of what layers give.

    Attributes:
        label: str. What it is.
        detail: str. Its sizes, or an empty string.
        kind: str. `"input"`, `"layer"`, `"recurrent"`, `"norm"` or `"sum"`.
        sources: set of str. Names of the parts that it reads.
    """

    label: str
    detail: str = ""
    kind: str = "layer"
    sources: set = dataclasses.field(default_factory=set)


def block_graph(encoder):
    """The parts of the first block of an encoder, in the order that they run in.

    Args:
        encoder: `keras_recbert.models.encoder.Encoder` with `blocks`.

    Returns:
        dict of name to `Part`; `"x"`, what the block reads, first, and what it gives
        last.
    """
    block = encoder.blocks[0]
    layers = {layer.name: layer for layer in block._flatten_layers(include_self=False)}

    def call(x, padding_mask):
        return block(x, padding_mask=padding_mask, training=False)

    x = tf.TensorSpec([None, None, encoder.hidden_dim], block.compute_dtype, INPUT)
    mask = tf.TensorSpec([None, None], tf.int32, "padding_mask")
    graph = tf.function(call, [x, mask], autograph=False).get_concrete_function().graph
    parts = {INPUT: Part(INPUT, kind="input")}
    feeds = {}  # of each op: the parts whose output it holds
    for op in graph.get_operations():
        feeding = set().union(*(feeds[one.op.name] for one in op.inputs))
        name = _part_of(op, block, layers)
        if name == INPUT or (op.type == "Placeholder" and name is None):
            feeds[op.name] = {INPUT} if op.name == INPUT else set()
        elif name is None:  # such as a cast: what it reads goes on
            feeds[op.name] = feeding
        else:
            part = parts.setdefault(name, _part(name, layers))
            part.sources |= feeding - {name}
            feeds[op.name] = {name} if feeding else set()
    return {name: part for name, part in parts.items() if name == INPUT or part.sources}


def _part_of(op, block, layers):
    """Name of the part of an op, or None."""
    inside = re.match(rf"{re.escape(block.name)}(?:_\d+)?/([^/]+)", op.name)
    if inside is None:
        return None
    name = re.sub(r"_\d+$", "", inside[1])
    if inside[1] in layers or name in layers:
        return inside[1] if inside[1] in layers else name
    return inside[1] if op.type in ("AddV2", "AddN") else None


def _part(name, layers):
    if name not in layers:
        return Part("+", kind="sum")
    layer = layers[name]
    words = type(layer).__name__
    kind = "layer"
    if _is_recurrent(layer):
        kind = "recurrent"
    elif words == "AddNorm":
        kind = "norm"
    return Part(WORDS.get(words, words), _sizes(layer), kind)


def _is_recurrent(layer):
    kinds = (BidirectionalLSTM, keras.layers.RNN, keras.layers.Bidirectional)
    return isinstance(layer, kinds) or hasattr(layer, "recurrent_dim")


def _sizes(layer):
    """The sizes of a layer in words."""
    if isinstance(layer, BidirectionalLSTM):
        return f"{layer.units:,} units a direction"
    if hasattr(layer, "recurrent_dim"):
        step = getattr(layer, "step_size", None)
        return f"{layer.recurrent_dim:,} units" + (f", step {step}" if step else "")
    if hasattr(layer, "intermediate_dim"):
        return f"{layer.intermediate_dim:,} units"
    if hasattr(layer, "num_heads"):
        bias = getattr(layer, "relative_attention_bias", False)
        return f"{layer.num_heads} heads" + (", relative bias" if bias else "")
    return ""
