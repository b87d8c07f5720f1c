"""Word vectors, given or drawn, trained or not."""

import keras
import numpy as np
from keras import ops

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.checked_layer import ROWS, CheckedLayer

# The tables of each kind, and whether they are trained (Kim 2014, section 3.1).
CHANNELS = {
    "static": {"static": False},
    "non_static": {"non_static": True},
    "multichannel": {"static": False, "non_static": True},
}
INITIAL = 0.25  # vectors are drawn from [-0.25, 0.25], as in the code of Kim 2014


@keras.saving.register_keras_serializable("keras_recbert")
class WordEmbeddings(CheckedLayer):
    """A vector for each word, of one table or of two side by side.

    Kim 2014 (arXiv:1408.5882), section 3.1: `"static"` vectors stay as they are given,
    `"non_static"` ones are trained, and `"multichannel"` has both, which begin equal.
    There each filter reads both channels; here they stand side by side, as the size of
    the BiLSTM in Liu 2020, table 3.2, has it.

    Args:
        vocabulary_size: int. Number of words.
        vector_dim: int. Width of a vector.
        channels: str. `"static"`, `"non_static"` or `"multichannel"`.

    Call arguments:
        token_ids: int, `(batch_size, sequence_length)`.

    Returns:
        float, `(batch_size, sequence_length, vector_dim)`; of two channels twice as
        wide, the static one first.

    Raises:
        ValueError: if a size is not positive, or `channels` is unknown.
    """

    call_shapes = {"token_ids": ROWS}
    built_axis = None

    def __init__(self, vocabulary_size, vector_dim, channels="non_static", **kwargs):
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, vector_dim=vector_dim)
        if channels not in CHANNELS:
            raise ValueError(
                f"`channels` must be one of {', '.join(map(repr, CHANNELS))}. "
                f"Received: channels={channels!r}."
            )
        self.vocabulary_size = vocabulary_size
        self.vector_dim = vector_dim
        self.channels = channels

    def build(self, token_ids_shape):
        self.tables = [
            self.add_weight(
                name=name,
                shape=(self.vocabulary_size, self.vector_dim),
                initializer=keras.initializers.RandomUniform(-INITIAL, INITIAL),
                trainable=is_trained,
                autocast=False,  # rows are cast, not the table
            )
            for name, is_trained in CHANNELS[self.channels].items()
        ]
        self.built = True

    def call(self, token_ids):
        ids = ops.cast(token_ids, "int32")
        vectors = [ops.take(table, ids, axis=0) for table in self.tables]
        return ops.cast(ops.concatenate(vectors, axis=-1), self.compute_dtype)

    @property
    def token_tables(self):
        """The tables that token ids are looked up in, `keras.Variable`."""
        return self.tables

    def set_vectors(self, ids, vectors):
        """Sets the vectors of words in all channels, which are equal then.

        Words without one get the random vectors of this layer, scaled to the variance
        of those that are given (Kim 2014, section 4.1).

        Args:
            ids: int array `(num_given,)`. Words, each once.
            vectors: float array `(num_given, vector_dim)`.

        Raises:
            ValueError: if the vectors are of another width or number.
        """
        vectors, shape = np.asarray(vectors, "float32"), (len(ids), self.vector_dim)
        if vectors.shape != shape:
            raise ValueError(
                f"`vectors` must have the shape {shape}, a row for each of `ids`. "
                f"Received: shape {vectors.shape}."
            )
        limit = np.sqrt(3.0 * vectors.var())
        table = self.tables[0].numpy() * (limit / INITIAL)
        table[np.asarray(ids)] = vectors
        for own in self.tables:
            own.assign(table)

    def compute_output_shape(self, token_ids_shape):
        return (*token_ids_shape, self.vector_dim * len(CHANNELS[self.channels]))

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "vector_dim": self.vector_dim,
            "channels": self.channels,
        }
