"""The one encoder class that every name of the zoo builds."""

import keras
from keras import ops

from keras_recbert.blocks import get_block, list_blocks
from keras_recbert.core.checks import check_positive, check_rate
from keras_recbert.layers.bert_embeddings import BertEmbeddings
from keras_recbert.layers.common import bert_initializer
from keras_recbert.models.encoder import Encoder, register_encoder
from keras_recbert.models.encoder_names import NEXT_SENTENCE
from keras_recbert.models.gradient_checkpointing import checkpoint_gradients
from keras_recbert.models.memory_estimate import activations_at_least, check_weights
from keras_recbert.ops.implementation import check_implementation

SHARED_ARGUMENTS = (
    "num_layers",
    "hidden_dim",
    "vocabulary_size",
    "max_sequence_length",
    "num_segments",
    "dropout",
    "gradient_checkpointing",
    "implementation",
    "pretrained_heads",
    "pooled_layers",
)
POOLED_LAYERS = ("last", "all")
CONCATENATIONS = (None, "cls", NEXT_SENTENCE)


@register_encoder
@keras.saving.register_keras_serializable("keras_recbert")
class RecBertEncoder(Encoder):
    """A BERT encoder whose blocks may be recurrent.

    Embeddings, `num_layers` blocks of one kind, and BERT's pooler: `tanh(h W + b)`
    of the first token (Devlin et al. 2018, section 3). With `causal=True` the first
    token sees nothing but itself, so the last real token is pooled. With
    `pooled_layers="all"` the pooler reads the mean of that token over all blocks (Liu
    2020, section 4.1.3).

    Call arguments, a dict of int tensors `(batch_size, sequence_length)`:
        token_ids: ids of word pieces.
        segment_ids: 0 for the first text, 1 for the second.
        padding_mask: 1 = token, 0 = padding (at the end of a row).

    Returns, a dict:
        sequence_output: float, `(batch_size, sequence_length, hidden_dim)`.
        pooled_output: float, `(batch_size, hidden_dim)`.
        encoder_outputs: list of the outputs of the blocks, one a layer, each
            `(batch_size, sequence_length, hidden_dim)`.
    They carry no mask of Keras: what reads `sequence_output` takes `padding_mask` too.

    Args:
        block: str. Kind of block: `"transformer"`, `"swish_rnn"`,
            `"swish_rnn_only"` (no attention), `"trans_blstm"` (variant 2),
            `"trans_blstm_half"` (variant 2 with `hidden_dim / 2` units a direction and
            no projection), `"trans_blstm_1"`, `"blstm"`, or one of your own, see
            `keras_recbert.blocks.BlockKind`.
        num_layers: int. Number of blocks.
        hidden_dim: int. Width of the encoder.
        vocabulary_size: int. Number of word pieces.
        max_sequence_length: int. Number of learned positions.
        num_segments: int. Number of segments.
        dropout: float. Dropout rate of embeddings, attention weights and sub-layers.
        gradient_checkpointing: bool. Keeps only the inputs of the blocks for the
            backward pass of training, which runs each block again: less memory, more
            time, the same numbers.
        implementation: str. How the layers compute: `"auto"`, `"reference"`, `"loop"`
            or `"xla"`, see `keras_recbert.ops.implementation`. The same numbers;
            `recbert explain` says what runs.
        pretrained_heads: dict of the name of a pre-training objective to a dict of
            `layer`, the block that its head read, from 1 (None, the last), and
            `concatenate`, what it read beside each token. `Pretrainer` sets it; heads
            of tasks read where these did (Aksoy et al. 2020, section 3, figure 3).
            With `concatenate="next_sentence"` the encoder has a `next_sentence_head`.
        pooled_layers: str. What `pooled_output` is made of: `"last"`, the last block;
            `"all"`, the mean of all blocks. Heads of texts then read it by default
            (`pooling="first"`); of a lower `layer` they read that block alone.
        num_heads: int. Number of attention heads. Default: one for each 64 of
            `hidden_dim`.
        intermediate_dim: int. Width of the feed-forward sub-layer. Default:
            `4 * hidden_dim`.
        recurrent_dim: int. State of the recurrence. Default: `8 / 3 * hidden_dim`,
            up to a multiple of 32, for SwishRNN (as many weights as a feed-forward
            sub-layer); `hidden_dim` for an LSTM direction.
        step_size: int, or sequence of int. SwishRNN's distance to the state read;
            a sequence is interleaved across the layers (Lei et al. 2022, 2.2).
        gate: str. SwishRNN's gate, `"gelu"` or `"sigmoid"`.
        relative_attention_bias: bool. T5's bias in every layer; always on with
            SwishRNN.
        causal: bool. Left-to-right attention.

    Raises:
        ValueError: if an argument does not fit the kind of block, or a size is
            impossible; for `pretrained_heads` above the last block.
    """

    def __init__(
        self,
        block="transformer",
        num_layers=12,
        hidden_dim=768,
        vocabulary_size=30522,
        max_sequence_length=512,
        num_segments=2,
        dropout=0.1,
        gradient_checkpointing=False,
        implementation="auto",
        pretrained_heads=None,
        pooled_layers="last",
        dtype=None,
        name=None,
        **block_arguments,
    ):
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
        config = {
            "block": block,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "vocabulary_size": vocabulary_size,
            "max_sequence_length": max_sequence_length,
            "num_segments": num_segments,
            "dropout": dropout,
            "gradient_checkpointing": gradient_checkpointing,
            "implementation": implementation,
            "pretrained_heads": pretrained_heads,
            "pooled_layers": pooled_layers,
            **get_block(block).complete(hidden_dim, block_arguments),
        }
        _check_config(config)
        check_weights(config, policy)
        embeddings, blocks, pool, pooler = _make_layers(config, policy)
        inputs = {
            key: keras.Input((None,), dtype="int32", name=key)
            for key in ("token_ids", "segment_ids", "padding_mask")
        }
        hidden = embeddings(inputs["token_ids"], inputs["segment_ids"])
        encoder_outputs = []
        for layer in blocks:
            hidden = layer(hidden, padding_mask=inputs["padding_mask"])
            encoder_outputs.append(hidden)
        read = encoder_outputs if pooled_layers == "all" else [hidden]
        first = [pool(output, inputs["padding_mask"]) for output in read]
        if len(first) > 1:
            first = [keras.layers.Average(dtype=policy, name="mean_of_blocks")(first)]
        outputs = {
            "sequence_output": hidden,
            "pooled_output": pooler(first[0]),
            "encoder_outputs": encoder_outputs,
        }
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.embeddings = embeddings
        self.blocks = blocks
        self.pool_token = pool
        self.pooler = pooler
        self.config = config
        self.policy = policy
        if pooled_layers == "all":
            self.fine_tuning = {"pooling": "first"}
        self.set_pretrained_heads(pretrained_heads)

    def set_pretrained_heads(self, pretrained_heads):
        """Notes where the heads of its pre-training read; adds a head that others read.

        Args:
            pretrained_heads: as for the constructor.
        """
        self.config["pretrained_heads"] = pretrained_heads
        heads = self.pretrained_heads.values()
        if any(head["concatenate"] == NEXT_SENTENCE for head in heads):
            self.add_next_sentence_head()

    def add_next_sentence_head(self):
        """Adds a next sentence head, unless there is one.

        The classifier of BERT's second objective (Devlin et al. 2018, section 3.3.2).
        """
        if self.next_sentence_head is None:
            head = make_next_sentence_head()
            head.build((None, self.hidden_dim))
            self.next_sentence_head = head

    def save_huggingface(self, directory, overwrite=False):
        """Writes a plain BERT into a folder that Hugging Face's `transformers` loads.

        See `keras_recbert.convert.huggingface.write_huggingface`.

        Raises:
            ValueError: if the encoder is no plain BERT.
        """
        from keras_recbert.convert.huggingface import write_huggingface

        write_huggingface(self, directory, self.preprocessor, overwrite)

    @classmethod
    def arguments(cls, sizes=None):
        """Names of the arguments; by default with those of every kind of block."""
        kinds = list_blocks() if sizes is None else [sizes["block"]]
        own = [name for kind in kinds for name in get_block(kind).arguments]
        return tuple(dict.fromkeys((*SHARED_ARGUMENTS, *own)))

    def activations_at_least(self, num_tokens, num_pairs):
        return activations_at_least(self.config, num_tokens, num_pairs)

    @property
    def hidden_dim(self):
        return self.config["hidden_dim"]


