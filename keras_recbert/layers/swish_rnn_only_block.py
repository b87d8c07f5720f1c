"""Encoder block without attention, of one SwishRNN."""

import keras
from keras import ops

from keras_recbert.core.checks import check_rate
from keras_recbert.layers.add_norm import AddNorm
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.swish_rnn import SwishRNN


@keras.saving.register_keras_serializable("keras_recbert")
class SwishRNNOnlyBlock(CheckedLayer):
    """A SwishRNN in place of the whole block: `LayerNorm(x + dropout(SwishRNN(x)))`.

    The feed-forward half of the block of Lei et al. 2022, section 2.2, without the
    attention below it; ours. A SwishRNN reads from left to right, with `go_backwards`
    from right to left: blocks of both directions, one above the other, see both sides.

    Masking: as `SwishRNN`. From right to left padding at the end comes first, where it
    leaves the states at zero.

    Args:
        recurrent_dim: int. Width of the recurrent state.
        step_size: int. Distance to the state that is read.
        gate: `"gelu"` or `"sigmoid"`.
        go_backwards: bool. Reads from right to left.
        dropout: float. Dropout rate of the output of the SwishRNN.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: as `SwishRNN`; if `dropout` is not in [0, 1).
    """

    def __init__(
        self,
        recurrent_dim,
        step_size=1,
        gate="gelu",
        go_backwards=False,
        dropout=0.1,
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_rate(dropout=dropout)
        self.go_backwards = bool(go_backwards)
        self.dropout_rate = dropout
        self.implementation = implementation
        self.swish_rnn = SwishRNN(
            recurrent_dim,
            step_size,
            gate,
            implementation,
            dtype=self.dtype_policy,
            name="swish_rnn",
        )
        self.output_norm = AddNorm(
            dropout, implementation, dtype=self.dtype_policy, name="output_norm"
        )

    def build(self, inputs_shape, padding_mask_shape=None):
        self.swish_rnn.build(inputs_shape)
        self.output_norm.build(inputs_shape)
        self.built = True

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        padding_mask = self.agreed_mask(inputs, padding_mask, mask)
        if not self.go_backwards:
            update = self.swish_rnn(inputs, padding_mask)
        else:
            if padding_mask is not None:
                padding_mask = ops.flip(padding_mask, axis=1)
            update = self.swish_rnn(ops.flip(inputs, axis=1), padding_mask)
            update = ops.flip(update, axis=1)
        return self.output_norm(inputs, update, training=training)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "recurrent_dim": self.swish_rnn.recurrent_dim,
            "step_size": self.swish_rnn.step_size,
            "gate": self.swish_rnn.gate,
            "go_backwards": self.go_backwards,
            "dropout": self.dropout_rate,
            "implementation": self.implementation,
        }
