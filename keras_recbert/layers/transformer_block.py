"""The encoder block of BERT, and the frame of the recurrent ones."""

import keras

from keras_recbert.core.checks import check_rate
from keras_recbert.layers.add_norm import AddNorm
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.feed_forward import FeedForward
from keras_recbert.layers.self_attention import SelfAttention
from keras_recbert.ops.implementation import check_implementation


@keras.saving.register_keras_serializable("keras_recbert")
class TransformerBlock(CheckedLayer):
    """Self-attention and a feed-forward sub-layer, each with add and LayerNorm.

    Post-LayerNorm as in Devlin et al. 2018 (Lei et al. 2022, eq. 1):

        a = LayerNorm(x + dropout(attention(x)))
        y = LayerNorm(a + dropout(feed_forward(a)))

    Masking: as `SelfAttention`.

    Args:
        num_heads: int. Number of attention heads.
        intermediate_dim: int. Width of the feed-forward sub-layer.
        dropout: float. Dropout rate of attention weights and sub-layer outputs.
        relative_attention_bias: bool. Adds T5's relative attention bias.
        causal: bool. Attends to the left only.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: if a size is not positive or `num_heads` does not divide
            `hidden_dim`.
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim=None,
        dropout=0.1,
        relative_attention_bias=False,
        causal=False,
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        check_implementation(implementation)
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.dropout_rate = dropout
        self.relative_attention_bias = relative_attention_bias
        self.causal = causal
        self.implementation = implementation
        self.attention = SelfAttention(
            num_heads,
            dropout,
            relative_attention_bias,
            causal,
            implementation,
            dtype=self.dtype_policy,
            name="attention",
        )
        self.attention_norm = self._norm("attention_norm")
        self.output_norm = self._norm("output_norm")
        self.feed_forward = self._make_feed_forward()

    def _norm(self, name):
        return AddNorm(
            self.dropout_rate, self.implementation, dtype=self.dtype_policy, name=name
        )

    def _make_feed_forward(self):
        return FeedForward(
            self.intermediate_dim,
            self.implementation,
            dtype=self.dtype_policy,
            name="feed_forward",
        )

    def _feed_forward(self, hidden, inputs, padding_mask, training):
        """The second sub-layer: of `a` (and `x`) to what is added to `a`."""
        return self.feed_forward(hidden, training=training)

    def build(self, inputs_shape, padding_mask_shape=None):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.output_norm,
        ):
            layer.build(inputs_shape)
        self.built = True

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        padding_mask = self.agreed_mask(inputs, padding_mask, mask)
        attended = self.attention(inputs, padding_mask, training=training)
        hidden = self.attention_norm(inputs, attended, training=training)
        update = self._feed_forward(hidden, inputs, padding_mask, training)
        return self.output_norm(hidden, update, training=training)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout_rate,
            "relative_attention_bias": self.relative_attention_bias,
            "causal": self.causal,
            "implementation": self.implementation,
        }
