"""Presets: a folder that holds a model of this package, whole and checked."""

import dataclasses
import datetime
import functools
import json
import pathlib
import sys

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.preset_files import (
    AGAIN,
    CARD,
    CONFIG,
    FILES,
    FORMAT_VERSION,
    VOCABULARY,
    WEIGHTS,
    check_config,
    checksum_of_card,
    read_card,
    read_config,
    size_of,
)
from keras_recbert.convert.preset_weights import (
    check_tensors,
    fill_weights,
    weights_by_name,
)
from keras_recbert.convert.safetensors_files import write_tensors
from keras_recbert.core.folders import check_folder, write_folder
from keras_recbert.core.json_files import file_sha256, to_json
from keras_recbert.core.names import UnknownNameError

PLAIN = "WordPieceTokenizer"  # of presets that name no other


@dataclasses.dataclass(frozen=True)
class Preset:
    """A preset whose files are those that its card names.

    Args:
        config: dict. `config.json`: class and arguments of the model, of its
            `encoder` (None for a bare encoder) and of its `preprocessor` (or None).
        card: dict. `card.json`: sizes, metrics, source, license, versions, checksums.
        path: pathlib.Path. The folder.
    """

    config: dict
    card: dict
    path: pathlib.Path

    @property
    def encoder_arguments(self):
        """Arguments of the encoder."""
        return (self.config["encoder"] or self.config)["arguments"]

    @property
    def encoder_class(self):
        """Name of the class of the encoder."""
        return (self.config["encoder"] or self.config)["class"]


