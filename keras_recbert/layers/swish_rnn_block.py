"""Encoder block of Lei et al. 2022."""

import keras

from keras_recbert.layers.swish_rnn import SwishRNN
from keras_recbert.layers.transformer_block import TransformerBlock


@keras.saving.register_keras_serializable("keras_recbert")
class SwishRNNBlock(TransformerBlock):
    """`TransformerBlock` whose feed-forward sub-layer is a `SwishRNN`.

    Lei et al. 2022, section 2.2 and figure 1. The relative attention bias is on by
    default, as in the paper.

    Masking: as `SelfAttention` and `SwishRNN`.

    Args:
        num_heads: int. Number of attention heads.
        recurrent_dim: int. Width of the recurrent state.
        step_size: int. Distance to the state that is read.
        gate: `"gelu"` or `"sigmoid"`.
        dropout: float. Dropout rate of attention weights and sub-layer outputs.
        relative_attention_bias: bool. Adds T5's relative attention bias.
        **kwargs: `causal`, `implementation` and those of every layer.

    Call arguments, returns: as `TransformerBlock`.

    Raises:
        ValueError: as `TransformerBlock` and `SwishRNN`.
    """

    def __init__(
        self,
        num_heads,
        recurrent_dim,
        step_size=1,
        gate="gelu",
        dropout=0.1,
        relative_attention_bias=True,
        **kwargs,
    ):
        self.recurrent_arguments = {
            "recurrent_dim": recurrent_dim,
            "step_size": step_size,
            "gate": gate,
        }
        super().__init__(
            num_heads,
            dropout=dropout,
            relative_attention_bias=relative_attention_bias,
            **kwargs,
        )

    def _make_feed_forward(self):
        return SwishRNN(
            **self.recurrent_arguments,
            implementation=self.implementation,
            dtype=self.dtype_policy,
            name="swish_rnn",
        )

    def _feed_forward(self, hidden, inputs, padding_mask, training):
        return self.feed_forward(hidden, padding_mask)

    def get_config(self):
        config = super().get_config()
        del config["intermediate_dim"]
        return {**config, **self.recurrent_arguments}
