"""Where the heads of a model read its encoder."""

from keras_recbert.heads.reading import choose_reading, names_several, read_layers
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults


def set_readings(encoder, head, **shared):
    """Sets where each head reads: as is said of it, or of all heads.

    Args:
        encoder: `Encoder`.
        head: `Head` or `NamedHeads`, whose heads are changed in place.
        **shared: `pooling`, `layer`, `combine` and `concatenate`, as for `TextModel`.
    """
    for one in head.heads.values():
        where = {**shared, **one.own_reading}
        if "layer" in one.own_reading:  # which the shared `combine` is not about
            where["combine"] = one.own_reading.get("combine")
        where["pooling"] = _choose_pooling(
            encoder, one, where["pooling"], where["layer"]
        )
        one.reading = choose_reading(encoder, **where)


def _choose_pooling(encoder, head, pooling, layer):
    """How a head reads a row: as it is told, or as suits the encoder.

    Args:
        encoder: `Encoder`.
        head: `Head`.
        pooling, layer: as for `TextModel`.

    Returns:
        str; None for a head that reads all tokens.

    Raises:
        ValueError: for a pooling of a head that reads all tokens.
    """
    if head.reads != "tokens":
        if pooling is not None:
            return pooling
        last = read_layers(encoder, None)
        if names_several(layer) or read_layers(encoder, layer) != last:
            return "mean"  # BERT's pooler was trained to read the last block
        return fine_tuning_defaults(encoder).pooling
    if pooling is not None:
        raise ValueError(
            f"A head for {head.task!r} reads every token, so there is no pooling. "
            f"Received: pooling={pooling!r}. Leave it out."
        )
    return None
