"""Options of the commands as data: dataclasses, from YAML or flags."""

from keras_recbert.config.commands import (
    BenchmarkConfig,
    PredictConfig,
    PrepareConfig,
    TableConfig,
)
from keras_recbert.config.fine_tuning import FineTuningConfig
from keras_recbert.config.pretraining import PretrainingConfig
from keras_recbert.config.recipes import read_recipe, recipe_class, recipe_values
from keras_recbert.config.run import RunConfig

__all__ = [
    "BenchmarkConfig",
    "FineTuningConfig",
    "PredictConfig",
    "PrepareConfig",
    "PretrainingConfig",
    "RunConfig",
    "TableConfig",
    "read_recipe",
    "recipe_class",
    "recipe_values",
]
