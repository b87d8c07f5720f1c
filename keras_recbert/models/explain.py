"""Says which implementation each kind of layer of an encoder runs, and why."""

import dataclasses
import functools

import keras
import tensorflow as tf

# No public name: shows a graph as it is after TensorFlow has optimized it.
from tensorflow.python.eager import context

from keras_recbert.layers.add_norm import AddNorm
from keras_recbert.layers.bert_embeddings import BertEmbeddings
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.dense import Dense
from keras_recbert.layers.self_attention import SelfAttention
from keras_recbert.layers.swish_rnn import SwishRNN
from keras_recbert.ops.implementation import accelerators, choose, portable_graphs

NOTHING = "-"
PRODUCTS = "matrix products"
TITLES = (
    "what",
    "layers",
    "width",
    "training",
    "inference",
    "SavedModel",
    "why in training",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """What one kind of layer runs.

    Args:
        what: str. What is computed.
        num_layers: int. Layers of the encoder that compute it.
        width: int, or None where it does not count.
        training, inference, exported: str. What runs in a training step, in a forward
            pass, and in a SavedModel: `"reference"`, `"loop"` or `"xla"`, as
            `keras_recbert.ops.implementation` has them; or who computes it.
        reason: str. Why that runs in training.
        exported_reason: str. Why a SavedModel has something else; or empty.
    """

    what: str
    num_layers: int
    width: int | None
    training: str
    inference: str
    exported: str
    reason: str
    exported_reason: str = ""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What an encoder runs on this machine; `print` it.

    Args:
        name: str. Name of the encoder.
        config: dict. Its arguments.
        precision: str. Its dtype policy.
        rows: list of `Row`.
    """

    name: str
    config: dict
    precision: str
    rows: list

    def __str__(self):
        config = self.config
        devices = " and ".join(("CPU", *accelerators()))
        lines = [
            f"{self.name}: {config['num_layers']} blocks of kind {config['block']}, "
            f"{config['hidden_dim']} wide, {self.precision}, "
            f"implementation={config['implementation']}, on {devices}."
        ]
        if config["gradient_checkpointing"]:
            lines.append("Training runs each block twice (gradient_checkpointing).")
        cells = [TITLES] + [
            (
                row.what,
                str(row.num_layers),
                NOTHING if row.width is None else str(row.width),
                row.training,
                row.inference,
                row.exported,
                row.reason,
            )
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [
                cell.rjust(width) if number in (1, 2) else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
        reasons = [row.exported_reason for row in self.rows if row.exported_reason]
        lines += [
            f"Why in a SavedModel: {reason}." for reason in dict.fromkeys(reasons)
        ]
        lines.append(
            "Which precision is faster here, `recbert finetune --precision auto` "
            "measures."
        )
        return "\n".join(lines)


def explain(encoder):
    """Walks the layers of an encoder and asks what each would run.

    Args:
        encoder: `RecBertBackbone`. Its weights may be unfilled.

    Returns:
        `Explanation`.
    """
    _, fused = _matrix_product(encoder.policy.compute_dtype)
    found = []
    for layer in encoder._flatten_layers():
        row = _row(layer, fused)
        if row is not None:
            found.append(row)
    # A row for each kind, in the order of the first layer of the kind.
    kinds = {}
    for row in found:
        kinds[row] = kinds.get(row, 0) + 1
    rows = [dataclasses.replace(row, num_layers=n) for row, n in kinds.items()]
    num_products = sum(
        isinstance(layer, keras.layers.Dense) for layer in encoder._flatten_layers()
    )
    for dtype in ("float32", "bfloat16"):
        library, _ = _matrix_product(dtype)
        reason = "TensorFlow's choice on this machine"
        rows.append(
            Row(
                f"{PRODUCTS}, {dtype}",
                num_products,
                None,
                library,
                library,
                "TensorFlow",
                reason,
            )
        )
    return Explanation(encoder.name, encoder.config, encoder.policy.name, rows)


def _row(layer, fused):
    """What a layer runs itself, or None; asks `choose` what the layer asks it."""
    own = getattr(layer, "implementation", None)
    match layer:
        case SwishRNN():
            return _chosen("SwishRNN", own, layer.recurrent_dim, loops=True)
        case BidirectionalLSTM():
            return _chosen("bidirectional LSTM", own, layer.units, loops=True)
        case AddNorm():
            what = "dropout, residual, LayerNorm"
            if not layer.dropout_rate:
                what = "residual, LayerNorm"
            return _chosen(what, own, layer.gamma.shape[-1])
        case Dense() if layer.activation is keras.activations.gelu:
            row = _chosen("GELU", own, layer.units)
            inference = "in the product" if fused else "TensorFlow"
            return _but(row, inference, "TensorFlow")
        case SelfAttention():
            what = "softmax's gradient" + ", dropout" * bool(layer.dropout_rate)
            row = _chosen(what, own, layer.num_heads * layer.head_dim)
            return _but(row, "TensorFlow", "TensorFlow")
        case BertEmbeddings() if layer.dropout_rate:
            dropout = layer.dropout.implementation
            row = _chosen("dropout of embeddings", dropout, layer.hidden_dim)
            return _but(row, NOTHING, NOTHING)
    return None


def _chosen(what, implementation, width, loops=False):
    """A row by what `choose` says here, and where a SavedModel is traced."""
    if implementation == "reference" and not loops:
        # What has no loop over time has no such form: `use_xla` is all it asks.
        implementation = "loop"
    name, reason = choose(implementation, width)
    with portable_graphs():
        exported, exported_reason = choose(implementation, width)
    if exported == name:
        exported_reason = ""
    return Row(what, 1, width, name, name, exported, reason, exported_reason)


def _but(row, inference, exported):
    """The row of something that is an op of this package in training only."""
    return dataclasses.replace(
        row, inference=inference, exported=exported, exported_reason=""
    )


@functools.cache
def _matrix_product(dtype):
    """Who multiplies matrices, and whether bias and GELU are computed in the product.

    TensorFlow decides it when it optimizes a graph, by processor, type and
    environment: so a small graph is run, and looked at.
    """

    @tf.function
    def product(x, kernel, bias):
        x = tf.nn.bias_add(tf.matmul(x, kernel), bias)
        # Behind it stands something, as in every layer: an output is never fused.
        return tf.reshape(keras.activations.gelu(x, approximate=False), [-1])

    arguments = [tf.zeros(shape, dtype) for shape in ((8, 16), (16, 16), (16,))]
    context.context().enable_graph_collection()
    try:
        product(*arguments)
        collected = context.context().export_run_metadata()
    finally:
        context.context().disable_graph_collection()
    ops = {
        node.op
        for function in collected.function_graphs
        for graph in function.partition_graphs
        for node in graph.node
    }
    if any(op.startswith("_Mkl") and "MatMul" in op for op in ops):
        library = "oneDNN"
    else:
        library = accelerators()[0] if accelerators() else "Eigen"
    return library, not any("Erf" in op for op in ops)
