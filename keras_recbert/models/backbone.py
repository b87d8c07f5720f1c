"""The one encoder class that every name of the zoo builds."""

import keras
from keras import ops

from keras_recbert.convert.huggingface import write_huggingface
from keras_recbert.convert.preset import write_preset
from keras_recbert.layers.bert_embeddings import BertEmbeddings
from keras_recbert.layers.blstm_block import BLSTMBlock
from keras_recbert.layers.common import bert_initializer, check_positive, check_rate
from keras_recbert.layers.swish_rnn_block import SwishRNNBlock
from keras_recbert.layers.trans_blstm_block import TransBLSTMBlock
from keras_recbert.layers.transformer_block import TransformerBlock
from keras_recbert.models.gradient_checkpointing import checkpoint_gradients
from keras_recbert.models.registry import nearest
from keras_recbert.ops.implementation import check_implementation

# What each kind of block takes beside the arguments that all kinds share.
BLOCK_ARGUMENTS = {
    "transformer": (
        "num_heads",
        "intermediate_dim",
        "relative_attention_bias",
        "causal",
    ),
    "swish_rnn": ("num_heads", "recurrent_dim", "step_size", "gate"),
    "trans_blstm": ("num_heads", "intermediate_dim", "recurrent_dim"),
    "trans_blstm_half": ("num_heads", "intermediate_dim"),
    "trans_blstm_1": ("num_heads", "recurrent_dim"),
    "blstm": ("recurrent_dim",),
}
SHARED_ARGUMENTS = (
    "num_layers",
    "hidden_dim",
    "vocabulary_size",
    "max_sequence_length",
    "num_segments",
    "dropout",
    "gradient_checkpointing",
    "implementation",
)


@keras.saving.register_keras_serializable("keras_recbert")
class RecBertBackbone(keras.Model):
    """A BERT encoder whose blocks may be recurrent.

    Embeddings, `num_layers` blocks of one kind, and BERT's pooler: `tanh(h W + b)`
    of the first token (Devlin et al. 2018, section 3). With `causal=True` the first
    token sees nothing but itself, so the last real token is pooled.

    Call arguments, a dict of int tensors `(batch_size, sequence_length)`:
        token_ids: ids of word pieces.
        segment_ids: 0 for the first text, 1 for the second.
        padding_mask: 1 = token, 0 = padding (at the end of a row).

    Returns, a dict:
        sequence_output: float, `(batch_size, sequence_length, hidden_dim)`.
        pooled_output: float, `(batch_size, hidden_dim)`.
        encoder_outputs: list of the outputs of the blocks, one a layer.

    Args:
        block: str. Kind of block: `"transformer"`, `"swish_rnn"`, `"trans_blstm"`
            (variant 2), `"trans_blstm_half"` (variant 2 with `hidden_dim / 2` units
            a direction and no projection), `"trans_blstm_1"` or `"blstm"`.
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
            impossible.
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
        dtype=None,
        name=None,
        **block_arguments,
    ):
        block_arguments = _complete(block, hidden_dim, block_arguments)
        check_positive(
            num_layers=num_layers,
            vocabulary_size=vocabulary_size,
            max_sequence_length=max_sequence_length,
            num_segments=num_segments,
        )
        check_rate(dropout=dropout)
        if not isinstance(gradient_checkpointing, bool):
            raise ValueError(
                "`gradient_checkpointing` must be True or False. Received: "
                f"gradient_checkpointing={gradient_checkpointing!r}."
            )
        check_implementation(implementation)
        policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())

        embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            num_segments,
            dropout,
            implementation,
            dtype=policy,
            name="embeddings",
        )
        arguments = {
            **block_arguments,
            "dropout": dropout,
            "implementation": implementation,
            "dtype": policy,
        }
        blocks = [
            _make_block(block, hidden_dim, index, dict(arguments))
            for index in range(num_layers)
        ]
        if gradient_checkpointing:
            for layer in blocks:
                checkpoint_gradients(layer)
        pooler = keras.layers.Dense(
            hidden_dim,
            activation="tanh",
            kernel_initializer=bert_initializer(),
            dtype=policy,
            name="pooler",
        )

        inputs = {
            key: keras.Input((None,), dtype="int32", name=key)
            for key in ("token_ids", "segment_ids", "padding_mask")
        }
        hidden = embeddings(inputs["token_ids"], inputs["segment_ids"])
        encoder_outputs = []
        for layer in blocks:
            hidden = layer(hidden, padding_mask=inputs["padding_mask"])
            encoder_outputs.append(hidden)
        pool = PoolToken(
            last=bool(block_arguments.get("causal")), dtype=policy, name="pool_token"
        )
        super().__init__(
            inputs=inputs,
            outputs={
                "sequence_output": hidden,
                "pooled_output": pooler(pool(hidden, inputs["padding_mask"])),
                "encoder_outputs": encoder_outputs,
            },
            name=name,
        )
        self.embeddings = embeddings
        self.blocks = blocks
        self.pooler = pooler
        self.config = {
            "block": block,
            "num_layers": num_layers,
            "hidden_dim": hidden_dim,
            "vocabulary_size": vocabulary_size,
            "max_sequence_length": max_sequence_length,
            "num_segments": num_segments,
            "dropout": dropout,
            "gradient_checkpointing": gradient_checkpointing,
            "implementation": implementation,
            **block_arguments,
        }
        self.policy = policy
        self.weights_report = None  # `build(weights=...)` says here what it loaded
        self.preprocessor = None

    @property
    def preprocessor(self):
        """`TextPreprocessor` of the encoder's vocabulary, or None."""
        return self._preprocessor

    @preprocessor.setter
    def preprocessor(self, preprocessor):
        # Past Keras, which would take it for a layer of the graph.
        object.__setattr__(self, "_preprocessor", preprocessor)

    def save_preset(self, directory, metrics=None, overwrite=False, **card):
        """Writes the encoder into a folder for `keras_recbert.load`.

        See `keras_recbert.convert.preset.write_preset`.
        """
        write_preset(self, directory, metrics, overwrite=overwrite, **card)

    def save_huggingface(self, directory, overwrite=False):
        """Writes a plain BERT into a folder that Hugging Face's `transformers` loads.

        See `keras_recbert.convert.huggingface.write_huggingface`.

        Raises:
            ValueError: if the encoder is no plain BERT.
        """
        write_huggingface(self, directory, self.preprocessor, overwrite)

    @property
    def hidden_dim(self):
        return self.config["hidden_dim"]

    @property
    def max_sequence_length(self):
        return self.config["max_sequence_length"]

    def get_config(self):
        return {
            **self.config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.policy),
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)


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


