"""What is checked in a `.keras` file before Keras builds anything of it."""

import collections
import io
import json
import pathlib
import reprlib
import struct
import zipfile
import zlib

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.registration import CLASSES

CONFIG, WEIGHTS = "config.json", "model.weights.h5"
# Keras stores the members as they are. Somebody may pack them again, and no weights
# become so much smaller by that.
LARGEST_RATIO = 100
LARGEST_CONFIG = 64 * 2**20  # bytes; 30,000 word pieces take half a megabyte
# Sizes in a config that some weight has as one of its axes.
SIZES = (
    "num_layers",
    "hidden_dim",
    "num_heads",
    "intermediate_dim",
    "recurrent_dim",
    "projection_dim",
    "vocabulary_size",
    "max_sequence_length",
    "num_segments",
    "num_classes",
    "lora_rank",
    "vector_dim",
    "pooled_dim",
)
# Encoders without a table of positions: the length of a row is no size of a weight.
WITHOUT_POSITIONS = ("BiAttentiveEncoder", "WordBiLSTMEncoder")
# What `zipfile` raises for archives that somebody or something has changed.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
AGAIN = "Copy the file again, or save the model again with `model.save`."


def read_keras_file(path):
    """Reads a `.keras` file without building anything.

    Args:
        path: str or path.

    Returns:
        Tuple of the dict in `config.json`, and a `collections.Counter` of the shapes
        of the arrays in `model.weights.h5`.

    Raises:
        FileNotFoundError: if there is no such file.
        CheckpointError: if it is damaged, lacks a member, or its config is of a larger
            model than it has weights for.
    """
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file {path}. `recbert finetune` writes model.keras into its "
            "output folder; so does `model.save('model.keras')`."
        )
    if not path.is_file():
        raise CheckpointError(f"{path} is a folder. Expected a file that Keras saved.")
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_members(path, archive)
                for info in archive.infolist():
                    if info.filename not in (CONFIG, WEIGHTS):
                        _check_checksum(archive, info)
                members = [archive.read(name) for name in (CONFIG, WEIGHTS)]
        except CheckpointError:
            raise
        except DAMAGE as error:
            raise CheckpointError(
                f"{path} is damaged or cut short ({error}). {AGAIN}"
            ) from error
    config = _read_config(path, members[0])
    shapes = _read_shapes(path, members[1])
    _check_sizes(path, config, shapes)
    return config, shapes


def check_shapes(path, weights, shapes):
    """Checks that a file holds the weights of a model.

    Args:
        path: path, for the message.
        weights: list of tuples of path, shape and dtype of each weight.
        shapes: Counter of the shapes in the file, see `read_keras_file`.

    Raises:
        CheckpointError: if it holds too few arrays of a shape.
    """
    needed = collections.Counter(shape for _, shape, _ in weights)
    for name, shape, _ in weights:
        if needed[shape] > shapes[shape]:
            raise CheckpointError(
                f"{path}: {WEIGHTS} holds {shapes[shape]} arrays of the shape {shape}, "
                f"and the model that {CONFIG} describes has {needed[shape]} such "
                f"weights ({name!r} is one). They do not belong together. {AGAIN}"
            )


def _check_members(path, archive):
    names = collections.Counter(archive.namelist())
    for name in (CONFIG, WEIGHTS):
        if name not in names:
            raise CheckpointError(
                f"{path} lacks {name}, which every file of `model.save` has. It holds: "
                f"{reprlib.repr(list(names))}. {AGAIN}"
            )
    for info in archive.infolist():
        if names[info.filename] > 1:
            raise CheckpointError(f"{path} holds {info.filename!r} twice. {AGAIN}")
        if info.file_size > LARGEST_RATIO * max(info.compress_size, 1024):
            raise CheckpointError(
                f"{path}: {info.filename} would grow from {info.compress_size:,} to "
                f"{info.file_size:,} bytes, which no saved model does. {AGAIN}"
            )
    size = archive.getinfo(CONFIG).file_size
    if size > LARGEST_CONFIG:
        raise CheckpointError(
            f"{path}: {CONFIG} has {size:,} bytes. That of a model has at most "
            f"{LARGEST_CONFIG:,}. {AGAIN}"
        )


def _check_checksum(archive, info):
    """Raises `BadZipFile` if a member is not what was stored."""
    with archive.open(info) as member:
        while member.read(2**20):
            pass


def _read_config(path, content):
    try:
        config = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{path}: {CONFIG} is not valid JSON ({error}). {AGAIN}"
        ) from error
    if not isinstance(config, dict) or not isinstance(config.get("config"), dict):
        raise CheckpointError(
            f"{path}: {CONFIG} does not describe a model. It holds: "
            f"{reprlib.repr(config)}. {AGAIN}"
        )
    return config


def _read_shapes(path, content):
    import h5py

    shapes, missing = collections.Counter(), []

    def note(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        shapes[item.shape or ()] += 1
        # An array may be declared and never stored: it would be made when it is read.
        if item.id.get_storage_size() < item.nbytes:
            missing.append(name)

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            file.visititems(note)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"{path}: {WEIGHTS} is damaged ({error}). {AGAIN}"
        ) from error
    if missing:
        raise CheckpointError(
            f"{path}: {WEIGHTS} declares {missing[0]!r} and does not hold all of its "
            f"numbers. {AGAIN}"
        )
    return shapes


def _check_sizes(path, config, shapes):
    """Raises for sizes beyond what is stored, before anything is built by them."""
    num_arrays = sum(shapes.values())
    largest = max((axis for shape in shapes for axis in shape), default=0)
    for key, size in _sizes(config):
        limit, what = largest, f"the largest axis in {WEIGHTS}"
        if key == "num_layers":
            limit, what = num_arrays, f"the number of arrays in {WEIGHTS}"
        if size > limit:
            raise CheckpointError(
                f"{path}: {CONFIG} says {key}={size}, above {limit}, {what}. They do "
                f"not belong together. {AGAIN}"
            )


def _sizes(config):
    """Pairs of name and value of the sizes in a config, at any depth."""
    described = list(_descriptions(config))
    names = {str(value.get("class_name")) for value in described}
    bound = not names.isdisjoint(WITHOUT_POSITIONS) and "max_sequence_length"
    for value in described:
        for key in SIZES:
            if key != bound and isinstance(value.get(key), int):
                yield key, value[key]


def _descriptions(config):
    """The dicts in a config, at any depth."""
    pending = [config]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending.extend(value)
        # The length that texts are truncated to is no size of a weight.
        elif (
            isinstance(value, dict)
            and value.get("class_name") != "TextPreprocessor"
            and not _is_foreign(value)
        ):
            pending.extend(value.values())
            yield value


def _is_foreign(value):
    """Whether a dict describes an object of a user's class, whose sizes are its own."""
    name, registered = value.get("class_name"), value.get("registered_name")
    own = {name for names in CLASSES.values() for name in names}
    return isinstance(registered, str) and ">" in registered and name not in own
