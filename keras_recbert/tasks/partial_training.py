"""Training an encoder in part, or its parts at rates of their own."""

from numbers import Integral, Real

from keras_recbert.core.checks import check_positive

FREEZABLE = ("embeddings", "encoder")


def check_partial_training(encoder, freeze, lora_rank, layerwise_decay):
    """Raises `ValueError` for arguments of a task that do not fit its encoder.

    Args:
        encoder: `RecBertEncoder`.
        freeze, lora_rank, layerwise_decay: as for `TextModel`.
    """
    num_layers = len(encoder.blocks)
    counts = isinstance(freeze, Integral) and not isinstance(freeze, bool)
    if counts:
        fits = 0 <= freeze <= num_layers
    else:
        fits = freeze is None or freeze in FREEZABLE
    if not fits:
        raise ValueError(
            "`freeze` must be 'embeddings', 'encoder' (everything but the head), or "
            f"the number of lowest blocks to freeze, 0 to {num_layers}. "
            f"Received: freeze={freeze!r}."
        )
    if lora_rank is not None:
        check_positive(lora_rank=lora_rank)
        if freeze is not None:
            raise ValueError(
                "`lora_rank` freezes the encoder already, all but its adapters. "
                f"Received: lora_rank={lora_rank}, freeze={freeze!r}. Leave one out."
            )
        if any(_has_adapters(block) for block in encoder.blocks):
            raise ValueError(
                "This encoder has LoRA adapters already, those of another model. "
                "Build a new encoder for each model with `lora_rank`."
            )
    if layerwise_decay is not None and not (
        isinstance(layerwise_decay, Real)
        and not isinstance(layerwise_decay, bool)
        and 0 < layerwise_decay <= 1
    ):
        raise ValueError(
            "`layerwise_decay` must be a number above 0 and up to 1. "
            f"Received: layerwise_decay={layerwise_decay!r}."
        )
    if layerwise_decay is not None and freeze in ("encoder", num_layers):
        raise ValueError(
            "`layerwise_decay` is of blocks that are trained, and none is. Received: "
            f"layerwise_decay={layerwise_decay}, freeze={freeze!r}. Leave one out."
        )


def _has_adapters(block):
    return any(
        getattr(layer, "lora_enabled", False) for layer in block._flatten_layers()
    )


def freeze_part(encoder, freeze):
    """Makes the lower part of an encoder untrainable.

    Args:
        encoder: `RecBertEncoder`, changed in place.
        freeze: None for nothing, `"embeddings"`, `"encoder"` for all of it, or an
            int, the number of lowest blocks beside the embeddings.
    """
    if freeze is None:
        return
    if freeze == "encoder":
        encoder.trainable = False
        return
    num_blocks = 0 if freeze == "embeddings" else freeze
    for layer in (encoder.embeddings, *encoder.blocks[:num_blocks]):
        layer.trainable = False


def learning_rate_factors(model, decay):
    """What the learning rate of each weight is multiplied with.

    Discriminative fine-tuning (Howard and Ruder 2018, section 3.2; Clark et al. 2020,
    table 7): `decay ** (L - l)` for block l of L, counted from 0,
    `decay ** (L + 1)` for the embeddings, 1 for the pooler and the head. (The code
    of Clark et al. gives encoder and embeddings one power more.)

    Args:
        model: `TextModel`.
        decay: float in (0, 1].

    Returns:
        dict of the path of each weight to a float.
    """
    num_layers = len(model.encoder.blocks)
    factors = {weight.path: 1.0 for weight in model.weights}
    for weight in model.encoder.embeddings.weights:
        factors[weight.path] = decay ** (num_layers + 1)
    for index, block in enumerate(model.encoder.blocks):
        for weight in block.weights:
            factors[weight.path] = decay ** (num_layers - index)
    return factors
