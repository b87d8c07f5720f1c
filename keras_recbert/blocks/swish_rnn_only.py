"""A SwishRNN in place of the whole block: recurrence without attention."""

from keras_recbert.blocks.block_kind import BlockKind, get_block, register_block
from keras_recbert.layers.swish_rnn_only_block import SwishRNNOnlyBlock

OWN = ("recurrent_dim", "step_size", "gate")


@register_block
class SwishRNNOnly(BlockKind):
    """SwishRNN, residual and LayerNorm; every second block reads from right to left.

    Arguments are those of `"swish_rnn"` without attention. A BERT gives it embeddings
    and pooler.
    """

    name = "swish_rnn_only"
    layer = SwishRNNOnlyBlock
    shares_bert_paths = False
    test_sizes = {"num_layers": 3, "hidden_dim": 12, "recurrent_dim": 20}

    def defaults(self, hidden_dim):
        defaults = get_block("swish_rnn").defaults(hidden_dim)
        return {name: defaults[name] for name in OWN}

    def check(self, config):
        get_block("swish_rnn").check(config)

    def make_layer(self, config, index, **shared):
        steps = config["step_size"]
        own = {**config, "step_size": steps[index % len(steps)]}
        own = {name: own[name] for name in OWN}
        return self.layer(**own, go_backwards=index % 2 == 1, **shared)

    def count_weights(self, config):
        return 3 * config["hidden_dim"] * config["recurrent_dim"]

    def count_kept(self, config, sequence_length):
        # Two products, the states and the gate.
        return 2 * config["hidden_dim"] + 4 * config["recurrent_dim"]