def complete_config(arguments):
    """Arguments of `RecBertBackbone` with the defaults of its kind of block.

    Raises:
        ValueError: if an argument does not fit the kind of block.
    """
    block, hidden_dim = arguments["block"], arguments["hidden_dim"]
    own = {k: v for k, v in arguments.items() if k in BLOCK_ARGUMENTS[block]}
    return {**arguments, **_complete(block, hidden_dim, own)}


def _complete(block, hidden_dim, arguments):
    """Checks the arguments of a kind of block and fills in its defaults."""
    if block not in BLOCK_ARGUMENTS:
        raise ValueError(
            f"`block` must be one of {tuple(BLOCK_ARGUMENTS)}. "
            f"Received: block={block!r}."
        )
    check_positive(hidden_dim=hidden_dim)
    valid = BLOCK_ARGUMENTS[block]
    check_arguments(f"a backbone of {block!r} blocks", arguments, valid)
    complete = {
        "num_heads": max(1, hidden_dim // 64),
        "intermediate_dim": 4 * hidden_dim,
        "recurrent_dim": hidden_dim,
        "relative_attention_bias": False,
        "causal": False,
        "step_size": 1,
        "gate": "gelu",
    }
    if block == "swish_rnn":
        # 2 d h (feed-forward, h = 4 d) equals 3 d r (SwishRNN) at r = 8 / 3 d.
        complete["recurrent_dim"] = 32 * -(-8 * hidden_dim // (3 * 32))
    complete = {key: complete[key] for key in valid} | arguments
    if block == "trans_blstm_half" and hidden_dim % 2:
        raise ValueError(
            "`hidden_dim` must be even: each direction of the LSTM has half of it. "
            f"Received: hidden_dim={hidden_dim}. Try hidden_dim={hidden_dim + 1}."
        )
    if "step_size" in complete:
        steps = complete["step_size"]
        steps = list(steps) if isinstance(steps, (list, tuple)) else [steps]
        if not steps:
            raise ValueError("`step_size` must name at least one step. Received: [].")
        for step in steps:
            check_positive(step_size=step)
        complete["step_size"] = steps
    return complete


def check_arguments(what, arguments, valid):
    """Raises `ValueError` for the first of `arguments` that is not `valid`."""
    for key, value in arguments.items():
        if key not in valid:
            raise ValueError(
                f"{what} takes no argument {key!r}. Received: {key}={value!r}. "
                f"{nearest(key, valid)}Valid: {', '.join(valid)}."
            )


def _make_block(block, hidden_dim, index, arguments):
    name = f"block_{index}"
    match block:
        case "transformer":
            return TransformerBlock(**arguments, name=name)
        case "swish_rnn":
            steps = arguments.pop("step_size")
            step_size = steps[index % len(steps)]
            return SwishRNNBlock(**arguments, step_size=step_size, name=name)
        case "trans_blstm":
            return TransBLSTMBlock(**arguments, name=name)
        case "trans_blstm_half":
            return TransBLSTMBlock(
                **arguments, recurrent_dim=hidden_dim // 2, name=name
            )
        case "trans_blstm_1":
            return TransBLSTMBlock(**arguments, variant=1, name=name)
        case "blstm":
            return BLSTMBlock(**arguments, name=name)
