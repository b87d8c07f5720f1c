"""From a name to a model, from a file to a model, and what an encoder is."""

from keras_recbert.builder.description import (
    count_parameters,
    draw,
    encoder_arguments,
    explain,
    random_encoder,
)
from keras_recbert.builder.model import build, check_weights
from keras_recbert.builder.saved import load, save_preset
from keras_recbert.models import zoo  # noqa: F401  registers the names

__all__ = [
    "build",
    "check_weights",
    "count_parameters",
    "draw",
    "encoder_arguments",
    "explain",
    "load",
    "random_encoder",
    "save_preset",
]
