"""Recurrent BERTs for Keras 3: build, train, export, serve.

Importing the package registers the names of the zoo, and those of its classes with
Keras, and nothing else: TensorFlow is loaded when the first model is built.
"""

import lazy_loader

from keras_recbert.builder import (
    build,
    count_parameters,
    draw,
    explain,
    load,
    save_preset,
)
from keras_recbert.models.registry import ModelCard, get_card, list_models, register
from keras_recbert.registration import register_lazily

__version__ = "0.1.0"
register_lazily()  # for `keras.models.load_model`
__getattr__, _, _ = lazy_loader.attach(
    __name__,
    submodules=["blocks", "data", "heads", "layers", "losses", "tasks", "text"],
    submod_attrs={
        "data.prepare": ["prepare"],
        "server.run": ["play"],
        "train.averaging": ["average"],
        "train.finetune": ["distill", "finetune", "pretrain"],
        "train.masked_words": ["explain_words"],
        "train.probe": ["probe"],
    },
)
__all__ = [
    "ModelCard",
    "average",
    "blocks",
    "build",
    "count_parameters",
    "data",
    "distill",
    "draw",
    "explain",
    "explain_words",
    "finetune",
    "get_card",
    "heads",
    "layers",
    "list_models",
    "load",
    "losses",
    "play",
    "prepare",
    "pretrain",
    "probe",
    "register",
    "save_preset",
    "tasks",
    "text",
]


def __dir__():
    """All public names: lazy_loader knows only those that it loads."""
    return sorted([*__all__, "__version__"])
