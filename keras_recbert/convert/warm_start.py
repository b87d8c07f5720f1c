"""Puts the weights of a checkpoint into an encoder, recurrent or not."""

import re
import warnings

import numpy as np

from keras_recbert.convert.checkpoint import LEVELS, POOLER, CheckpointError
from keras_recbert.convert.from_feed_forward import (
    lstm_from_feed_forward,
    swish_from_feed_forward,
)
from keras_recbert.convert.weights_report import WeightsReport, warn_of_unused

BIAS = "/relative_attention_bias"
NEXT_SENTENCE = "next_sentence_head/"  # there with concatenate="next_sentence"
POSITIONS = "embeddings/position_embedding/embeddings"
# Sizes that may be smaller than the checkpoint's, if the caller says so: its first
# layers and its first positions are taken.
PREFIXES = ("num_layers", "max_sequence_length")


def check_sizes(name, config, named, checkpoint):
    """Checks that an encoder can take the weights of a checkpoint.

    Args:
        name: str. What messages call the encoder.
        config: dict. Arguments of the encoder, defaults filled in.
        named: set of str, the sizes that the caller named.
        checkpoint: `Checkpoint`.

    Raises:
        CheckpointError: if a size differs, showing both; if the blocks of the
            checkpoint are recurrent and of another kind.
    """
    if checkpoint.block not in ("transformer", config["block"]):
        raise CheckpointError(
            f"{checkpoint.path} holds an encoder of {checkpoint.block!r} blocks; "
            f"{name} has {config['block']!r} blocks. Only a plain BERT can start "
            "another kind of encoder."
        )
    theirs, ours = (bool(x.get("causal")) for x in (checkpoint.sizes, config))
    if theirs != ours:
        ways = {False: "both ways", True: "from left to right (causal=True)"}
        raise CheckpointError(
            f"{checkpoint.path} was trained to read {ways[theirs]}; {name} reads "
            f"{ways[ours]}."
        )
    differing = []
    for size, theirs in checkpoint.sizes.items():
        ours = config.get(size, theirs)
        prefix = size in PREFIXES and size in named and ours < theirs
        added = size == "relative_attention_bias" and ours  # starts at zero
        if ours != theirs and not (prefix or added or size in LEVELS):
            differing.append((size, ours, theirs))
    if not differing:
        return
    rows = "\n".join(
        f"  {size}: {ours} in {name}, {theirs} in the checkpoint"
        for size, ours, theirs in differing
    )
    overrides = ", ".join(f"{size}={theirs}" for size, _, theirs in differing)
    advice = f"Build it with {overrides}"
    for size, ours, theirs in differing:
        if size in PREFIXES and ours < theirs:
            advice += f"; {size}={ours}, said aloud, takes the first {ours} of {theirs}"
    if checkpoint.name is not None:
        advice += f"; or build {checkpoint.name!r}, by which it was made"
    raise CheckpointError(
        f"{name} has other sizes than {checkpoint.path} ({checkpoint.sizes_from}):\n"
        f"{rows}\n{advice}; or choose a name of the zoo that fits."
    )