def _check_config(config):
    """Raises `ValueError` for arguments that every kind of block has."""
    sizes = ("num_layers", "vocabulary_size", "max_sequence_length", "num_segments")
    check_positive(**{name: config[name] for name in sizes})
    check_rate(dropout=config["dropout"])
    if not isinstance(config["gradient_checkpointing"], bool):
        raise ValueError(
            "`gradient_checkpointing` must be True or False. Received: "
            f"gradient_checkpointing={config['gradient_checkpointing']!r}."
        )
    check_implementation(config["implementation"])
    check_pretrained_heads(config["pretrained_heads"], config["num_layers"])
    if config["pooled_layers"] not in POOLED_LAYERS:
        raise ValueError(
            f"`pooled_layers` must be one of {', '.join(map(repr, POOLED_LAYERS))}. "
            f"Received: pooled_layers={config['pooled_layers']!r}."
        )


def _make_layers(config, policy):
    """The layers of an encoder: embeddings, list of blocks, token pooling, pooler."""
    shared = {
        "dropout": config["dropout"],
        "implementation": config["implementation"],
        "dtype": policy,
    }
    embeddings = BertEmbeddings(
        config["vocabulary_size"],
        config["hidden_dim"],
        config["max_sequence_length"],
        config["num_segments"],
        name="embeddings",
        **shared,
    )
    kind = get_block(config["block"])
    blocks = [
        kind.make_layer(config, index, name=f"block_{index}", **shared)
        for index in range(config["num_layers"])
    ]
    if config["gradient_checkpointing"]:
        for layer in blocks:
            checkpoint_gradients(layer)
    pool = PoolToken(last=bool(config.get("causal")), dtype=policy, name="pool_token")
    pooler = keras.layers.Dense(
        config["hidden_dim"],
        activation="tanh",
        kernel_initializer=bert_initializer(),
        dtype=policy,
        name="pooler",
    )
    return embeddings, blocks, pool, pooler


