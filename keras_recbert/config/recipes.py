"""Recipes: YAML files with the fields of a config."""

import dataclasses

from keras_recbert.config.distillation import DistillationConfig
from keras_recbert.config.fine_tuning import FineTuningConfig
from keras_recbert.config.pretraining import PretrainingConfig
from keras_recbert.core.mappings import check_mapping, from_mapping, read_yaml

# What a recipe says of results, beside options.
OF_RESULTS = ("measured", "published")


def published_scores(path):
    """Scores that a paper reports of such a run.

    Args:
        path: path of a recipe, with `published: {accuracy: 85.4, source: "..."}`.

    Returns:
        dict of metric to its score in percent, and `source`, where they stand; empty
        where the recipe names none.
    """
    return read_yaml(path).get("published", {})


def recipe_class(path):
    """What a recipe is of, by its keys.

    Args:
        path: str or path.

    Returns:
        `FineTuningConfig`, `DistillationConfig` or `PretrainingConfig`.

    Raises:
        FileNotFoundError, ValueError: as `read_recipe`; if no key tells, or the keys
            are of several.
    """
    keys = read_yaml(path).keys()
    classes = (PretrainingConfig, DistillationConfig, FineTuningConfig)
    names = {cls: {one.name for one in dataclasses.fields(cls)} for cls in classes}
    is_pretraining = bool(keys & (names[PretrainingConfig] - names[DistillationConfig]))
    is_other = bool(keys & (names[DistillationConfig] - names[PretrainingConfig]))
    if is_pretraining == is_other:
        raise ValueError(
            f"{path}: expected a recipe of `recbert finetune`, with keys such as task "
            "and epochs, of `recbert distill`, with teacher, or of `recbert pretrain`, "
            "with keys such as objectives and steps. It has: "
            f"{', '.join(map(str, keys)) or 'no key'}."
        )
    if is_pretraining:
        return PretrainingConfig
    distils = bool(keys & (names[DistillationConfig] - names[FineTuningConfig]))
    return DistillationConfig if distils else FineTuningConfig


def read_recipe(path, cls=FineTuningConfig):
    """Reads a recipe, a YAML file with the fields of a config.

    `measured`, what the recipe gave when it was run, and `published`, what a paper
    reports of such a run, are skipped.

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
    for name in OF_RESULTS:
        values.pop(name, None)
    check_mapping(cls, values, path)
    return values
