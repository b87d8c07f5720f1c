"""What a pre-training needs of its encoder, and what it leaves noted there."""

from keras_recbert.core.checks import check_positive
from keras_recbert.heads.reading import Reading, check_concatenation
from keras_recbert.objectives import Objectives, read_objectives


def as_objectives(objectives):
    """`Objectives`, or what `read_objectives` makes of a dict."""
    if isinstance(objectives, Objectives):
        return objectives
    return read_objectives(objectives)


def pretrained_heads(objectives, num_layers):
    """Where the head of each objective reads, as an encoder notes it.

    Args:
        objectives: `Objectives`, or a dict that `read_objectives` takes.
        num_layers: int. Number of blocks of the encoder.

    Returns:
        dict, see `RecBertEncoder`.

    Raises:
        ValueError: if a head reads a block above `num_layers`.
    """
    objectives = as_objectives(objectives)
    check_positive(num_layers=num_layers)
    objectives.check_layers(num_layers)

    def entry(name):
        layer = objectives.layer_of(name, num_layers)
        return {
            "layer": None if layer == num_layers else layer,
            "concatenate": getattr(getattr(objectives, name), "concatenate", None),
        }

    return {name: entry(name) for name in objectives.names()}


def readings_of(heads):
    """What the head of each objective reads.

    Args:
        heads: dict, as `pretrained_heads` gives it.

    Returns:
        dict of the name of an objective to its `Reading`.
    """
    sentence_layer = heads.get("next_sentence", {}).get("layer")

    def reading(name, layer, concatenate):
        if name == "next_sentence":
            return Reading("first", layer)
        beside = None if concatenate is None else sentence_layer
        return Reading(None, layer, concatenate, beside)

    return {name: reading(name, **head) for name, head in heads.items()}


def check_encoder(encoder, objectives):
    """Raises `ValueError` for objectives that do not fit an encoder."""
    num_layers = len(encoder.blocks)
    objectives.check_layers(num_layers)
    highest = max(objectives.layer_of(n, num_layers) for n in objectives.names())
    if highest < num_layers:
        raise ValueError(
            f"No objective reads the blocks above {highest}, so nothing trains them. "
            f"Received: {num_layers} blocks. Build the encoder with "
            f"num_layers={highest}, or put an objective at block {num_layers}."
        )
    if objectives.masked_lm is not None and objectives.masked_lm.concatenate:
        check_concatenation(encoder, objectives.masked_lm.concatenate)
    causal = bool(encoder.config.get("causal"))
    if objectives.causal_lm is not None and not causal:
        raise ValueError(
            "causal_lm needs an encoder that reads from left to right; another sees "
            "the word that it is to guess. Received: an encoder of "
            f"{encoder.config['block']!r} blocks, causal={causal}. Build a "
            "'transformer' encoder, such as bert_tiny, with causal=True."
        )
    next_sentence = objectives.next_sentence
    if next_sentence is not None and (
        next_sentence.freeze_at_step or next_sentence.freeze_patience
    ):
        check_freezable(objectives, num_layers)


def check_freezable(objectives, num_layers):
    """Raises `ValueError` if freezing next_sentence makes no sense."""
    if objectives.next_sentence is None:
        raise ValueError(
            "There is no next_sentence to freeze. Received objectives: "
            f"{', '.join(objectives.names())}."
        )
    level = objectives.layer_of("next_sentence", num_layers)
    if level == num_layers:
        raise ValueError(
            "Freezing next_sentence at the last block would leave no block to train. "
            f"Received: layer={level} of {num_layers} blocks. Put next_sentence at a "
            "lower block, or do not freeze it."
        )
