"""The head that guesses word pieces."""

import keras
import tensorflow as tf
from keras import ops

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.checked_layer import ROWS, CheckedLayer
from keras_recbert.layers.common import bert_initializer, layer_norm
from keras_recbert.layers.dense import Dense
from keras_recbert.ops.implementation import check_implementation


@keras.saving.register_keras_serializable("keras_recbert")
class MaskedLMHead(CheckedLayer):
    """Logits of all word pieces at some positions, by the table of embeddings.

    Devlin et al. 2018, section 3.3.1, as their released code has it:

        logits = LayerNorm(gelu(x W + b)) E^T + c

    `E` is the table of the token embeddings, usually that of the encoder (tied
    weights). Positions are gathered first: the others cost nothing. Products are
    computed in the dtype of the layer, logits are float32 at least.

    Args:
        vocabulary_size: int. Number of word pieces.
        hidden_dim: int. Width of the table.
        token_embedding: optional `keras.layers.Embedding` whose table this is, built
            or not; by default the head has a table of its own.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, dim)`, of any width.
        mask_positions: int, `(batch_size, num_positions)`. Below `sequence_length`.

    Returns:
        float32, `(batch_size, num_positions, vocabulary_size)`.

    Raises:
        ValueError: if a size is not positive, or is not that of `token_embedding`.
    """

    call_shapes = {
        "inputs": (*ROWS, "dim"),
        "mask_positions": ("batch_size", "num_positions"),
    }
    built_axis = "dim"

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        token_embedding=None,
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, hidden_dim=hidden_dim)
        check_implementation(implementation)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.implementation = implementation
        self.tied = token_embedding is not None
        if not self.tied:
            token_embedding = keras.layers.Embedding(
                vocabulary_size,
                hidden_dim,
                embeddings_initializer=bert_initializer(),
                dtype=self.dtype_policy,
                name="token_embedding",
            )
        sizes = token_embedding.input_dim, token_embedding.output_dim
        if sizes != (vocabulary_size, hidden_dim):
            raise ValueError(
                "`token_embedding` must have a row of `hidden_dim` numbers for each "
                f"word piece. Received: a table of {sizes[0]} times {sizes[1]}, "
                f"vocabulary_size={vocabulary_size}, hidden_dim={hidden_dim}."
            )
        self.token_embedding = token_embedding
        self.dense = Dense(
            hidden_dim,
            activation="gelu",
            kernel_initializer=bert_initializer(),
            implementation=implementation,
            dtype=self.dtype_policy,
            name="dense",
        )
        self.norm = layer_norm(self.dtype_policy)

    def build(self, inputs_shape, mask_positions_shape=None):
        self.dense.build(inputs_shape)
        self.norm.build((*inputs_shape[:-1], self.hidden_dim))
        if not self.token_embedding.built:
            self.token_embedding.build(mask_positions_shape)
        self.bias = self.add_float32_weight((self.vocabulary_size,), "zeros", "bias")
        self.built = True

    def call(self, inputs, mask_positions, training=None):
        x = tf.gather(inputs, ops.cast(mask_positions, "int32"), batch_dims=1)
        x = self.norm(self.dense(x, training=training))
        # One product for the whole batch: (batch_size * num_positions, hidden_dim).
        rows = ops.reshape(x, (-1, self.hidden_dim))
        logits = tf.matmul(rows, self._table(x.dtype), transpose_b=True)
        logits = tf.nn.bias_add(tf.cast(logits, self.bias.dtype), self.bias)
        return ops.reshape(logits, (*ops.shape(x)[:2], self.vocabulary_size))

    def _table(self, dtype):
        embedding = self.token_embedding
        if embedding.quantization_mode is not None:
            # Its weight is whole numbers and a scale; a lookup multiplies them.
            return ops.cast(embedding(ops.arange(self.vocabulary_size)), dtype)
        return ops.convert_to_tensor(embedding.embeddings, dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the outputs stand at `mask_positions`

    def compute_output_shape(self, inputs_shape, mask_positions_shape):
        return (*mask_positions_shape, self.vocabulary_size)

    def compute_output_spec(self, inputs, mask_positions, training=None):
        shape = self.compute_output_shape(inputs.shape, mask_positions.shape)
        return keras.KerasTensor(shape, self.variable_dtype)

    def get_config(self):
        embedding = self.token_embedding
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "token_embedding": serialize(embedding) if self.tied else None,
            "implementation": self.implementation,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        embedding = config.pop("token_embedding")
        if embedding is not None:
            embedding = keras.saving.deserialize_keras_object(embedding)
        return cls(token_embedding=embedding, **config)
