"""Encoder block without attention."""

import keras

from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.add_norm import AddNorm
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.dense import Dense


@keras.saving.register_keras_serializable("keras_recbert")
class BLSTMBlock(CheckedLayer):
    """A BiLSTM in place of the whole block: `LayerNorm(x + dropout(W BiLSTM(x)))`.

    The BLSTM model of Huang et al. 2020, section 4.3: "we replace the 12
    transformer layers with 12 BLSTM layers". The paper does not say how they are
    stacked; this keeps the frame of its other blocks (residual, LayerNorm, linear
    map from `2 * recurrent_dim` to the width of the input).

    Masking: as `BidirectionalLSTM`.

    Args:
        recurrent_dim: int. Units of each direction.
        dropout: float. Dropout rate of the projected output.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: if `recurrent_dim` is not positive or `dropout` not in [0, 1).
    """

    def __init__(self, recurrent_dim, dropout=0.1, implementation="auto", **kwargs):
        super().__init__(**kwargs)
        check_positive(recurrent_dim=recurrent_dim)
        check_rate(dropout=dropout)
        self.recurrent_dim = recurrent_dim
        self.dropout_rate = dropout
        self.implementation = implementation
        self.bidirectional_lstm = BidirectionalLSTM(
            recurrent_dim,
            implementation,
            dtype=self.dtype_policy,
            name="bidirectional_lstm",
        )
        self.output_norm = AddNorm(
            dropout, implementation, dtype=self.dtype_policy, name="output_norm"
        )

    def build(self, inputs_shape, padding_mask_shape=None):
        self.projection = Dense(
            inputs_shape[-1],
            kernel_initializer=bert_initializer(),
            implementation=self.implementation,
            dtype=self.dtype_policy,
            name="projection",
        )
        self.bidirectional_lstm.build(inputs_shape)
        self.projection.build((*inputs_shape[:-1], 2 * self.recurrent_dim))
        self.output_norm.build(inputs_shape)
        self.built = True

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        padding_mask = self.agreed_mask(inputs, padding_mask, mask)
        update = self.bidirectional_lstm(inputs, padding_mask, training=training)
        return self.output_norm(inputs, self.projection(update), training=training)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return inputs_shape

    def get_config(self):
        return {
            **super().get_config(),
            "recurrent_dim": self.recurrent_dim,
            "dropout": self.dropout_rate,
            "implementation": self.implementation,
        }
