"""Kinds of encoder block: one file each, registered by importing it."""

# The kinds of the papers, imported for their registration.
from keras_recbert.blocks import blstm, swish_rnn, trans_blstm, transformer  # noqa: F401
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
