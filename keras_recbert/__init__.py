"""Recurrent BERTs for Keras 3: build, train, export, serve.

Importing the package registers the names of the zoo and nothing else: TensorFlow
is loaded when the first model is built.
"""

import importlib

from keras_recbert.builder import build, count_parameters
from keras_recbert.models.registry import ModelCard, get_card, list_models, register

__version__ = "0.1.0"
__all__ = [
    "ModelCard",
    "build",
    "count_parameters",
    "get_card",
    "layers",
    "list_models",
    "register",
]


def __getattr__(name):
    if name in {"layers", "models", "ops", "serving", "tasks", "text", "train"}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
