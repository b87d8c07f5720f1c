"""Options of the commands as data: dataclasses, from YAML or flags."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "augmentation": ["Augmentation"],
        "commands": [
            "AugmentConfig",
            "BenchmarkConfig",
            "PredictConfig",
            "PrepareConfig",
            "ServeConfig",
            "TableConfig",
        ],
        "distillation": ["DistillationConfig"],
        "fine_tuning": ["FineTuningConfig"],
        "frontier": ["FrontierConfig"],
        "pretraining": ["PretrainingConfig"],
        "probing": ["ProbeConfig"],
        "recipes": ["read_recipe", "recipe_class", "recipe_values"],
        "run": ["RunConfig"],
        "serving_benchmark": ["ServingBenchmarkConfig"],
    },
)
