"""A BiLSTM on word vectors: the baseline of the papers, and a student of a BERT."""

import keras
from keras import ops

from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.common import relu_layer
from keras_recbert.layers.dropout import Dropout
from keras_recbert.layers.final_states import FinalStates
from keras_recbert.layers.word_embeddings import CHANNELS, WordEmbeddings
from keras_recbert.models.encoder import Encoder, register_encoder
from keras_recbert.models.memory_estimate import check_fits


@register_encoder
@keras.saving.register_keras_serializable("keras_recbert")
class WordBiLSTMEncoder(Encoder):
    """Word vectors, BiLSTMs, and a ReLU of their final states.

    Tang et al. 2019 (arXiv:1903.12136), section 3.1; Liu 2020, section 3.1.2: of the
    final states `h_s` of both directions, concatenated (equation 3.1),

        pooled = relu(W h_s + b)

    A pair is read as one row. With `siamese=True` the same BiLSTM reads each text by
    itself, and (equation 3.2)

        h_s = [h_1, h_2, h_1 * h_2, |h_1 - h_2|]

    `[CLS]` and `[SEP]` are read as words, which the papers leave out. Dropout is ours,
    too: on the word vectors and between two BiLSTMs.

    Inputs, outputs: as of `Encoder`. `sequence_output` is 2 * `recurrent_dim` wide,
    `pooled_output` `pooled_dim`; `encoder_outputs` has the outputs of each BiLSTM, and
    is missing with `siamese`.

    Args:
        num_layers: int. Number of BiLSTMs.
        recurrent_dim: int. State of each direction.
        vocabulary_size: int. Number of words.
        vector_dim: int. Width of the word vectors.
        channels: str. `"static"`, `"non_static"` or `"multichannel"`, see
            `WordEmbeddings`.
        pooled_dim: int. Width of `pooled_output`; None, no ReLU layer: heads may have
            one each, see `relu_units`.
        siamese: bool. Reads the texts of a pair apart. A single text then is one whose
            second text is empty; heads of tokens see nothing of the other text.
        max_sequence_length: int. The most words of a row. The encoder has no table of
            positions: more cost time and memory only.
        dropout: float. Dropout rate.
        implementation: str. See `keras_recbert.ops.implementation`.

    Raises:
        ValueError: if an argument is out of range, or the word vectors do not fit in
            memory.
    """

    tokenizer = "WordTokenizer"
    reads_words = True
    packs_rows = True
    # AdamW at the rate of BERT would leave random vectors near where they were drawn.
    fine_tuning = {"learning_rate": 1e-3, "pooling": "first"}
    test_sizes = {"num_layers": 1, "recurrent_dim": 5, "vector_dim": 7, "pooled_dim": 6}

    def __init__(
        self,
        num_layers=1,
        recurrent_dim=150,
        vocabulary_size=30522,
        vector_dim=300,
        channels="non_static",
        pooled_dim=200,
        siamese=False,
        max_sequence_length=512,
        dropout=0.1,
        implementation="auto",
        dtype=None,
        name=None,
    ):
        config = {
            "num_layers": num_layers,
            "recurrent_dim": recurrent_dim,
            "vocabulary_size": vocabulary_size,
            "vector_dim": vector_dim,
            "channels": channels,
            "pooled_dim": pooled_dim,
            "siamese": siamese,
            "max_sequence_length": max_sequence_length,
            "dropout": dropout,
            "implementation": implementation,
        }
        _check(config)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        embeddings = WordEmbeddings(
            vocabulary_size, vector_dim, channels, dtype=policy, name="embeddings"
        )
        blocks = [
            BidirectionalLSTM(
                recurrent_dim, implementation, dtype=policy, name=f"block_{index}"
            )
            for index in range(num_layers)
        ]
        pool = FinalStates(dtype=policy, name="final_states")
        pooler = relu_layer(pooled_dim, policy, "pooler")

        inputs = {
            key: keras.Input((None,), dtype="int32", name=key)
            for key in ("token_ids", "segment_ids", "padding_mask")
        }
        masks = _masks(inputs, siamese)
        hidden, encoder_outputs = embeddings(inputs["token_ids"]), []
        for layer in blocks:
            hidden = Dropout(dropout, implementation, dtype=policy)(hidden)
            # Each half is 0 where the other is.
            halves = [layer(hidden, padding_mask=mask) for mask in masks]
            hidden = keras.layers.Add(dtype=policy)(halves) if siamese else halves[0]
            encoder_outputs.append(hidden)
        states = [pool(hidden, mask) for mask in masks]
        states = _compared(*states) if siamese else states[0]
        outputs = {"sequence_output": hidden, "pooled_output": pooler(states)}
        if not siamese:
            outputs["encoder_outputs"] = encoder_outputs
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.config, self.policy = config, policy
        self.embeddings, self.blocks, self.pooler = embeddings, blocks, pooler
        if not siamese:
            self.pool_token = pool  # with the pooler what heads read of lower blocks

    @property
    def hidden_dim(self):
        """Width of `sequence_output`."""
        return 2 * self.config["recurrent_dim"]

    def activations_at_least(self, num_tokens, num_pairs):
        config = self.config
        kept = config["num_layers"] * 10 * config["recurrent_dim"]  # gates and states
        return int(num_tokens * (kept + config["vector_dim"]))


def _check(config):
    """Raises `ValueError` for arguments that no encoder of this class can have."""
    sizes = ("num_layers", "recurrent_dim", "vocabulary_size", "vector_dim")
    sizes += ("max_sequence_length",)
    if config["pooled_dim"] is not None:
        sizes += ("pooled_dim",)
    check_positive(**{name: config[name] for name in sizes})
    check_rate(dropout=config["dropout"])
    if not isinstance(config["siamese"], bool):
        raise ValueError(
            f"`siamese` must be True or False. Received: siamese={config['siamese']!r}."
        )
    numbers = config["vocabulary_size"] * config["vector_dim"]
    numbers *= len(CHANNELS.get(config["channels"], ()))
    check_fits(4 * numbers, "The word vectors need", "words")


def _masks(inputs, siamese):
    """What each pass of the BiLSTMs reads: all, or the first and the second text."""
    mask = inputs["padding_mask"]
    if not siamese:
        return [mask]
    second = mask * inputs["segment_ids"]
    return [mask - second, second]


def _compared(first, second):
    """The texts of a pair, their product and their distance (Liu 2020, eq. 3.2)."""
    distance = ops.absolute(first - second)
    return ops.concatenate([first, second, first * second, distance], axis=-1)
