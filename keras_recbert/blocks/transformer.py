"""The block of BERT (Devlin et al. 2018)."""

from keras_recbert.blocks.block_kind import BlockKind, register_block
from keras_recbert.layers.transformer_block import TransformerBlock

HEAD_DIM = 64  # width of an attention head, by default


@register_block
class Transformer(BlockKind):
    """Self-attention and a feed-forward sub-layer."""

    name = "transformer"
    layer = TransformerBlock
    test_sizes = {
        "num_layers": 2,
        "hidden_dim": 12,
        "num_heads": 3,
        "intermediate_dim": 20,
    }

    def defaults(self, hidden_dim):
        return {
            "num_heads": default_heads(hidden_dim),
            "intermediate_dim": 4 * hidden_dim,
            "relative_attention_bias": False,
            "causal": False,
        }

    def count_weights(self, config):
        return attention_weights(config) + feed_forward_weights(config)

    def count_kept(self, config, sequence_length):
        kept = attention_kept(config, sequence_length)
        return kept + 2 * config["intermediate_dim"]


def default_heads(hidden_dim):
    """Number of attention heads: one for each 64 of the width."""
    return max(1, hidden_dim // HEAD_DIM)


def attention_weights(config):
    """Weights of the four matrices of an attention sub-layer."""
    return 4 * config["hidden_dim"] ** 2


def feed_forward_weights(config):
    """Weights of the two matrices of a feed-forward sub-layer."""
    return 2 * config["hidden_dim"] * config["intermediate_dim"]


def attention_kept(config, sequence_length):
    """Numbers that attention and the two LayerNorms of a block keep of a token."""
    return 6 * config["hidden_dim"] + config["num_heads"] * sequence_length
