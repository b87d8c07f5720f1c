"""Multi-head self-attention with padding, causal mask and relative bias."""

import keras
import tensorflow as tf
from keras import ops

from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.dense import Dense
from keras_recbert.layers.explain_row import chosen_row, training_row
from keras_recbert.ops.attend import attend
from keras_recbert.ops.dropout import keep_mask
from keras_recbert.ops.implementation import use_xla
from keras_recbert.ops.relative_position import relative_position_bucket

# Added to scores that must not count. Finite, so that a fully padded row attends
# evenly instead of giving NaN; far below any score, so its weight is exactly 0.
MASKED = {"float16": -2e4}  # twice that is still finite
MASKED_ELSE = -1e9
NUM_BUCKETS = 32  # T5's number of relative positions


@keras.saving.register_keras_serializable("keras_recbert")
class SelfAttention(CheckedLayer):
    """Scaled dot-product attention of a sequence over itself.

    `softmax(Q K^T / sqrt(head_dim) + bias) V`, heads concatenated and projected
    (Devlin et al. 2018, section 3; Lei et al. 2022, appendix A). One product makes
    queries, keys and values.

    `bias` is T5's relative attention bias (Raffel et al. 2020, section 2.1), one
    trained scalar for each head and bucket of distances. T5 shares one table over
    its layers; Lei et al. add the bias "to each attention layer", so here each
    layer has a table of its own (32 scalars a head).

    Masking: positions where `padding_mask` or Keras's `mask` is 0 get no weight.
    They count in the distances of the relative bias.

    Args:
        num_heads: int. Number of heads; divides the width of the input.
        dropout: float. Dropout rate of the attention weights.
        relative_attention_bias: bool. Adds the relative bias.
        causal: bool. A position sees itself and what stands left of it.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, shape of `inputs`.

    Raises:
        ValueError: if `num_heads` does not divide the width of the input.
    """

    def __init__(
        self,
        num_heads,
        dropout=0.1,
        relative_attention_bias=False,
        causal=False,
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(num_heads=num_heads)
        check_rate(dropout=dropout)
        self.num_heads = num_heads
        self.dropout_rate = dropout
        self.relative_attention_bias = relative_attention_bias
        self.causal = causal
        self.implementation = implementation
        if dropout:
            self.seed_generator = keras.random.SeedGenerator()

    def build(self, inputs_shape, padding_mask_shape=None):
        hidden_dim = inputs_shape[-1]
        if hidden_dim % self.num_heads:
            up = self.num_heads * (hidden_dim // self.num_heads + 1)
            raise ValueError(
                "`hidden_dim` must be a multiple of `num_heads`. Received: "
                f"hidden_dim={hidden_dim}, num_heads={self.num_heads}. "
                f"Try hidden_dim={up}."
            )
        self.head_dim = hidden_dim // self.num_heads

        def dense(units, name):
            return Dense(
                units,
                kernel_initializer=bert_initializer(),
                dtype=self.dtype_policy,
                implementation=self.implementation,
                name=name,
            )

        self.query_key_value = dense(3 * hidden_dim, "query_key_value")
        self.output_dense = dense(hidden_dim, "output_dense")
        self.query_key_value.build(inputs_shape)
        self.output_dense.build(inputs_shape)
        if self.relative_attention_bias:
            self.bias_table = self.add_weight(
                name="relative_attention_bias",
                shape=(NUM_BUCKETS, self.num_heads),
                initializer=bert_initializer(),
            )
        self.built = True

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        padding_mask = self.agreed_mask(inputs, padding_mask, mask)
        batch_size, length, hidden_dim = ops.shape(inputs)
        qkv = ops.reshape(
            self.query_key_value(inputs),
            (batch_size, length, 3, self.num_heads, self.head_dim),
        )
        qkv = ops.transpose(qkv, (2, 0, 3, 1, 4))  # (3, batch, heads, length, dim)
        # Not qkv[0], qkv[1], qkv[2]: their gradients would be padded with zeros.
        query, key, value = ops.unstack(qkv, 3)
        scores = ops.matmul(
            query * self.head_dim**-0.5, ops.transpose(key, (0, 1, 3, 2))
        )
        scores = self._add_bias(scores, length, padding_mask)
        context = self._attend(scores, value, training)
        context = ops.transpose(context, (0, 2, 1, 3))
        context = ops.reshape(context, (batch_size, length, hidden_dim))
        return self.output_dense(context)

    def _attend(self, scores, value, training):
        if not training:
            # Keras's softmax warns of rows of one token.
            return ops.matmul(tf.nn.softmax(scores), value)
        keep, scale = None, 1.0
        if self.dropout_rate:
            seed = self.seed_generator.next()
            keep, scale = keep_mask(ops.shape(scores), self.dropout_rate, seed)
        xla = use_xla(self.implementation, self.num_heads * self.head_dim)
        return attend(scores, value, keep, scale, xla)

    def _add_bias(self, scores, length, padding_mask):
        masked = MASKED.get(keras.backend.standardize_dtype(scores.dtype), MASKED_ELSE)
        positions = ops.arange(length)
        offsets = positions[None, :] - positions[:, None]  # key minus query
        if self.relative_attention_bias:
            bias = ops.take(self.bias_table, relative_position_bucket(offsets), axis=0)
            scores += ops.cast(ops.transpose(bias, (2, 0, 1)), scores.dtype)
        if self.causal:
            scores += ops.cast(offsets > 0, scores.dtype) * masked
        if padding_mask is not None:
            padding = 1.0 - ops.cast(padding_mask, scores.dtype)
            scores += padding[:, None, None, :] * masked
        return scores

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return inputs_shape

    def explain_row(self):
        """What runs, see `keras_recbert.explain`."""
        what = "softmax's gradient" + ", dropout" * bool(self.dropout_rate)
        width = self.num_heads * self.head_dim
        row = chosen_row(what, self.implementation, width)
        return training_row(row, "TensorFlow", "TensorFlow")

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout_rate,
            "relative_attention_bias": self.relative_attention_bias,
            "causal": self.causal,
            "implementation": self.implementation,
        }
