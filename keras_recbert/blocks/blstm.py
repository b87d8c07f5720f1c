"""A BiLSTM in place of the whole block (Huang et al. 2020, section 4.3)."""

from keras_recbert.blocks.block_kind import BlockKind, register_block
from keras_recbert.layers.blstm_block import BLSTMBlock


@register_block
class BLSTM(BlockKind):
    """A BiLSTM, projected, with residual and LayerNorm; no attention.

    A BERT gives it embeddings and pooler: its LayerNorms have the names of a BERT's,
    but stand behind other things.
    """

    name = "blstm"
    layer = BLSTMBlock
    shares_bert_paths = False
    test_sizes = {"num_layers": 2, "hidden_dim": 12, "recurrent_dim": 7}

    def defaults(self, hidden_dim):
        return {"recurrent_dim": hidden_dim}

    def count_weights(self, config):
        return lstm_weights(config["hidden_dim"], config["recurrent_dim"])

    def count_kept(self, config, sequence_length):
        return 2 * config["hidden_dim"] + lstm_kept(config["recurrent_dim"])


def lstm_weights(hidden_dim, units, projected=True):
    """Weights of both directions of an LSTM, and of the projection behind it."""
    projection = 2 * units * hidden_dim if projected else 0
    return 8 * units * (hidden_dim + units) + projection


def lstm_kept(units):
    """Numbers that both directions keep of a token: four gates and a state each."""
    return 10 * units
