"""Public layers, loaded on first use: importing this package costs nothing."""

import importlib

_MODULES = {
    "BertEmbeddings": "bert_embeddings",
    "BidirectionalLSTM": "bidirectional_lstm",
    "BLSTMBlock": "blstm_block",
    "FeedForward": "feed_forward",
    "SelfAttention": "self_attention",
    "SwishRNN": "swish_rnn",
    "SwishRNNBlock": "swish_rnn_block",
    "TransBLSTMBlock": "trans_blstm_block",
    "TransformerBlock": "transformer_block",
}
__all__ = list(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__():
    return __all__
