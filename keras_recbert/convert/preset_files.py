"""The JSON files of a preset, and what is checked before its weights are read."""

import hashlib
import json
import reprlib

from keras_recbert.convert.bert_config import read_object
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.core.json_files import file_sha256

FORMAT_VERSION = 3
CARD, CONFIG = "card.json", "config.json"
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
FILES = (CARD, CONFIG, WEIGHTS, VOCABULARY)
CONFIG_KEYS = ("format_version", "class", "arguments", "encoder", "preprocessor")
CARD_KEYS = (
    "format_version",
    "name",
    "class",
    "sizes",
    "num_parameters",
    "metrics",
    "source",
    "license",
    "versions",
    "date",
    "files",
    "sha256",
)
AGAIN = "Copy the preset again, or write it again with `save_preset`."


def read_card(directory):
    """Reads `card.json` and checks that it and the files it names are as written.

    Args:
        directory: pathlib.Path.

    Returns:
        dict.

    Raises:
        FileNotFoundError: if there is no card.
        CheckpointError: if it, or a file that it names, is missing or changed.
    """
    file = directory / CARD
    if not file.is_file():
        raise FileNotFoundError(
            f"There is no preset at {directory}: {file} is missing. "
            "`model.save_preset(directory)` writes a preset."
        )
    card = read_object(file)
    _check_version(file, card)
    _check_keys(file, "", card, CARD_KEYS)
    if card["sha256"] != checksum_of_card(card):
        raise CheckpointError(
            f"{file} was changed or damaged: its sha256 checksum is "
            f"{checksum_of_card(card)}, and the card names "
            f"{card['sha256']}. {AGAIN}"
        )
    _check_files(directory, card["files"])
    return card


def read_config(directory):
    """Reads `config.json` and checks its form.

    Args:
        directory: pathlib.Path.

    Returns:
        dict.

    Raises:
        CheckpointError: if it has another form.
    """
    config = read_object(directory / CONFIG)
    check_config(directory / CONFIG, config)
    return config


def _check_files(directory, files):
    known = (CONFIG, WEIGHTS, VOCABULARY)
    _check_keys(directory / CARD, "files", files, (CONFIG, WEIGHTS), (VOCABULARY,))
    for name in filter(files.__contains__, known):
        _check_keys(directory / CARD, name, files[name], ("bytes", "sha256"))
        file = directory / name
        if not file.is_file():
            raise CheckpointError(f"{file} is missing, which {CARD} names. {AGAIN}")
        # The size first: it finds a cut file without reading it.
        for what, measure in (("bytes", size_of), ("sha256", file_sha256)):
            found, expected = measure(file), files[name][what]
            if found != expected:
                raise CheckpointError(
                    f"{file} was changed or damaged: its {what} is {found}, and by "
                    f"{CARD} it must be {expected}. {AGAIN}"
                )


def check_config(file, config):
    """Raises `CheckpointError` if what is or goes into `config.json` is not plain.

    Args:
        file: path, for the message.
        config: dict.
    """
    _check_version(file, config)
    _check_keys(file, "", config, CONFIG_KEYS)
    models = [("", config)]
    if config["encoder"] is not None:
        models.append(("encoder", config["encoder"]))
        _check_keys(file, "encoder", config["encoder"], ("class", "arguments"))
    for where, described in models:
        where = f"{where}.arguments".lstrip(".")
        arguments = described["arguments"]
        plain = isinstance(arguments, dict) and all(
            _is_plain(value)
            or (key == "head" and _is_plain_dict(value, _is_head_argument))
            or (key == "pretrained_heads" and _is_plain_dict(value, _is_plain_dict))
            for key, value in arguments.items()
        )
        if not plain:
            # Keras takes some dicts for classes to import.
            raise CheckpointError(
                f"{file}: {where} must hold numbers, strings and lists of them. "
                f"It holds {reprlib.repr(arguments)}."
            )
        if not isinstance(described["class"], str):
            raise CheckpointError(
                f"{file}: a class is a string. It is "
                f"{reprlib.repr(described['class'])}."
            )
    if config["preprocessor"] is not None:
        described = config["preprocessor"]
        keys = ("class", "lowercase", "strip_accents", "arguments")
        optional = ("tokenizer", "num_oov_buckets", "read_masks")
        _check_keys(file, "preprocessor", described, keys, optional)
        if not _is_plain_dict(described["arguments"]):
            raise CheckpointError(
                f"{file}: preprocessor.arguments must hold numbers, strings and lists "
                f"of them. It holds {reprlib.repr(described['arguments'])}."
            )


def _is_plain(value):
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _is_plain_dict(value, is_valid=_is_plain):
    """Whether a value is a dict of plain values, as the `head` of a `TextModel` is."""
    return isinstance(value, dict) and all(map(is_valid, value.values()))


def _is_head_argument(value):
    """Whether it is an argument of a head, or of several heads the dict of one."""
    return _is_plain(value) or _is_plain_dict(value)


def _check_version(file, content):
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{file}: the format version is {reprlib.repr(version)}. This version of "
            f"keras_recbert reads version {FORMAT_VERSION}. The version that wrote "
            f"the preset can load it: {content.get('versions', 'not said')}."
        )


def _check_keys(file, where, value, needed, optional=()):
    where = f"{file}: {where}" if where else str(file)
    if not isinstance(value, dict):
        raise CheckpointError(
            f"{where} must be a JSON object. It is {reprlib.repr(value)}."
        )
    missing = [key for key in needed if key not in value]
    unknown = [key for key in value if key not in (*needed, *optional)]
    if missing or unknown:
        raise CheckpointError(
            f"{where} must have the keys {', '.join(needed)}"
            f"{''.join(f' (and may have {key})' for key in optional)}. "
            f"Missing: {missing}. Unknown: {unknown}. {AGAIN}"
        )


def size_of(file):
    """Size of a file in bytes."""
    return file.stat().st_size


def checksum_of_card(card):
    """sha256 checksum of all of a card but that checksum."""
    rest = {key: value for key, value in card.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
