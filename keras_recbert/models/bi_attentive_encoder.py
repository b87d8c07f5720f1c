"""Two BiLSTMs with attention between two texts: a student of a BERT."""

import keras

from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.bi_attentive_student import BiAttentiveStudent
from keras_recbert.layers.common import relu_layer
from keras_recbert.layers.dropout import Dropout
from keras_recbert.layers.word_embeddings import CHANNELS, WordEmbeddings
from keras_recbert.models.encoder import Encoder, register_encoder
from keras_recbert.models.memory_estimate import check_fits


@register_encoder
@keras.saving.register_keras_serializable("keras_recbert")
class BiAttentiveEncoder(Encoder):
    """MKD-LSTM: word pieces, `BiAttentiveStudent`, and a fully-connected layer.

    Liu 2020, sections 4.1.2 and 4.3.2; Liu et al. 2019 (arXiv:1911.03588). The texts
    of a pair are read apart, each with a look at the other; a single text is read as
    both. `[CLS]` and `[SEP]` are read as words. Ours is the dropout on the vectors.

    Inputs, outputs: as of `Encoder`. `sequence_output` has the states of the first
    BiLSTM, `2 * recurrent_dim` wide, and so has `encoder_outputs`; `pooled_output` is
    `pooled_dim` wide: `relu(W [x_pool, y_pool] + b)`, the layer of each task in section
    4.2, which one student of several tasks has in its heads: `pooled_dim=None`.

    Args:
        recurrent_dim: int. State of each direction of the BiLSTMs.
        projection_dim: int. Width of the ReLU layer below them.
        vocabulary_size: int. Number of word pieces.
        vector_dim: int. Width of their vectors, which the thesis leaves open.
        channels: str. `"static"`, `"non_static"` or `"multichannel"`, see
            `WordEmbeddings`.
        pooled_dim: int. Width of `pooled_output`; None, no ReLU layer: heads may have
            one each, see `relu_units`.
        max_sequence_length: int. The most tokens of a row. The encoder has no table of
            positions: more cost time and memory only.
        dropout: float. Dropout rate.
        implementation: str. See `keras_recbert.ops.implementation`.

    Raises:
        ValueError: if an argument is out of range, or the vectors do not fit in memory.
    """

    takes_vectors = True
    # AdamW at the rate of BERT would leave random vectors near where they were drawn.
    fine_tuning = {"learning_rate": 1e-3, "pooling": "first"}
    test_sizes = {
        "recurrent_dim": 5,
        "projection_dim": 7,
        "vector_dim": 6,
        "pooled_dim": 8,
    }

    def __init__(
        self,
        recurrent_dim=256,
        projection_dim=300,
        vocabulary_size=30522,
        vector_dim=300,
        channels="non_static",
        pooled_dim=512,
        max_sequence_length=512,
        dropout=0.1,
        implementation="auto",
        dtype=None,
        name=None,
    ):
        config = {
            "recurrent_dim": recurrent_dim,
            "projection_dim": projection_dim,
            "vocabulary_size": vocabulary_size,
            "vector_dim": vector_dim,
            "channels": channels,
            "pooled_dim": pooled_dim,
            "max_sequence_length": max_sequence_length,
            "dropout": dropout,
            "implementation": implementation,
        }
        _check(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embeddings = WordEmbeddings(
            vocabulary_size, vector_dim, channels, dtype=policy, name="embeddings"
        )
        student = BiAttentiveStudent(
            recurrent_dim,
            projection_dim,
            implementation,
            return_sequences=True,
            dtype=policy,
            name="block_0",
        )
        pooler = relu_layer(pooled_dim, policy, "pooler")
        inputs = {
            key: keras.Input((None,), dtype="int32", name=key)
            for key in ("token_ids", "segment_ids", "padding_mask")
        }
        vectors = embeddings(inputs["token_ids"])
        vectors = Dropout(dropout, implementation, dtype=policy)(vectors)
        pooled, states = student(
            vectors,
            padding_mask=inputs["padding_mask"],
            segment_ids=inputs["segment_ids"],
        )
        outputs = {
            "sequence_output": states,
            "pooled_output": pooler(pooled),
            "encoder_outputs": [states],
        }
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.config, self.policy = config, policy
        self.embeddings, self.blocks, self.pooler = embeddings, [student], pooler

    @property
    def hidden_dim(self):
        """Width of `sequence_output`."""
        return 2 * self.config["recurrent_dim"]

    def activations_at_least(self, num_tokens, num_pairs):
        config = self.config
        # Gates and states of four passes of a BiLSTM; scores and weights of the texts.
        kept = 4 * 10 * config["recurrent_dim"] + config["vector_dim"]
        return int(num_tokens * kept + 2 * num_pairs)


def _check(config):
    """Raises `ValueError` for arguments that no encoder of this class can have."""
    sizes = ("recurrent_dim", "projection_dim", "vocabulary_size", "vector_dim")
    sizes += ("max_sequence_length",)
    if config["pooled_dim"] is not None:
        sizes += ("pooled_dim",)
    check_positive(**{name: config[name] for name in sizes})
    check_rate(dropout=config["dropout"])
    numbers = config["vocabulary_size"] * config["vector_dim"]
    numbers *= len(CHANNELS.get(config["channels"], ()))
    check_fits(4 * numbers, "The word vectors need", "words")


@register_encoder
@keras.saving.register_keras_serializable("keras_recbert")
class BiAttentiveWordEncoder(BiAttentiveEncoder):
    """`BiAttentiveEncoder` that reads words, not word pieces (Liu 2020, table 4.2).

    Arguments, inputs and outputs are those of `BiAttentiveEncoder`, with words for word
    pieces.
    """

    tokenizer = "WordTokenizer"
    reads_words = True
