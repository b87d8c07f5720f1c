"""Encoder blocks of TRANS-BLSTM (Huang et al. 2020)."""

import keras

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.dense import Dense
from keras_recbert.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable("keras_recbert")
class TransBLSTMBlock(TransformerBlock):
    """Transformer block with a bidirectional LSTM (Huang et al. 2020, figure 2).

    Variant 2, TRANS-BLSTM: the BiLSTM reads what the block reads, and its output is
    added to the block's before the last LayerNorm (section 3.2):

        a = LayerNorm(x + dropout(attention(x)))
        y = LayerNorm(a + dropout(feed_forward(a) + project(BiLSTM(x))))

    Variant 1, TRANS-BLSTM-1: the BiLSTM replaces the feed-forward sub-layer:

        y = LayerNorm(a + dropout(project(BiLSTM(a))))

    `project` is a linear map from `2 * recurrent_dim` to `hidden_dim`. With
    `recurrent_dim = hidden_dim / 2` the paper needs none (TRANS-BLSTM-SMALL), and
    the block has none then.

    Masking: as `SelfAttention` and `BidirectionalLSTM`.

    Args:
        num_heads: int. Number of attention heads.
        recurrent_dim: int. Units of each direction of the LSTM.
        intermediate_dim: int. Width of the feed-forward sub-layer; variant 2 only.
        variant: 1 or 2.
        dropout: float. Dropout rate of attention weights and sub-layer outputs.
        **kwargs: `relative_attention_bias`, `causal`, `implementation` and those of
            every layer.

    Call arguments, returns: as `TransformerBlock`.

    Raises:
        ValueError: as `TransformerBlock`; if `variant` is neither 1 nor 2; if
            `intermediate_dim` is given for variant 1 or missing for variant 2.
    """

    def __init__(
        self,
        num_heads,
        recurrent_dim,
        intermediate_dim=None,
        variant=2,
        dropout=0.1,
        **kwargs,
    ):
        if variant not in (1, 2):
            raise ValueError(f"`variant` must be 1 or 2. Received: variant={variant}.")
        if (variant == 2) != (intermediate_dim is not None):
            raise ValueError(
                "`intermediate_dim` is the width of the feed-forward sub-layer, which "
                "variant 2 has and variant 1 has not. Received: "
                f"variant={variant}, intermediate_dim={intermediate_dim}."
            )
        check_positive(recurrent_dim=recurrent_dim)
        self.variant = variant
        super().__init__(num_heads, intermediate_dim, dropout, **kwargs)
        self.recurrent_dim = recurrent_dim
        self.bidirectional_lstm = BidirectionalLSTM(
            recurrent_dim,
            self.implementation,
            dtype=self.dtype_policy,
            name="bidirectional_lstm",
        )
        self.projection = None

    def _make_feed_forward(self):
        return super()._make_feed_forward() if self.variant == 2 else None

    def build(self, inputs_shape, padding_mask_shape=None):
        hidden_dim = inputs_shape[-1]
        layers = [self.attention, self.attention_norm, self.output_norm]
        if self.variant == 2:
            layers.append(self.feed_forward)
        for layer in (*layers, self.bidirectional_lstm):
            layer.build(inputs_shape)
        if 2 * self.recurrent_dim != hidden_dim:
            self.projection = Dense(
                hidden_dim,
                kernel_initializer=bert_initializer(),
                implementation=self.implementation,
                dtype=self.dtype_policy,
                name="projection",
            )
            self.projection.build((*inputs_shape[:-1], 2 * self.recurrent_dim))
        self.built = True

    def _recur(self, x, padding_mask, training):
        outputs = self.bidirectional_lstm(x, padding_mask, training=training)
        return outputs if self.projection is None else self.projection(outputs)

    def _feed_forward(self, hidden, inputs, padding_mask, training):
        if self.variant == 1:
            return self._recur(hidden, padding_mask, training)
        update = super()._feed_forward(hidden, inputs, padding_mask, training)
        return update + self._recur(inputs, padding_mask, training)

    def get_config(self):
        return {
            **super().get_config(),
            "recurrent_dim": self.recurrent_dim,
            "variant": self.variant,
        }
