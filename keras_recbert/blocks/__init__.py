"""Kinds of encoder block: one file each, registered by importing it."""

# The kinds of the papers, imported for their registration.
from keras_recbert.blocks import (  # noqa: F401
    blstm,
    swish_rnn,
    swish_rnn_only,
    trans_blstm,
    transformer,
)
from keras_recbert.blocks.block_kind import (
    BlockKind,
    complete_config,
    get_block,
    list_blocks,
    register_block,
)

__all__ = [
    "BlockKind",
    "complete_config",
    "get_block",
    "list_blocks",
    "register_block",
]
