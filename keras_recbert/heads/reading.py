"""Which output of an encoder a head reads."""

import dataclasses
from collections.abc import Iterable
from numbers import Integral

from keras_recbert.layers.mean_pooling import MeanPooling
from keras_recbert.models.encoder_outputs import EncoderOutputs

POOLINGS = ("mean", "first")
# Arguments of `choose_reading` that users name.
READING_ARGUMENTS = ("pooling", "layer", "combine", "concatenate")
ALL_BLOCKS = "all"
COMBINATIONS = ("concatenate", "sum", "weighted_sum")
CONCATENATIONS = ("none", "cls", "next_sentence")
# Heads of a pre-training that read tokens, the first of them where others read.
TOKEN_OBJECTIVES = ("masked_lm", "causal_lm", "bigram_shift")


@dataclasses.dataclass(frozen=True)
class Reading:
    """Which output of an encoder a head reads (Aksoy et al. 2020, section 3).

    Several layers are combined token by token (Devlin et al. 2018, section 5.4).

    Args:
        pooling: `"first"`, BERT's pooled output of the first token; `"mean"`, the mean
            over the real tokens; None, every token.
        layer: int. Block that is read, from 1; 0, the embeddings; None, the last
            block. Or a tuple of numbers, for several.
        concatenate: what stands behind each token: `"cls"`, `"next_sentence"` or
            None, see `EncoderOutputs.tokens`.
        sentence_layer: int. Block that `concatenate` reads; None, the last.
        combine: of several layers, one of `COMBINATIONS`; else None.
    """

    pooling: str | None = None
    layer: int | tuple[int, ...] | None = None
    concatenate: str | None = None
    sentence_layer: int | None = None
    combine: str | None = None

    def rows(self, outputs):
        """What is read: a row for each text, or one for each token.

        Args:
            outputs: `keras_recbert.models.encoder_outputs.EncoderOutputs`.

        Returns:
            float, `(batch_size, dim)`; without pooling `(batch_size, sequence_length,
            dim)`.
        """
        if self.pooling == "first":
            return outputs.pooled(self.layer)
        tokens = outputs.tokens(
            self.layer, self.concatenate, self.sentence_layer, self.combine
        )
        if self.pooling is None:
            return tokens
        pool = outputs.shared_layer(MeanPooling, "mean_pooling")
        return pool(tokens, outputs.inputs["padding_mask"])


def choose_reading(encoder, pooling, layer=None, concatenate=None, combine=None):
    """What a head of a task reads: where the encoder was pre-trained for it.

    Sentences are read where the head of next_sentence was, tokens where that of
    masked_lm was, or else those of causal_lm or bigram_shift; with what masked_lm had
    beside each token (Aksoy et al. 2020, section 3, figure 3).

    Args:
        encoder: `Encoder`.
        pooling: as for `Reading`.
        layer: another than the pre-training had, as for `read_layers`.
        concatenate: `"none"`, `"cls"` or `"next_sentence"`, for another than
            the pre-training had.
        combine: of several layers, one of `COMBINATIONS`; None, the first of them.

    Returns:
        `Reading`.

    Raises:
        ValueError: for an unknown `pooling`, `concatenate` or `combine`; for a layer
            that the encoder does not have; for `concatenate` or several layers where no
            token is read; for `concatenate` with an encoder that reads from left to
            right; for `combine` of one layer, or of layers that differ in width.
    """
    if pooling is not None and pooling not in POOLINGS:
        raise ValueError(
            f"`pooling` must be one of {POOLINGS}. Received: pooling={pooling!r}."
        )
    if concatenate is not None and concatenate not in CONCATENATIONS:
        raise ValueError(
            f"`concatenate` must be one of {', '.join(map(repr, CONCATENATIONS))}, or "
            "None for what the encoder was pre-trained with. "
            f"Received: concatenate={concatenate!r}."
        )
    if concatenate in ("cls", "next_sentence") and pooling == "first":
        raise ValueError(
            "`concatenate` puts something behind each token; pooling='first' reads the "
            f"first one alone. Received: concatenate={concatenate!r}. Leave it out, or "
            "use pooling='mean'."
        )
    chosen, combine = _choose_layers(encoder, pooling, layer, combine)
    heads = encoder.pretrained_heads
    sentence = heads.get("next_sentence", {}).get("layer")
    if pooling == "first":
        return Reading("first", _layer(encoder, chosen, sentence))
    tokens = next((heads[name] for name in TOKEN_OBJECTIVES if name in heads), {})
    if concatenate is None:
        concatenate = tokens.get("concatenate")
    elif concatenate == "none":
        concatenate = None
    if concatenate is not None:
        check_concatenation(encoder, concatenate)
    return Reading(
        pooling,
        _layer(encoder, chosen, tokens.get("layer")),
        concatenate,
        None if concatenate is None else sentence,
        combine,
    )


