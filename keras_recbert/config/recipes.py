"""Recipes: YAML files with the fields of a config."""

import dataclasses

from keras_recbert.config.fine_tuning import FineTuningConfig
from keras_recbert.config.pretraining import PretrainingConfig
from keras_recbert.core.mappings import check_mapping, from_mapping, read_yaml


def recipe_class(path):
    """What a recipe is of, by its keys.

    Args:
        path: str or path.

    Returns:
        `FineTuningConfig` or `PretrainingConfig`.

    Raises:
        FileNotFoundError, ValueError: as `read_recipe`; if no key tells, or the keys
            are of both.
    """
    keys = read_yaml(path).keys()
    classes = (FineTuningConfig, PretrainingConfig)
    names = [{field.name for field in dataclasses.fields(cls)} for cls in classes]
    found = [
        cls
        for cls, own, other in zip(classes, names, reversed(names), strict=True)
        if keys & (own - other)
    ]
    if len(found) != 1:
        raise ValueError(
            f"{path}: expected a recipe of `recbert finetune`, with keys such as task "
            "and epochs, or of `recbert pretrain`, with keys such as objectives and "
            f"steps. It has: {', '.join(map(str, keys)) or 'no key'}."
        )
    return found[0]


def read_recipe(path, cls=FineTuningConfig):
    """Reads a recipe, a YAML file with the fields of a config.

    `measured`, what the recipe gave when it was run, is skipped.

    Args:
        path: str or path.
        cls: dataclass, such as `FineTuningConfig`.

    Returns:
        An instance of `cls`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and key, if a key is unknown or a value is of the
            wrong type or out of range; naming file and line, if it is not valid YAML.
    """
    return from_mapping(cls, recipe_values(path, cls), path)


def recipe_values(path, cls):
    """The fields that a recipe names, which need not be all that `cls` needs.

    Args:
        path: str or path.
        cls: dataclass.

    Returns:
        dict of name to value.

    Raises:
        FileNotFoundError, ValueError: as `read_recipe`; ranges are not checked.
    """
    values = read_yaml(path)
    values.pop("measured", None)
    check_mapping(cls, values, path)
    return values
