"""Input embeddings of BERT."""

import keras
from keras import ops

from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.checked_layer import ROWS, CheckedLayer
from keras_recbert.layers.common import bert_initializer, layer_norm
from keras_recbert.layers.dropout import Dropout
from keras_recbert.layers.explain_row import NOTHING, chosen_row, training_row
from keras_recbert.layers.token_embedding import TokenEmbedding
from keras_recbert.ops.implementation import check_implementation


@keras.saving.register_keras_serializable("keras_recbert")
class BertEmbeddings(CheckedLayer):
    """Sum of token, segment and position embeddings, then LayerNorm and dropout.

    Devlin et al. 2018, section 3.2 and figure 2. Positions are learned.

    Args:
        vocabulary_size: int. Number of word pieces.
        hidden_dim: int. Width of the embeddings.
        max_sequence_length: int. Number of learned positions.
        num_segments: int. Number of segments (2: sentence A and B).
        dropout: float. Dropout rate after the LayerNorm.
        implementation: str. See `keras_recbert.ops.implementation`.

    Call arguments:
        token_ids: int, `(batch_size, sequence_length)`.
        segment_ids: int, `(batch_size, sequence_length)`.

    Returns:
        float, `(batch_size, sequence_length, hidden_dim)`.

    Raises:
        ValueError: if a size is not positive, or if `sequence_length` is known and
            above `max_sequence_length`.
    """

    call_shapes = {"token_ids": ROWS, "segment_ids": ROWS}
    built_axis = None

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        max_sequence_length=512,
        num_segments=2,
        dropout=0.1,
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(
            vocabulary_size=vocabulary_size,
            hidden_dim=hidden_dim,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
        )
        check_rate(dropout=dropout)
        check_implementation(implementation)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.dropout_rate = dropout
        self.implementation = implementation

        def table(size, name):
            return TokenEmbedding(
                size,
                hidden_dim,
                embeddings_initializer=bert_initializer(),
                dtype=self.dtype_policy,
                name=name,
            )

        self.token_embedding = table(vocabulary_size, "token_embedding")
        self.segment_embedding = table(num_segments, "segment_embedding")
        self.position_embedding = table(max_sequence_length, "position_embedding")
        self.norm = layer_norm(self.dtype_policy)
        self.dropout = Dropout(dropout, implementation, dtype=self.dtype_policy)

    @property
    def token_tables(self):
        """The tables that token ids are looked up in, `keras.Variable`."""
        return [self.token_embedding.embeddings]

    def build(self, token_ids_shape, segment_ids_shape=None):
        for table in (
            self.token_embedding,
            self.segment_embedding,
            self.position_embedding,
        ):
            table.build(token_ids_shape)
        self.norm.build((*token_ids_shape, self.hidden_dim))
        self.built = True

    def call(self, token_ids, segment_ids, training=None):
        self._check_length(token_ids.shape[1])
        hidden = (
            self.token_embedding(token_ids)
            + self.segment_embedding(segment_ids)
            + self._positions(ops.shape(token_ids)[1])
        )
        return self.dropout(self.norm(hidden), training=training)

    def _positions(self, length):
        """The first rows of the table of positions.

        Sliced, not looked up: the gradient is a whole table then, which several
        devices add up before it is clipped, and not rows that each has a part of.
        """
        table = self.position_embedding
        if table.quantization_mode is not None:
            return table(ops.arange(length))
        rows = ops.convert_to_tensor(table.embeddings)[:length]
        return ops.cast(rows, self.compute_dtype)

    def _check_length(self, length):
        if length is not None and length > self.max_sequence_length:
            raise ValueError(
                "The input is longer than the table of positions. Received: "
                f"sequence_length={length}, max_sequence_length="
                f"{self.max_sequence_length}. Truncate the input, or build the model "
                f"with max_sequence_length={length}."
            )

    def compute_output_shape(self, token_ids_shape, segment_ids_shape=None):
        self._check_length(token_ids_shape[1])
        return (*token_ids_shape, self.hidden_dim)

    def explain_row(self):
        """What runs for dropout, see `keras_recbert.explain`; None without it."""
        if not self.dropout_rate:
            return None
        own = self.dropout.implementation
        row = chosen_row("dropout of embeddings", own, self.hidden_dim)
        return training_row(row, NOTHING, NOTHING)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout_rate,
            "implementation": self.implementation,
        }