def reading_arguments(reading, encoder):
    """What `choose_reading` takes to give a reading again: a dict of JSON."""
    behind = None if reading.pooling == "first" else reading.concatenate or "none"
    layer = len(encoder.blocks) if reading.layer is None else reading.layer
    return {
        "pooling": reading.pooling,
        "layer": list(layer) if isinstance(layer, tuple) else layer,
        "combine": reading.combine,
        "concatenate": behind,
    }


def names_several(layer):
    """Whether an argument `layer` names layers to combine."""
    return isinstance(layer, Iterable)


def read_layers(encoder, layer):
    """Numbers of layers, from 0 for the embeddings on.

    Args:
        encoder: `Encoder`.
        layer: int: 0, the embeddings; 1, the first block; -1, the last block. Or a
            sequence of them; or `"all"`, all blocks. None, the last block.

    Returns:
        tuple of int.

    Raises:
        ValueError: for a layer that the encoder does not have, or none at all.
    """
    highest = len(encoder.blocks)
    found = layer_numbers(layer, highest)
    for number in found:
        inner = 0 < number < highest
        if inner and "encoder_outputs" not in encoder.output:
            raise ValueError(
                f"A {type(encoder).__name__} gives the output of its last block only "
                f"(it has no `encoder_outputs`). Received: layer={layer!r}."
            )
    return found


def layer_numbers(layer, highest):
    """As `read_layers`, of an encoder whose last block has the number `highest`."""
    if layer is None:
        return (highest,)
    if isinstance(layer, str) and layer == ALL_BLOCKS:
        layer = range(1, highest + 1)
    numbers = list(layer) if isinstance(layer, Iterable) else [layer]
    found = []
    for number in numbers:
        is_int = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_int or not -highest - 1 <= number <= highest:
            raise ValueError(
                f"`layer` must be from 0 (the embeddings) to {highest} (the last "
                f"block), or from -1 (the last block) to {-highest - 1}; or several of "
                f"them, or {ALL_BLOCKS!r}. Received: layer={layer!r}."
            )
        found.append(int(number) % (highest + 1))
    if not found:
        raise ValueError(f"`layer` names no layer. Received: layer={layer!r}.")
    return tuple(found)


def check_widths(encoder, layers, combine):
    """Raises `ValueError` for layers of different widths that cannot be combined."""
    if combine == "concatenate":
        return
    outputs = EncoderOutputs(encoder)
    widths = [outputs.tokens(number).shape[-1] for number in layers]
    if len(set(widths)) > 1:
        raise ValueError(
            f"Layers of different widths cannot be combined by {combine!r}. "
            f"Received: layer={list(layers)} of widths {widths}. Use "
            "combine='concatenate'."
        )


def check_concatenation(encoder, concatenate):
    """Raises `ValueError` if tokens of an encoder may see nothing of the sentence."""
    if encoder.config.get("causal"):
        raise ValueError(
            "A left-to-right encoder pools the last token: concatenated to the "
            "others it would show each of them what follows. Received: "
            f"concatenate={concatenate!r}, causal=True. Leave one of them out."
        )
    if not hasattr(encoder, "pool_token"):
        raise ValueError(
            f"A {type(encoder).__name__} has no `pool_token`, which gives the vector "
            f"of a sentence. Received: concatenate={concatenate!r}."
        )


def _choose_layers(encoder, pooling, layer, combine):
    """Checks what is read: an int, a tuple of them or None; and how it is combined."""
    if combine not in (None, *COMBINATIONS):
        raise ValueError(
            f"`combine` must be one of {', '.join(map(repr, COMBINATIONS))}. "
            f"Received: combine={combine!r}."
        )
    several = names_several(layer)
    if combine is not None and not several:
        raise ValueError(
            "`combine` is of several layers. Received: "
            f"combine={combine!r}, layer={layer!r}. Name them, such as "
            "layer=[-4, -3, -2, -1] or layer='all', or leave `combine` out."
        )
    if layer is None:
        return None, None
    layers = read_layers(encoder, layer)
    if pooling == "first" and (several or layers == (0,)):
        raise ValueError(
            "pooling='first' is BERT's pooled output of one block, from 1. Received: "
            f"pooling='first', layer={layer!r}. Use pooling='mean', or one block."
        )
    if not several:
        return layers[0], None
    combine = combine or COMBINATIONS[0]
    check_widths(encoder, layers, combine)
    return layers, combine


def _layer(encoder, layer, default):
    """`layer`, else `default`; None for the last block."""
    layer = default if layer is None else layer
    return None if encoder.is_last(layer) else layer