@keras.saving.register_keras_serializable("keras_recbert")
class PoolToken(keras.layers.Layer):
    """Takes the first token of each row, or the last real one.

    Args:
        last: bool. Takes the last token whose mask is 1; the first one of a row
            that is all padding.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: int, `(batch_size, sequence_length)`, 1s before 0s.

    Returns:
        float, `(batch_size, hidden_dim)`.
    """

    def __init__(self, last=False, **kwargs):
        super().__init__(**kwargs)
        self.last = last

    def call(self, inputs, padding_mask):
        if not self.last:
            return inputs[:, 0]
        index = ops.sum(ops.cast(padding_mask, "int32"), axis=1) - 1
        index = ops.maximum(index, 0)[:, None, None]
        return ops.take_along_axis(inputs, index, axis=1)[:, 0]

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (inputs_shape[0], inputs_shape[-1])

    def get_config(self):
        return {**super().get_config(), "last": self.last}


def make_next_sentence_head():
    """The classifier of BERT's second objective (Devlin et al. 2018, section 3.3.2).

    Float32 logits in every precision: 0, the second text follows the first; 1, it
    does not.
    """
    return keras.layers.Dense(
        2, kernel_initializer=bert_initializer(), dtype="float32", name=NEXT_SENTENCE
    )


def check_pretrained_heads(heads, num_layers):
    """Raises `ValueError` unless `heads` are as `RecBertEncoder` takes them."""
    if heads is None:
        return
    valid = isinstance(heads, dict) and all(
        isinstance(head, dict) and set(head) == {"layer", "concatenate"}
        for head in heads.values()
    )
    if not valid:
        raise ValueError(
            "`pretrained_heads` must be a dict of names of objectives to dicts of "
            f"`layer` and `concatenate`. Received: pretrained_heads={heads!r}."
        )
    for name, head in heads.items():
        layer = head["layer"]
        if layer is not None:
            check_positive(layer=layer)
        if layer is not None and layer > num_layers:
            raise ValueError(
                f"The encoder was pre-trained with the head of {name} at block "
                f"{layer}, which must be from 1 to {num_layers}. Received: "
                f"num_layers={num_layers}, pretrained_heads={heads!r}."
            )
        if head["concatenate"] not in CONCATENATIONS:
            raise ValueError(
                "`concatenate` must be one of None, 'cls', 'next_sentence'. "
                f"Received: {name} with concatenate={head['concatenate']!r}."
            )
