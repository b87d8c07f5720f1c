"""Tells which format a checkpoint has, and opens it."""

import pathlib
import shlex

from keras_recbert.convert.bert_config import read_object
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.hub_folder import local_folder
from keras_recbert.convert.huggingface import INDEX, WEIGHTS, read_huggingface
from keras_recbert.convert.preset_files import CARD, CONFIG

PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
CONVERT = (
    'python -c "import sys; from transformers import AutoModel; '
    'AutoModel.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[2])" '
)


def open_checkpoint(path):
    """Opens the weights of a BERT: names, sizes and vocabulary, not yet the numbers.

    Args:
        path: str or path. A folder: a preset of this package; a Hugging Face folder
            (`config.json`, `model.safetensors`); a TF1 checkpoint of
            google-research/bert (`bert_config.json`, `bert_model.ckpt.*`); a TF2
            checkpoint of the TensorFlow Model Garden; a TF Hub BERT SavedModel. Of a
            folder with several TensorFlow checkpoints the one that its file
            `checkpoint` names; or name one, as `folder/ckpt-100`. Or a preset or a
            Hugging Face folder on a hub, see `keras_recbert.convert.hub_folder`.

    Returns:
        `keras_recbert.convert.checkpoint.Checkpoint`.

    Raises:
        FileNotFoundError: if there is nothing at `path`.
        PermissionError, ConnectionError, ImportError: if a hub does not give it.
        CheckpointError: if it cannot be read safely as a checkpoint, or is
            damaged; naming file and tensor.
    """
    path = pathlib.Path(local_folder(path))
    if path.name and path.with_name(path.name + ".index").is_file():
        return _open_tensorflow(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no folder {path}. Weights are read from a folder on this "
            "machine, or from a hub: hf://user/name; `hf download NAME --local-dir "
            "FOLDER` makes a folder of a model on Hugging Face."
        )
    if path.suffix == ".keras":
        raise CheckpointError(
            f"{path} is a model that Keras saved. Make a preset of it and pass that: "
            f"recbert convert {path} FOLDER. (A training run writes one beside it.)"
        )
    if path.is_file():
        raise CheckpointError(
            f"{path} is a file. Pass the folder it is in, {path.parent}, which also "
            "holds the sizes and the vocabulary."
        )
    if is_preset(path):
        from keras_recbert.convert.preset_checkpoint import read_preset_checkpoint

        return read_preset_checkpoint(path)
    if any((path / name).is_file() for name in (WEIGHTS, INDEX)):
        return read_huggingface(path)
    if (path / "saved_model.pb").is_file():
        from keras_recbert.convert.model_garden import read_tf_hub

        return read_tf_hub(path)
    prefix = _tensorflow_prefix(path)
    if prefix is not None:
        return _open_tensorflow(prefix)
    pickles = sorted(file for pattern in PICKLES for file in path.glob(pattern))
    if pickles:
        raise CheckpointError(
            f"{pickles[0]} is a pickle. Reading a pickle can run any code that "
            "somebody put into it, so it is not read. If you trust its source, write "
            "the weights as safetensors where PyTorch and transformers are: "
            f"{CONVERT}{shlex.quote(str(path))} "
            f"{shlex.quote(f'{path}-safetensors')}"
        )
    if is_preset(path / "preset"):
        raise CheckpointError(
            f"{path} is the folder of a training run. Pass the preset in it: "
            f"{path / 'preset'}."
        )
    held = ", ".join(sorted(file.name for file in path.iterdir())[:8]) or "nothing"
    raise CheckpointError(
        f"{path} holds no checkpoint that can be read. It holds: {held}. Needed: "
        "model.safetensors (Hugging Face), *.ckpt.index (TensorFlow), saved_model.pb "
        "(TF Hub), or a preset of keras_recbert."
    )


def is_preset(path):
    """Whether a folder was written by `save_preset`, even if its card is gone."""
    path = pathlib.Path(path)
    if (path / CARD).is_file():
        return True
    config = path / CONFIG
    return config.is_file() and "format_version" in read_object(config)


def _tensorflow_prefix(folder):
    """Path of the newest TensorFlow checkpoint without `.index`, or None."""
    import tensorflow as tf

    latest = tf.train.latest_checkpoint(str(folder))
    if latest is not None:
        latest = pathlib.Path(latest)
        if latest.parent.resolve() != folder.resolve():
            raise CheckpointError(
                f"{folder / 'checkpoint'} names {latest}, which is not in the folder. "
                "Pass the checkpoint itself if it is the one you mean."
            )
        return latest
    indices = sorted(folder.glob("*.index"))
    if len(indices) > 1:
        raise CheckpointError(
            f"{folder} holds several checkpoints: "
            f"{', '.join(file.stem for file in indices)}. Pass one of them, as "
            f"{folder / indices[-1].stem}."
        )
    return indices[0].with_suffix("") if indices else None


def _open_tensorflow(prefix):
    from keras_recbert.convert.tensorflow_files import open_tensors

    shapes, _ = open_tensors(prefix)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in shapes:
        from keras_recbert.convert.model_garden import read_model_garden

        return read_model_garden(prefix)
    from keras_recbert.convert.google_tf1 import read_google_tf1

    return read_google_tf1(prefix)
