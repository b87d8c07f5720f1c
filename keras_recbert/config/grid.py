"""Grids: several values of several options, and the runs they make.

A grid is a dict of options to lists of values, which are run in all combinations; or a
list of such dicts, one after the other, as `ParameterGrid` of scikit-learn has it.

Imports no TensorFlow.
"""

import dataclasses
import itertools
import json
import re
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec

from keras_recbert.config.distillation import DistillationConfig
from keras_recbert.core.mappings import check_mapping

OVERRIDE = "overrides."
OR = "or"  # between grids, as flags
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
    "tuning_fraction": "the table (--tuning-fraction)",
    **dict.fromkeys(
        ("output_dir", "export", "overwrite", "split_seed", "keep_epoch"), "the recipe"
    ),
}


def check_grid(grid):
    """Raises `ValueError` for a grid that makes no runs, naming the option.

    Args:
        grid: dict of the name of an option of `DistillationConfig`, or of
            `overrides.NAME`, to a list of values; or a list of such dicts.
    """
    points = []
    for one in grids_of(grid):
        _check_one(one)
        points += grid_points(one)
    for index, point in enumerate(points):
        if point in points[:index]:
            raise ValueError(
                "grid: its combinations must differ. Received twice: "
                f"{point_name(point) or 'no option'}. Leave one out."
            )


def grids_of(grid):
    """The dicts of options to lists of values that a grid has: a list."""
    return grid if isinstance(grid, list) else [grid or {}]


def _check_one(grid):
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
            check_mapping(DistillationConfig, _options({name: value}, {}), "grid")


def grid_points(grid):
    """All combinations of the values of a grid, the last option fastest.

    Args:
        grid: as `check_grid` takes it; None for the recipe as it is.

    Returns:
        list of dict of option to value; of several grids one after the other.
    """
    return [
        dict(zip(one, values, strict=True))
        for one in grids_of(grid)
        for values in itertools.product(*one.values())
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


BETWEEN_VALUES = re.compile(r",(?![^\[]*\])")  # a comma that is in no list


def _from_flags(words):
    grids = [{}]
    for word in words:
        if word == OR:
            grids.append({})
            continue
        name, equals, values = word.partition("=")
        if not (name and equals and values):
            raise ValueError(f"expected OPTION=VALUE,VALUE, got {word!r}")
        if name in grids[-1]:
            raise ValueError(f"{name} is given twice")
        grids[-1][name] = [_value(value) for value in BETWEEN_VALUES.split(values)]
    return grids if len(grids) > 1 else grids[0]


def _value(word):
    """A number, true, false or null; else the word itself."""
    try:
        return json.loads(word)
    except ValueError:
        return word


def _to_flags(grid):
    words = []
    for one in grids_of(grid):
        words += [OR] if words else []
        for name, values in one.items():
            texts = (v if isinstance(v, str) else json.dumps(v) for v in values)
            words.append(f"{name}={','.join(texts)}")
    return words


FLAGS = PrimitiveConstructorSpec(
    nargs="*",
    metavar="OPTION=VALUE,VALUE [or]",
    instance_from_str=_from_flags,
    is_instance=lambda value: isinstance(value, (dict, list)),
    str_from_instance=_to_flags,
)
Value = bool | int | float | str | list[int] | None
Grid = Annotated[dict[str, list[Value]] | list[dict[str, list[Value]]], FLAGS]
