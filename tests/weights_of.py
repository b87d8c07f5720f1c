"""Weights of our layers under the names that `reference/` uses, in float64."""

import numpy as np


def _array(weight):
    return weight.numpy().astype("float64")


def norm(layer):
    return _array(layer.gamma), _array(layer.beta)


def self_attention(layer):
    """The one product of the layer, cut into queries, keys and values."""
    kernels = np.split(_array(layer.query_key_value.kernel), 3, axis=1)
    biases = np.split(_array(layer.query_key_value.bias), 3)
    weights = {
        "w_output": _array(layer.output_dense.kernel),
        "b_output": _array(layer.output_dense.bias),
    }
    for part, kernel, bias in zip(
        ("query", "key", "value"), kernels, biases, strict=True
    ):
        weights[f"w_{part}"], weights[f"b_{part}"] = kernel, bias
    if layer.relative_attention_bias:
        weights["relative"] = _array(layer.bias_table)
    return weights


def feed_forward(layer):
    return {
        "w_1": _array(layer.intermediate_dense.kernel),
        "b_1": _array(layer.intermediate_dense.bias),
        "w_2": _array(layer.output_dense.kernel),
        "b_2": _array(layer.output_dense.bias),
    }


def swish_rnn(layer):
    w1, w2 = np.split(_array(layer.input_dense.kernel), 2, axis=1)
    return {
        "w1": w1,
        "w2": w2,
        "w3": _array(layer.output_dense.kernel),
        "b_3": _array(layer.output_dense.bias),
        "alpha": _array(layer.alpha),
        "beta": _array(layer.beta),
        "b_c": _array(layer.state_bias),
        "b_sigma": _array(layer.gate_bias),
    }


def bidirectional_lstm(layer):
    return {
        "w": np.split(_array(layer.kernel), 2, axis=1),
        "u": _array(layer.recurrent_kernel),
        "b": _array(layer.bias),
    }


def blstm(block):
    """The BiLSTM of a block and, if it has one, the projection."""
    weights = bidirectional_lstm(block.bidirectional_lstm)
    if block.projection is not None:
        weights["w_project"] = _array(block.projection.kernel)
        weights["b_project"] = _array(block.projection.bias)
    return weights


def bi_attentive_student(layer):
    return {
        "kernel": _array(layer.projection.kernel),
        "bias": _array(layer.projection.bias),
        "first_scores": _array(layer.first_scores),
        "second_scores": _array(layer.second_scores),
        **{
            name: bidirectional_lstm(getattr(layer, name))
            for name in ("reader", "first_reader", "second_reader")
        },
    }


def block_frame(block):
    """Attention and the two LayerNorms, which all blocks with attention share."""
    return {
        "attention": self_attention(block.attention),
        "attention_norm": norm(block.attention_norm),
        "output_norm": norm(block.output_norm),
    }


def embeddings(layer):
    return {
        "token": _array(layer.token_embedding.embeddings),
        "segment": _array(layer.segment_embedding.embeddings),
        "position": _array(layer.position_embedding.embeddings),
        "norm": norm(layer.norm),
    }
