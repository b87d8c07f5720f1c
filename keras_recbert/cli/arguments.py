"""Arguments of a command: recipe and flags together, and what is refused of them."""

import argparse
import dataclasses
import functools
import inspect

import tyro

from keras_recbert.config import read_recipe, recipe_values
from keras_recbert.data import list_tasks

RECIPE_ENDINGS = (".yaml", ".yml")
# Arguments that may be empty: they are what is asked, not where something is.
_TEXTS = ("ask",)


def given(**options):
    """Options that were given; what is None has the default of the model."""
    return {name: value for name, value in options.items() if value is not None}


def without_empty(command):
    """A command that refuses an empty path or name, such as of an unset variable."""
    signature = inspect.signature(command)

    @functools.wraps(command)
    def run(*args, **kwargs):
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            values = value.values() if isinstance(value, dict) else [value]
            if isinstance(value, list) and name not in _TEXTS:
                values = value
            if "" in values and signature.parameters[name].default != "":
                raise ValueError(f"`{name}` is empty. Expected a path or a name.")
        return command(*args, **kwargs)

    return run


def config_from(argv, command, cls, words=None):
    """A config from flags, on top of a `--recipe` if one is named.

    Args:
        argv: list of str, without the name of the command. A run may name its recipe
            as the first word, without `--recipe`.
        command: function of the command, which its help quotes.
        cls: dataclass of the command, see `keras_recbert.config`.
        words: optional str. What is typed for the command, if not its name.

    Returns:
        An instance of `cls`.

    Raises:
        FileNotFoundError: if there is no such recipe.
        ValueError: for a recipe that cannot be read, or a value out of range.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--recipe", nargs="?", const="")
    first = argv[0] if argv and not argv[0].startswith("-") else ""
    if first.endswith(RECIPE_ENDINGS) and hasattr(cls, "command"):
        if any(word.partition("=")[0] == "--recipe" for word in argv):
            raise ValueError(f"Name one recipe. Received: {first} and --recipe.")
        argv = ["--recipe", *argv]
    known, argv = parser.parse_known_args(argv)
    if known.recipe == "":
        raise ValueError("--recipe needs the path of a YAML file.")
    values = recipe_values(known.recipe, cls) if known.recipe else {}
    needed = [name for name in _required(cls) if name not in values]
    if known.recipe and not needed:
        read_recipe(known.recipe, cls)  # raises what is wrong, naming the file
    # tyro draws a box around what a config raises, so it gets one that checks nothing.
    unchecked = dataclasses.dataclass(
        type(cls.__name__, (cls,), {"__doc__": _doc(cls), "__post_init__": _no_check})
    )
    parsed = tyro.cli(
        unchecked,
        prog=f"recbert {words or command.__name__}",
        description=inspect.getdoc(command),
        default=unchecked(**{**dict.fromkeys(needed, tyro.MISSING), **values}),
        args=argv,
    )
    return cls(**_fields(parsed))


def _required(cls):
    """Names of the fields that have no default."""
    none = dataclasses.MISSING
    return [
        field.name
        for field in dataclasses.fields(cls)
        if field.default is none and field.default_factory is none
    ]


def _doc(cls):
    """Docstring of a config, which its help quotes, with the tasks of this process."""
    tasks = ", ".join(list_tasks())
    return cls.__doc__.replace("one of `recbert list --tasks`", f"one of {tasks}")


def _fields(config):
    fields = {
        field.name: getattr(config, field.name) for field in dataclasses.fields(config)
    }
    if "overrides" in fields:  # `null` as in a recipe
        given = fields["overrides"].items()
        fields["overrides"] = {k: None if v == "null" else v for k, v in given}
    return fields


def _no_check(self):
    pass
