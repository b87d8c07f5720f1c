"""Reads the YAML that describes a run of the TensorFlow Model Garden."""

import reprlib

from keras_recbert.convert.bert_config import SIZES as BERT_SIZES
from keras_recbert.convert.bert_config import read_sizes
from keras_recbert.convert.checkpoint import CheckpointError

# In `task.model.encoder.bert` of a params.yaml one size has another name.
SIZES = {**BERT_SIZES, "num_layers": "num_layers"}


def read_params(path):
    """Sizes of a BERT, checked to be one.

    Args:
        path: pathlib.Path of a `params.yaml`, as a training run writes it.

    Returns:
        dict, see `Checkpoint.sizes`.

    Raises:
        CheckpointError: if the file is not valid YAML, a size is missing or
            impossible, or the encoder is something else than a plain BERT.
    """
    import yaml

    try:
        encoder = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid YAML: {error}.") from error
    for key in ("task", "model", "encoder"):
        encoder = encoder.get(key) if isinstance(encoder, dict) else None
    kind = encoder.get("type") if isinstance(encoder, dict) else None
    if kind not in ("bert", "bert_v2"):
        raise CheckpointError(
            f"{path}: task.model.encoder.type must be 'bert' or 'bert_v2'. It is "
            f"{reprlib.repr(kind)}."
        )
    where, config = f"{path}: task.model.encoder.{kind}", encoder.get(kind)
    if not isinstance(config, dict):
        raise CheckpointError(
            f"{where} must hold the sizes. It is {reprlib.repr(config)}."
        )
    required = {
        "hidden_activation": ("gelu",),
        "norm_first": (False,),
        "output_range": (None,),
        "embedding_size": (None, config.get("hidden_size")),
    }
    return read_sizes(config, SIZES, required, f"{where}.")
