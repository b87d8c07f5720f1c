"""Presets of this package as checkpoints that other encoders start from."""

from keras_recbert.convert.checkpoint import Checkpoint, CheckpointError, Origin
from keras_recbert.convert.preset import read_preset
from keras_recbert.convert.preset_files import CONFIG, VOCABULARY, WEIGHTS
from keras_recbert.convert.safetensors_files import read_tensor, tensor_shapes
from keras_recbert.models.encoder_names import NEXT_SENTENCE

TABLES = {
    "token_embedding": "vocabulary_size",
    "segment_embedding": "num_segments",
    "position_embedding": "max_sequence_length",
}
ENCODER = ("embeddings/", "block_", "pooler/", f"{NEXT_SENTENCE}/")


def read_preset_checkpoint(folder):
    """Opens the encoder of a preset, whatever task it was saved with.

    Args:
        folder: path of a folder written by `save_preset`.

    Returns:
        `Checkpoint`.

    Raises:
        CheckpointError: if a file is not the one that the card names, or the model
            has LoRA adapters.
    """
    preset = read_preset(folder)
    if preset.config["arguments"].get("lora_rank") is not None:
        raise CheckpointError(
            f"{folder} holds a model with LoRA adapters (lora_rank="
            f"{preset.config['arguments']['lora_rank']}), which are no weights of an "
            "encoder. `keras_recbert.load` loads it as it was saved."
        )
    arguments = dict(preset.encoder_arguments)
    name = arguments.pop("name", None)
    # How it was trained and run, which an encoder that starts from it need not be.
    for key in ("dtype", "dropout", "gradient_checkpointing", "implementation"):
        arguments.pop(key, None)
    file = preset.path / WEIGHTS
    shapes = tensor_shapes(file)
    shared = {
        "path": str(folder),
        "format": "keras_recbert",
        "sizes": arguments,
        "sizes_from": str(preset.path / CONFIG),
        "shapes": shapes,
        "files": dict.fromkeys(shapes, str(file)),
        "read": lambda name: read_tensor(file, name),
        "name": name,
        "encoder_class": preset.encoder_class,
        **_of_text(preset),
    }
    if preset.encoder_class != "RecBertEncoder":
        return Checkpoint(origins={}, **shared)
    missing = [
        key
        for key in ("block", *TABLES.values(), "hidden_dim", "num_layers")
        if key not in arguments
    ]
    if missing:
        raise CheckpointError(
            f"{preset.path / CONFIG} lacks {', '.join(missing)} of the encoder."
        )
    block = arguments.pop("block")
    origins = {
        path: Origin((path,), shape, shape)
        for path, shape in shapes.items()
        if path.startswith(ENCODER)
    }
    for table, size in TABLES.items():
        # What takes memory by the sizes of the file must be there in the file.
        shape = (arguments[size], arguments["hidden_dim"])
        path = f"embeddings/{table}/embeddings"
        origins[path] = Origin((path,), shape, shape)
    return Checkpoint(origins=origins, block=block, **shared)


def _of_text(preset):
    """What a checkpoint says of its vocabulary, a dict."""
    from keras_recbert.convert.preset import PLAIN
    from keras_recbert.text.vocabulary import load_vocabulary

    text = preset.config["preprocessor"]
    if text is None:
        return {}
    return {
        "vocabulary": tuple(load_vocabulary(preset.path / VOCABULARY)),
        "lowercase": text["lowercase"],
        "strip_accents": text["strip_accents"],
        "tokenizer": text.get("tokenizer", PLAIN),
        "num_oov_buckets": text.get("num_oov_buckets", 0),
    }
