"""Puts the weights of a checkpoint into an encoder, recurrent or not."""

import re
import warnings

import numpy as np

from keras_recbert.blocks import get_block
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.weights_report import WeightsReport, warn_of_unused
from keras_recbert.models.encoder_names import NEXT_SENTENCE, POOLER

BIAS = "/relative_attention_bias"
BERT_PARTS = ("attention/", "attention_norm/", "feed_forward/", "output_norm/")
POSITIONS = "embeddings/position_embedding/embeddings"
# Sizes that may be smaller than the checkpoint's, if the caller says so: its first
# layers and its first positions are taken.
PREFIXES = ("num_layers", "max_sequence_length")
# What heads read, which changes no weight.
READINGS = ("pretrained_heads", "pooled_layers")


def check_sizes(name, config, named, checkpoint):
    """Checks that an encoder can take the weights of a checkpoint.

    Args:
        name: str. What messages call the encoder.
        config: dict. Arguments of the encoder, defaults filled in.
        named: set of str, the sizes that the caller named, or a card on purpose.
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
        if ours != theirs and not (prefix or added or size in READINGS):
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
            advice += (
                f"; {size}={ours}, named explicitly, takes the first {ours} of {theirs}"
            )
    if checkpoint.name is not None:
        advice += f"; or build {checkpoint.name!r}, by which it was made"
    raise CheckpointError(
        f"{name} has other sizes than {checkpoint.path} ({checkpoint.sizes_from}):\n"
        f"{rows}\n{advice}; or choose a name of the zoo that fits."
    )


def load_weights(encoder, checkpoint):
    """Fills an encoder with the weights of a checkpoint.

    Weights that the checkpoint has are copied. What a BERT has not, each kind of block
    starts so that it changes as little as it can, see
    `keras_recbert.blocks.BlockKind.start_from_bert`; a relative attention bias starts
    at zero.

    Args:
        encoder: `RecBertEncoder`, built, of sizes that `check_sizes` allows.
        checkpoint: `Checkpoint`.

    Returns:
        `WeightsReport`.

    Raises:
        CheckpointError: if a weight is missing or damaged.
    """
    if checkpoint.encoder_class != "RecBertEncoder":
        return _copy_all(encoder, checkpoint)
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
            new[path] = "as in a model that is built anew"
            if path.endswith(BIAS):
                weight.assign(np.zeros(weight.shape))
                new[path] = "zero: no bias at the start"
    if not same_blocks:
        for path, (names, how) in _started_blocks(encoder, checkpoint).items():
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


def _copy_all(encoder, checkpoint):
    """Fills an encoder with the weights of an equal one."""
    for weight in encoder.weights:
        path, shape = weight.path, tuple(weight.shape)
        if (
            checkpoint.shapes.get(path) is None
            or tuple(checkpoint.shapes[path]) != shape
        ):
            raise CheckpointError(
                f"{checkpoint.path} has no weight {path!r} of the shape {shape}, but "
                f"{checkpoint.shapes.get(path, 'none')}."
            )
        weight.assign(checkpoint.read(path))
    paths = [weight.path for weight in encoder.weights]
    return WeightsReport(
        path=checkpoint.path,
        format=checkpoint.format,
        copied={path: (path,) for path in paths},
        adapted={},
        new={},
        unused=tuple(name for name in checkpoint.shapes if name not in paths),
    )


def _has(checkpoint, path, encoder):
    kind = encoder.config["block"]
    if kind != checkpoint.block and not get_block(kind).shares_bert_paths:
        return path in checkpoint.origins and not path.startswith("block_")
    return path in checkpoint.origins


def _may_be_new(checkpoint, path, encoder):
    """Whether a weight is of a part that the encoder of the checkpoint has not."""
    if path.startswith(f"{NEXT_SENTENCE}/"):
        return path not in checkpoint.origins
    if checkpoint.block != "transformer":
        return False
    if path.endswith(BIAS):
        return not checkpoint.sizes.get("relative_attention_bias")
    kind = encoder.config["block"]
    if kind == "transformer" or not path.startswith("block_"):
        return False
    is_bert = path.partition("/")[2].startswith(BERT_PARTS)
    return not (is_bert and get_block(kind).shares_bert_paths)


def _started_blocks(encoder, checkpoint):
    """Fills what a BERT's blocks have not, as the kind of block says."""
    kind, report = get_block(encoder.config["block"]), {}
    for layer in encoder.blocks:
        report |= kind.start_from_bert(layer, layer.name, checkpoint)
    return report


def _check_all_used(encoder, checkpoint, used, same_blocks):
    """Raises if a weight found no place that does not go with the kind of block."""
    for path, origin in checkpoint.origins.items():
        layer = re.match(r"block_(\d+)/", path)
        above = layer and int(layer[1]) >= encoder.config["num_layers"]
        needed = same_blocks or path.endswith(BIAS)
        if path.startswith(f"{NEXT_SENTENCE}/"):
            needed = encoder.next_sentence_head is not None
        if needed and not above and not used.issuperset(origin.names):
            raise CheckpointError(
                f"{checkpoint.path} holds {origin.names[0]!r} ({path}), for which the "
                "encoder has no place. Build the encoder with the arguments it was "
                "saved with."
            )
