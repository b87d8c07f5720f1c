"""Dataclasses from mappings, such as YAML files hold. Imports no TensorFlow."""

import dataclasses
import math
import pathlib
import reprlib
import types
import typing

from keras_recbert.core.names import nearest

MOST_VALUES = 10_000  # of a recipe; a few aliases of aliases make billions
SHORT = reprlib.Repr()  # of a value in a message: whole but for what nobody reads
SHORT.maxstring = SHORT.maxother = 200
SHORT.maxlist = SHORT.maxdict = 20


def read_yaml(path):
    """The mapping in a YAML file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file, and the line if it is not valid YAML; if aliases
            make more of it than any recipe has.
    """
    import yaml

    path = pathlib.Path(path)
    if not path.is_file():
        is_folder = " It is a folder." if path.is_dir() else ""
        raise FileNotFoundError(f"There is no recipe {path}.{is_folder}")
    try:
        text = path.read_text(encoding="utf-8")
        if _count(yaml.compose(text, yaml.SafeLoader), {}) > MOST_VALUES:
            raise ValueError(
                f"{path}: aliases (*name) make more than {MOST_VALUES:,} values of it. "
                "Write the values out."
            )
        values = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8: {error}.") from error
    except RecursionError as error:
        raise ValueError(f"{path}: nested too deeply for a recipe.") from error
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: not valid YAML: {reason}.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: a recipe is a mapping of keys to values.")
    return values


def _count(node, counts):
    """Values that a YAML node stands for, with those of its aliases.

    Args:
        node: node that `yaml.compose` gives, or None.
        counts: dict of the nodes that were counted; one that is being counted has
            infinitely many.
    """
    if id(node) in counts:
        return counts[id(node)]
    counts[id(node)] = math.inf
    children = getattr(node, "value", None)
    children = children if isinstance(children, list) else []
    total = 1
    for child in children:
        pair = child if isinstance(child, tuple) else (child,)
        total += sum(_count(one, counts) for one in pair)
    counts[id(node)] = total
    return total


def from_mapping(cls, values, where):
    """An instance of a dataclass.

    Args:
        cls: dataclass.
        values: dict of the names of its fields to their values.
        where: what errors begin with: a file, or a key in it.

    Raises:
        ValueError: for a key that is unknown, with the nearest one, or a value of
            another type; for what the dataclass itself refuses.
    """
    check_mapping(cls, values, where)
    try:
        return cls(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def check_mapping(cls, values, where):
    """Raises `ValueError` for a key or a type that `from_mapping` would refuse."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key, value in values.items():
        if key not in fields:
            raise ValueError(
                f"{where}: unknown key {key!r}. {nearest(key, fields)}"
                f"Valid: {', '.join(fields)}."
            )
        if not _is_of(value, fields[key].type):
            raise ValueError(
                f"{where}: `{key}` must be of type {_type_name(fields[key].type)}. "
                f"Received: {SHORT.repr(value)} of type {type(value).__name__}."
                + (
                    " YAML reads 3.0e-4 as a number, 3e-4 as a string."
                    if isinstance(value, str) and "e" in value
                    else ""
                )
            )


def _is_of(value, kind):
    """Whether a value is of a type, such as `dict[str, int | list[str]] | None`."""
    kind = _plain(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in _UNIONS:
        return any(_is_of(value, one) for one in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is dict:
        return isinstance(value, dict) and all(
            isinstance(key, arguments[0]) and _is_of(one, arguments[1])
            for key, one in value.items()
        )
    if origin is list:
        return isinstance(value, list) and all(_is_of(v, arguments[0]) for v in value)
    if isinstance(value, bool):  # which Python takes for an int
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


_UNIONS = (types.UnionType, typing.Union)


def _plain(kind):
    """A type without what says how it is written on a command line."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    return kind


def _type_name(kind):
    kind = _plain(kind)
    if typing.get_origin(kind) in _UNIONS:
        return " | ".join(map(_type_name, typing.get_args(kind)))
    if typing.get_origin(kind) is typing.Literal:
        return " | ".join(map(repr, typing.get_args(kind)))
    if kind is types.NoneType:
        return "None"
    return str(kind) if typing.get_args(kind) else kind.__name__