def write_preset(
    model, directory, metrics=None, source=None, license=None, overwrite=False
):
    """Writes a model into a folder that `keras_recbert.load` reads.

    Files: `config.json`, `model.safetensors` (every weight by its path, in the dtype
    it has), `vocab.txt` (of a model with a preprocessor) and `card.json` (sizes,
    metrics, source, license, versions, size and sha256 checksum of each file, and of
    itself). No file names code to run. Not kept: the optimizer's state, what the
    model was compiled with, and `trainable` flags that were set by hand.

    The folder is written under a temporary name and renamed.

    Args:
        model: `RecBertEncoder` or a task model.
        directory: str or path. A folder that does not exist yet.
        metrics: optional dict of JSON, such as `{"SST-2 validation accuracy": 91.4}`.
        source: optional str. Where the weights come from.
        license: optional str. Under what terms they may be used.
        overwrite: bool. Replaces `directory` if it is a preset and nothing else.

    Raises:
        FileExistsError: if `directory` may not be written.
        TypeError: if `source` or `license` is no str.
        ValueError: if `metrics` is no dict of finite JSON, if a weight is not finite,
            or if the model could not be built again from its arguments.
    """
    directory = pathlib.Path(directory)
    check_folder(directory, FILES, overwrite)
    for key, value in (("source", source), ("license", license)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"`{key}` must be a str or None. Received: {value!r}.")
    metrics = _check_metrics({} if metrics is None else metrics)
    config = _describe(model)
    check_config(CONFIG, config)
    tensors = weights_by_name(model, functools.partial(_build_again, model, config))
    encoder = getattr(model, "encoder", model)
    arguments = (config["encoder"] or config)["arguments"]
    card = {
        "format_version": FORMAT_VERSION,
        "name": encoder.name,
        "class": type(model).__name__,
        "sizes": {key: arguments[key] for key in encoder.config},
        "num_parameters": model.count_params(),
        "metrics": metrics,
        "source": source,
        "license": license,
        "versions": _versions(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    with write_folder(directory, FILES, overwrite) as folder:
        if model.preprocessor is not None:
            tokenizer = model.preprocessor.tokenizer
            _write_vocabulary(tokenizer.vocabulary, folder / VOCABULARY)
        (folder / CONFIG).write_text(to_json(config), encoding="utf-8")
        write_tensors(tensors, folder / WEIGHTS)
        card["files"] = {
            file.name: {"bytes": size_of(file), "sha256": file_sha256(file)}
            for file in sorted(folder.iterdir())
        }
        card["sha256"] = checksum_of_card(card)
        (folder / CARD).write_text(to_json(card), encoding="utf-8")


def read_preset(directory):
    """Reads and checks a preset, all but the numbers in its weights.

    Args:
        directory: str or path.

    Returns:
        `Preset`.

    Raises:
        FileNotFoundError: if there is no preset at `directory`.
        CheckpointError: if a file is missing, is not the one that the card names, or
            holds what this version of the package cannot read.
    """
    directory = pathlib.Path(directory)
    card = read_card(directory)
    config = read_config(directory)
    if config["class"] != card["class"]:
        raise CheckpointError(
            f"{directory / CONFIG} says that the model is a {config['class']!r}, "
            f"{CARD} that it is a {card['class']!r}. {AGAIN}"
        )
    if (config["preprocessor"] is None) == (VOCABULARY in card["files"]):
        raise CheckpointError(
            f"{directory / CARD} must name {VOCABULARY} if and only if {CONFIG} "
            f"has a preprocessor. It names: {', '.join(card['files'])}. {AGAIN}"
        )
    return Preset(config, card, directory)


def load_preset(directory, classes):
    """Builds the model of a preset and fills its weights.

    Args:
        directory: str or path.
        classes: dict of name to class: those that a preset may name.

    Returns:
        The model; a bare encoder has its preprocessor as `preprocessor`.

    Raises:
        FileNotFoundError, CheckpointError: as `read_preset`; also if the preset names
            another class, if its arguments do not fit, or if a tensor is missing,
            unknown, of another shape or dtype, or not finite.
    """
    preset = read_preset(directory)
    file = preset.path / CONFIG
    for described in (preset.config, preset.config["encoder"]):
        if described is not None and described["class"] not in classes:
            raise CheckpointError(
                f"{file}: the class must be one of {', '.join(map(repr, classes))}. "
                f"It is {described['class']!r}. If it is an encoder of your own, "
                "import the module that adds it before you load."
            )
    try:
        preprocessor = _make_preprocessor(preset.config["preprocessor"], preset.path)
        build = functools.partial(_build, preset.config, preprocessor, classes)
        # Before memory is taken for sizes that nobody checked.
        check_tensors(build, preset.encoder_arguments, preset.path / WEIGHTS)
        model = build()
    except CheckpointError:
        raise
    except UnknownNameError as error:
        versions = preset.card["versions"]
        raise CheckpointError(
            f"{file} describes a model with a part that is not known here: {error} If "
            "it is a block, a head or a packer of your own, import the module that "
            f"adds it before you load; if not, load it with the version that wrote it: "
            f"{versions}."
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{file} does not describe a model of this version of keras_recbert "
            f"({error}). {AGAIN}"
        ) from error
    fill_weights(model, preset.path / WEIGHTS)
    return model


def _describe(model):
    """What `config.json` holds."""
    encoder = getattr(model, "encoder", None)
    return {
        "format_version": FORMAT_VERSION,
        **_class_and_arguments(model),
        "encoder": None if encoder is None else _class_and_arguments(encoder),
        "preprocessor": _describe_preprocessor(model.preprocessor),
    }


def _describe_preprocessor(preprocessor):
    from keras_recbert.text.packers import list_packers

    if preprocessor is None:
        return None
    name = type(preprocessor).__name__
    if name not in list_packers():
        raise ValueError(
            "A preset keeps a preprocessor that is registered (keras_recbert.text."
            f"register_packer). Received: a model with a {name} as `preprocessor`."
        )
    tokenizer = preprocessor.tokenizer
    kind = type(tokenizer).__name__
    return {
        "class": name,
        **({} if kind == PLAIN else {"tokenizer": kind}),
        **tokenizer.options(),
        "arguments": json.loads(to_json(preprocessor.arguments())),
    }


def _class_and_arguments(model):
    arguments = model.get_config()
    for key in ("encoder", "preprocessor"):
        arguments.pop(key, None)
    if "dtype" in arguments:
        # Keras would put a class and its module here, and import it on loading.
        arguments["dtype"] = model.policy.name
    arguments = json.loads(to_json(arguments))
    return {"class": type(model).__name__, "arguments": arguments}


def _make_preprocessor(described, directory):
    from keras_recbert.text.packers import get_packer
    from keras_recbert.text.vocabulary import load_vocabulary
    from keras_recbert.text.word_tokenizer import get_tokenizer

    if described is None:
        return None
    own = ("lowercase", "strip_accents", "num_oov_buckets", "read_masks")
    tokenizer = get_tokenizer(described.get("tokenizer", PLAIN))(
        load_vocabulary(directory / VOCABULARY),
        **{key: described[key] for key in own if key in described},
    )
    return get_packer(described["class"])(tokenizer, **described["arguments"])


def _build(config, preprocessor, classes):
    """The model that `config` describes, with initial weights."""
    make, arguments = classes[config["class"]], dict(config["arguments"])
    if config["encoder"] is None:
        model = make(**arguments)
        model.preprocessor = preprocessor
        return model
    described = config["encoder"]
    encoder = classes[described["class"]](**described["arguments"])
    fields = arguments.pop("fields")  # noticed by `fit`, no argument
    model = make(encoder=encoder, preprocessor=preprocessor, **arguments)
    model.fields = tuple(fields)
    return model


def _build_again(model, config):
    parts = (model, getattr(model, "encoder", model))
    classes = {type(part).__name__: type(part) for part in parts}
    return _build(config, model.preprocessor, classes)


def _write_vocabulary(vocabulary, file):
    from keras_recbert.text.vocabulary import save_vocabulary

    if vocabulary[0].startswith("\ufeff"):
        raise ValueError(
            f"The word piece {vocabulary[0]!r} cannot be the first of a vocabulary "
            "file: it starts with what readers take for a byte order mark."
        )
    save_vocabulary(vocabulary, file)


def _check_metrics(metrics):
    try:
        plain = json.loads(to_json(metrics))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`metrics` must be a dict of finite numbers, strings, lists and dicts. "
            f"Received: {metrics!r} ({error})."
        ) from error
    if not isinstance(metrics, dict) or list(plain) != list(metrics):
        raise ValueError(
            "`metrics` must be a dict with strings as keys, such as "
            f"{{'SST-2 validation accuracy': 91.4}}. Received: {metrics!r}."
        )
    return plain


def _versions():
    import keras
    import tensorflow as tf

    return {
        "keras_recbert": sys.modules["keras_recbert"].__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
