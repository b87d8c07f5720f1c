"""Which output of an encoder a head reads."""

import dataclasses

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.mean_pooling import MeanPooling

POOLINGS = ("mean", "first")
# Arguments of `choose_reading` that users name.
READING_ARGUMENTS = ("pooling", "layer", "concatenate")
CONCATENATIONS = ("none", "cls", "next_sentence")
# Heads of a pre-training that read tokens, the first of them where others read.
TOKEN_OBJECTIVES = ("masked_lm", "causal_lm", "bigram_shift")


@dataclasses.dataclass(frozen=True)
class Reading:
    """Which output of an encoder a head reads (Aksoy et al. 2020, section 3).

    Args:
        pooling: `"first"`, BERT's pooled output of the first token; `"mean"`, the mean
            over the real tokens; None, every token.
        layer: int. Block that is read, from 1; None, the last.
        concatenate: what stands behind each token: `"cls"`, `"next_sentence"` or
            None, see `EncoderOutputs.tokens`.
        sentence_layer: int. Block that `concatenate` reads; None, the last.
    """

    pooling: str | None = None
    layer: int | None = None
    concatenate: str | None = None
    sentence_layer: int | None = None

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
        tokens = outputs.tokens(self.layer, self.concatenate, self.sentence_layer)
        if self.pooling is None:
            return tokens
        pool = outputs.shared_layer(MeanPooling, "mean_pooling")
        return pool(tokens, outputs.inputs["padding_mask"])


def choose_reading(encoder, pooling, layer=None, concatenate=None):
    """What a head of a task reads: where the encoder was pre-trained for it.

    Sentences are read where the head of next_sentence was, tokens where that of
    masked_lm was, or else those of causal_lm or bigram_shift; with what masked_lm had
    beside each token (Aksoy et al. 2020, section 3, figure 3).

    Args:
        encoder: `Encoder`.
        pooling: as for `Reading`.
        layer: int. Another block, from 1.
        concatenate: `"none"`, `"cls"` or `"next_sentence"`, for another than
            the pre-training had.

    Returns:
        `Reading`.

    Raises:
        ValueError: for an unknown `pooling` or `concatenate`; for a block that the
            encoder does not have; for `concatenate` where no token is read, or with an
            encoder that reads from left to right.
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
    check_layer(encoder, layer=layer)
    heads = encoder.pretrained_heads
    sentence = heads.get("next_sentence", {}).get("layer")
    if pooling == "first":
        return Reading("first", _layer(encoder, layer, sentence))
    tokens = next((heads[name] for name in TOKEN_OBJECTIVES if name in heads), {})
    if concatenate is None:
        concatenate = tokens.get("concatenate")
    elif concatenate == "none":
        concatenate = None
    if concatenate is not None:
        check_concatenation(encoder, concatenate)
    return Reading(
        pooling,
        _layer(encoder, layer, tokens.get("layer")),
        concatenate,
        None if concatenate is None else sentence,
    )


def reading_arguments(reading, encoder):
    """What `choose_reading` takes to give a reading again: a dict of JSON."""
    behind = None if reading.pooling == "first" else reading.concatenate or "none"
    layer = reading.layer or len(encoder.blocks)
    return {"pooling": reading.pooling, "layer": layer, "concatenate": behind}


def check_layer(encoder, **layers):
    """Raises `ValueError` for a block that an encoder does not have."""
    for name, layer in layers.items():
        if layer is None:
            continue
        check_positive(**layers)
        highest = len(encoder.blocks)
        if layer > highest:
            raise ValueError(
                f"`{name}` must be a block of the encoder, from 1 to {highest}. "
                f"Received: {name}={layer}."
            )
        if not encoder.is_last(layer) and "encoder_outputs" not in encoder.output:
            raise ValueError(
                f"A {type(encoder).__name__} gives the output of its last block only "
                f"(it has no `encoder_outputs`). Received: {name}={layer}."
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


def _layer(encoder, layer, default):
    """`layer`, else `default`; None for the last block."""
    layer = default if layer is None else layer
    return None if encoder.is_last(layer) else layer
