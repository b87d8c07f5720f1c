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
    from keras_recbert.text.vocabulary import load_vocabulary

    preset = read_preset(folder)
    if preset.encoder_class != "RecBertEncoder":
        raise CheckpointError(
            f"{folder} holds a {preset.encoder_class}: `weights` start encoders of "
            "BERT's frame. `keras_recbert.load` gives it back as it was saved."
        )
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
    file = preset.path / WEIGHTS
    shapes = tensor_shapes(file)
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
    text, vocabulary = preset.config["preprocessor"], None
    if text is not None:
        vocabulary = tuple(load_vocabulary(preset.path / VOCABULARY))
    return Checkpoint(
        path=str(folder),
        format="keras_recbert",
        sizes=arguments,
        sizes_from=str(preset.path / "config.json"),
        shapes=shapes,
        files=dict.fromkeys(shapes, str(file)),
        read=lambda name: read_tensor(file, name),
        origins=origins,
        block=block,
        vocabulary=vocabulary,
        lowercase=None if text is None else text["lowercase"],
        strip_accents=None if text is None else text["strip_accents"],
        name=name,
    )