def load_weights(encoder, checkpoint):
    """Fills an encoder with the weights of a checkpoint.

    Weights that the checkpoint has are copied. Where the encoder has recurrent parts
    that a BERT has not, these start so that they change as little as they can:

    - TRANS-BLSTM (variant 2): the projection behind the BiLSTM starts at zero, so
      the outputs are BERT's. All else in it gets gradient once the projection has
      moved, after the first step.
    - Half width (`recurrent_dim = hidden_dim / 2`): there is no projection, so the
      weights of the LSTM's candidate `g` start at zero. Then the cell stays 0, and the
      outputs are BERT's.
    - Variant 1 and SwishRNN have no feed-forward sub-layer; what replaces it starts
      as the strongest of its units, see `lstm_from_feed_forward` and
      `swish_from_feed_forward`. (Variant 1 of half width, without a projection, cannot:
      its LSTM adds nothing at the start.)
    - A relative attention bias starts at zero.
    - BLSTM: embeddings and pooler are copied, the blocks are new.

    Args:
        encoder: `RecBertBackbone`, built, of sizes that `check_sizes` allows.
        checkpoint: `Checkpoint`.

    Returns:
        `WeightsReport`.

    Raises:
        CheckpointError: if a weight is missing or damaged.
    """
    same_blocks = encoder.config["block"] == checkpoint.block
    copied, adapted, new = {}, {}, {}
    for weight in encoder.weights:
        path = weight.path
        if _has(checkpoint, path, encoder):
            value = checkpoint.weight(path)
            names = checkpoint.origins[path].names
            rows = weight.shape[0]
            if path == POSITIONS and rows < len(value):
                adapted[path] = names, f"the first {rows} of {len(value)} rows"
                value = value[:rows]
            else:
                copied[path] = names
            if value.shape != tuple(weight.shape):
                raise CheckpointError(
                    f"{checkpoint.files[names[0]]}: {names[0]!r} makes a weight of the "
                    f"shape {value.shape}. By {checkpoint.sizes_from} it must be "
                    f"{tuple(weight.shape)}."
                )
            weight.assign(value)
        elif path in POOLER:
            new[path] = "random: the checkpoint has no pooler"
        elif not _may_be_new(checkpoint, path, encoder):
            raise CheckpointError(
                f"{checkpoint.path} has nothing for the weight {path!r} of the "
                f"encoder, shape {tuple(weight.shape)}."
            )
        else:
            value, new[path] = _start(path, weight, encoder)
            weight.assign(value)
    if not same_blocks:
        for path, (names, how) in _from_feed_forward(encoder, checkpoint).items():
            if names:
                del new[path]
                adapted[path] = names, how
            else:
                new[path] = how
    used = {name for names in copied.values() for name in names}
    used |= {name for names, _ in adapted.values() for name in names}
    _check_all_used(encoder, checkpoint, used, same_blocks)
    if any(path in new for path in POOLER):
        warnings.warn(
            f"{checkpoint.path} has no pooler, so `pooled_output` starts random. "
            "pooling='mean' does without it.",
            stacklevel=3,
        )
    report = WeightsReport(
        path=checkpoint.path,
        format=checkpoint.format,
        copied=copied,
        adapted=adapted,
        new=new,
        unused=tuple(name for name in checkpoint.shapes if name not in used),
        note=checkpoint.note,
    )
    warn_of_unused(report, checkpoint)
    return report


def _has(checkpoint, path, encoder):
    if encoder.config["block"] == "blstm" and checkpoint.block != "blstm":
        # Its LayerNorms have the names of a BERT's, but stand behind other things.
        return path in checkpoint.origins and not path.startswith("block_")
    return path in checkpoint.origins


def _may_be_new(checkpoint, path, encoder):
    """Whether a weight is of a part that the encoder of the checkpoint has not."""
    if path.startswith(NEXT_SENTENCE):
        return checkpoint.sizes.get("concatenate") != "next_sentence"
    if checkpoint.block != "transformer":
        return False
    if path.endswith(BIAS):
        return not checkpoint.sizes.get("relative_attention_bias")
    recurrent = "/bidirectional_lstm/", "/projection/", "/swish_rnn/"
    in_blstm = encoder.config["block"] == "blstm" and path.startswith("block_")
    return in_blstm or any(part in path for part in recurrent)


def _from_feed_forward(encoder, checkpoint):
    """Fills what stands in the place of the feed-forward sub-layers."""
    report = {}
    for index, block in enumerate(encoder.blocks):
        name = f"block_{index}"
        if encoder.config["block"] == "swish_rnn":
            report |= swish_from_feed_forward(checkpoint, name, block.feed_forward)
        elif encoder.config["block"] == "trans_blstm_1" and block.projection:
            report |= lstm_from_feed_forward(
                checkpoint, name, block.bidirectional_lstm, block.projection
            )
    return report


def _start(path, weight, encoder):
    """Value of a weight that no BERT has, and how it starts, in words."""
    value = weight.numpy()
    if path.endswith(BIAS):
        return np.zeros_like(value), "zero: no bias at the start"
    if "/projection/" in path and encoder.config["block"] == "trans_blstm":
        return np.zeros_like(value), "zero: the LSTM adds nothing at the start"
    if "/bidirectional_lstm/" in path and encoder.blocks[0].projection is None:
        units = encoder.blocks[0].bidirectional_lstm.units
        gates = value.reshape(*value.shape[:-1], -1, 4, units)
        gates[..., 2, :] = 0.0
        return gates.reshape(value.shape), (
            "random, but zero for the candidate g: the LSTM adds nothing at the start"
        )
    return value, "as in a model that is built anew"


def _check_all_used(encoder, checkpoint, used, same_blocks):
    """Raises if a weight found no place that does not go with the kind of block."""
    for path, origin in checkpoint.origins.items():
        layer = re.match(r"block_(\d+)/", path)
        above = layer and int(layer[1]) >= encoder.config["num_layers"]
        needed = same_blocks or path.endswith(BIAS)
        if path.startswith(NEXT_SENTENCE):
            needed = encoder.config["concatenate"] == "next_sentence"
        if needed and not above and not used.issuperset(origin.names):
            raise CheckpointError(
                f"{checkpoint.path} holds {origin.names[0]!r} ({path}), for which the "
                "encoder has no place. Build the encoder with the arguments it was "
                "saved with."
            )
