"""Reads the JSON that describes a BERT: `config.json`, `bert_config.json`."""

import pathlib
import reprlib

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.core.json_files import read_json

# This package's size: the name in the JSON.
SIZES = {
    "num_layers": "num_hidden_layers",
    "hidden_dim": "hidden_size",
    "num_heads": "num_attention_heads",
    "intermediate_dim": "intermediate_size",
    "vocabulary_size": "vocab_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
# What BERT is, where a config may say otherwise: the only values this package runs.
# A missing key means BERT's own value.
REQUIRED = {
    "model_type": ("bert",),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute",),
    "layer_norm_eps": (1e-12,),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "embedding_size": (None,),
}


def read_object(path):
    """A JSON file as a dict.

    Raises:
        CheckpointError: if it holds something else than a JSON object.
    """
    path = pathlib.Path(path)
    try:
        value = read_json(path)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{path} must hold a JSON object. It holds: {reprlib.repr(value)}."
        )
    return value


def read_bert_config(path):
    """Sizes of a BERT, checked to be one.

    Args:
        path: path of the JSON.

    Returns:
        dict, see `Checkpoint.sizes`.

    Raises:
        CheckpointError: if the file is missing or no JSON, a size is missing or
            impossible, or the model is something else than a plain BERT.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise CheckpointError(
            f"{path} is missing. It says the sizes of the encoder; get it from where "
            "the weights come from."
        )
    config = read_object(path)
    return read_sizes(config, SIZES, REQUIRED, f"{path}: ")


def read_sizes(config, keys, required, where):
    """Sizes of a BERT, checked to be one.

    Args:
        config: dict.
        keys: dict of this package's sizes to their keys in `config`.
        required: dict of key to the values it may have, the usual one first.
        where: str. What stands before a key in messages.

    Returns:
        dict, see `Checkpoint.sizes`.

    Raises:
        CheckpointError: if a size is missing or impossible, or another key has a
            value that is not allowed.
    """
    for key, valid in required.items():
        if key in config and config[key] not in valid:
            raise CheckpointError(
                f"{where}{key} must be {valid[0]!r}, as in BERT. It is "
                f"{reprlib.repr(config[key])}, which the encoders here do not compute."
            )
    sizes = {}
    for name, key in keys.items():
        size = config.get(key)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            came = f"It is {reprlib.repr(size)}." if key in config else "It is missing."
            raise CheckpointError(
                f"{where}{key} must be a whole number of at least 1. {came}"
            )
        sizes[name] = size
    width, num_heads = sizes["hidden_dim"], sizes["num_heads"]
    if width % num_heads:
        raise CheckpointError(
            f"{where}{keys['hidden_dim']} must be a multiple of {keys['num_heads']}. "
            f"They are {width} and {num_heads}."
        )
    return sizes
