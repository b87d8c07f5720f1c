"""Recurrent BERTs for Keras 3: build, train, export, serve.

Importing the package registers the names of the zoo and nothing else: TensorFlow
is loaded when the first model is built.
"""

import lazy_loader

from keras_recbert.builder import build, count_parameters, explain, load
from keras_recbert.models.registry import ModelCard, get_card, list_models, register

__version__ = "0.1.0"
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__, submodules=["layers", "tasks", "text"]
)
__all__ = [
    "ModelCard",
    "build",
    "count_parameters",
    "explain",
    "get_card",
    "layers",
    "list_models",
    "load",
    "register",
    "tasks",
    "text",
]
