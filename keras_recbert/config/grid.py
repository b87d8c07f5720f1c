"""Grids: several values of several options, and the runs they make.

Imports no TensorFlow.
"""

import dataclasses
import itertools
import json
import re
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec

from keras_recbert.config.fine_tuning import FineTuningConfig
from keras_recbert.core.mappings import check_mapping

OVERRIDE = "overrides."
# What a table sets itself, and what makes scores of another thing.
NOT_IN_A_GRID = {
    "model": "models (--models NAME ...)",
    "task": "tasks (--tasks NAME ...)",
    "seed": "seeds (--seeds SEED ...)",
    "overrides": "entries of it, such as overrides.num_layers",
    **dict.fromkeys(
        ("data_dir", "tfds", "train", "validation", "test", "validation_fraction"),
        "one table for each set of examples",
    ),
    **dict.fromkeys(
        ("output_dir", "export", "overwrite", "split_seed", "keep_epoch"), "the recipe"
    ),
}


def check_grid(grid):
    """Raises `ValueError` for a grid that makes no runs, naming the option.

    Args:
        grid: dict of the name of an option of `FineTuningConfig`, or of
            `overrides.NAME`, to a list of values.
    """
    for name, values in grid.items():
        if name in NOT_IN_A_GRID:
            raise ValueError(
                f"grid: `{name}` does not go into a grid. Use {NOT_IN_A_GRID[name]}."
            )
        if not values or any(values.index(v) != i for i, v in enumerate(values)):
            raise ValueError(
                f"grid: the values of `{name}` must be one or more, and differ. "
                f"Received: {values}."
            )
        for value in values:
            check_mapping(FineTuningConfig, _options({name: value}, {}), "grid")


def grid_points(grid):
    """All combinations of the values of a grid, the last option fastest.

    Args:
        grid: as `check_grid` takes it; None for the recipe as it is.

    Returns:
        list of dict of option to value.
    """
    grid = grid or {}
    return [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]


def at_point(config, point):
    """A config with the options of a point of a grid.

    Args:
        config: `FineTuningConfig`.
        point: dict of `grid_points`.

    Raises:
        ValueError: for a value out of range.
    """
    return dataclasses.replace(config, **_options(point, config.overrides))


def point_name(point):
    """A point as a part of the name of a folder: `learning_rate=3e-05-epochs=3`."""
    words = (f"{name}={_word(value)}" for name, value in point.items())
    return re.sub(r"[^\w.+=,-]+", "_", "-".join(words))


def _word(value):
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _options(point, overrides):
    own = {k: v for k, v in point.items() if not k.startswith(OVERRIDE)}
    more = {
        name.removeprefix(OVERRIDE): value
        for name, value in point.items()
        if name.startswith(OVERRIDE)
    }
    return {**own, "overrides": {**overrides, **more}} if more else own


# As flags ---------------------------------------------------------------------------


def _from_flags(words):
    grid = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not (name and equals and values):
            raise ValueError(f"expected OPTION=VALUE,VALUE, got {word!r}")
        if name in grid:
            raise ValueError(f"{name} is given twice")
        grid[name] = [_value(value) for value in values.split(",")]
    return grid


def _value(word):
    """A number, true, false or null; else the word itself."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def _to_flags(grid):
    return [
        f"{name}={','.join(v if isinstance(v, str) else json.dumps(v) for v in values)}"
        for name, values in grid.items()
    ]


FLAGS = PrimitiveConstructorSpec(
    nargs="*",
    metavar="OPTION=VALUE,VALUE",
    instance_from_str=_from_flags,
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=_to_flags,
)
Value = bool | int | float | str | list[int] | None
Grid = Annotated[dict[str, list[Value]], FLAGS]
