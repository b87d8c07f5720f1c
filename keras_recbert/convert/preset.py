"""Presets: a folder that holds a model of this package, whole and checked."""

import dataclasses
import datetime
import hashlib
import json
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from keras_recbert.convert.bert_config import read_json
from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.folders import check_folder, write_folder

FORMAT_VERSION = 1
CARD, CONFIG = "card.json", "config.json"
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
CONFIG_KEYS = ("format_version", "class", "arguments", "backbone", "text_front")
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
# Keras's names of the dtypes that weights may have: those in safetensors.
DTYPES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}
AGAIN = "Copy the preset again, or write it again with `save_preset`."


@dataclasses.dataclass(frozen=True)
class Preset:
    """A preset whose files are those that its card names.

    Args:
        config: dict. `config.json`: class and arguments of the model, of its
            `backbone` (None for a bare encoder) and of its `text_front` (or None).
        card: dict. `card.json`: sizes, metrics, source, license, versions, sums.
        path: pathlib.Path. The folder.
    """

    config: dict
    card: dict
    path: pathlib.Path


def write_preset(
    model, directory, metrics=None, source=None, license=None, overwrite=False
):
    """Writes a model into a folder that `keras_recbert.load` reads.

    Files: `config.json`, `model.safetensors` (every weight by its path, in the dtype
    it has), `vocab.txt` (of a model with a text front) and `card.json` (sizes,
    metrics, source, license, versions, size and sha256 sum of each file, and of
    itself). No file names code to run. Not kept: the optimizer's state, what the
    model was compiled with, and `trainable` flags that were set by hand.

    The folder is written under a temporary name and renamed.

    Args:
        model: `RecBertBackbone` or a task model.
        directory: str or path. A folder that does not exist yet.
        metrics: optional dict of JSON, such as `{"SST-2 dev accuracy": 91.4}`.
        source: optional str. Where the weights come from.
        license: optional str. Under what terms they may be used.
        overwrite: bool. Replaces `directory` if it is a preset.

    Raises:
        FileExistsError: if `directory` may not be written.
        TypeError: if `source` or `license` is no str.
        ValueError: if `metrics` is no dict of finite JSON, if a weight is not finite,
            or if the model could not be built again from its arguments.
    """
    from safetensors.numpy import save_file

    check_folder(directory, CARD, overwrite)
    for key, value in (("source", source), ("license", license)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"`{key}` must be a str or None. Received: {value!r}.")
    metrics = _check_metrics({} if metrics is None else metrics)
    config = _describe(model)
    tensors = _read_weights(model, config)
    encoder = getattr(model, "backbone", model)
    card = {
        "format_version": FORMAT_VERSION,
        "name": encoder.name,
        "class": type(model).__name__,
        "sizes": encoder.config,
        "num_parameters": model.count_params(),
        "metrics": metrics,
        "source": source,
        "license": license,
        "versions": _versions(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    with write_folder(directory, CARD, overwrite) as folder:
        if model.preprocessor is not None:
            tokenizer = model.preprocessor.tokenizer
            _write_vocabulary(tokenizer.vocabulary, folder / VOCABULARY)
        (folder / CONFIG).write_text(_to_json(config), encoding="utf-8")
        save_file(tensors, folder / WEIGHTS)
        card["files"] = {
            file.name: {"bytes": file.stat().st_size, "sha256": _sum(file)}
            for file in sorted(folder.iterdir())
        }
        card["sha256"] = _sum_of_card(card)
        (folder / CARD).write_text(_to_json(card), encoding="utf-8")


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
    if not (directory / CARD).is_file():
        raise FileNotFoundError(
            f"There is no preset at {directory}: {directory / CARD} is missing. "
            "`model.save_preset(directory)` writes a preset."
        )
    card = read_json(directory / CARD)
    _check_version(directory / CARD, card)
    _check_keys(directory / CARD, "", card, CARD_KEYS)
    if card["sha256"] != _sum_of_card(card):
        raise CheckpointError(
            f"{directory / CARD} was changed or damaged: its sha256 sum is "
            f"{_sum_of_card(card)}, and it says {card['sha256']!r}. {AGAIN}"
        )
    _check_files(directory, card["files"])
    config = read_json(directory / CONFIG)
    _check_config(directory / CONFIG, config)
    if config["class"] != card["class"]:
        raise CheckpointError(
            f"{directory / CONFIG} says that the model is a {config['class']!r}, "
            f"{CARD} that it is a {card['class']!r}. {AGAIN}"
        )
    if (config["text_front"] is None) == (VOCABULARY in card["files"]):
        raise CheckpointError(
            f"{directory / CARD} must name {VOCABULARY} if and only if {CONFIG} "
            f"has a text front. It names: {', '.join(card['files'])}. {AGAIN}"
        )
    return Preset(config, card, directory)


def load_preset(directory, classes):
    """Builds the model of a preset and fills its weights.

    Args:
        directory: str or path.
        classes: dict of name to class: those that a preset may name.

    Returns:
        The model; a bare encoder has its text front as `preprocessor`.

    Raises:
        FileNotFoundError, CheckpointError: as `read_preset`; also if the preset names
            another class, if its arguments do not fit, or if a tensor is missing,
            unknown, of another shape or dtype, or not finite.
    """
    preset = read_preset(directory)
    file = preset.path / CONFIG
    for described in (preset.config, preset.config["backbone"]):
        if described is not None and described["class"] not in classes:
            raise CheckpointError(
                f"{file}: the class must be one of {', '.join(map(repr, classes))}. "
                f"It is {described['class']!r}."
            )
    try:
        preprocessor = _make_text_front(preset.config["text_front"], preset.path)
        model = _build(preset.config, preprocessor, classes)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{file} does not describe a model of this version of keras_recbert "
            f"({error}). {AGAIN}"
        ) from error
    _fill_weights(model, preset.path / WEIGHTS)
    return model


# Models as plain JSON ------------------------------------------------------------


def _describe(model):
    """What `config.json` holds."""
    preprocessor, text_front = model.preprocessor, None
    if preprocessor is not None:
        text_front = {
            "lowercase": preprocessor.tokenizer.lowercase,
            "strip_accents": preprocessor.tokenizer.strip_accents,
            "sequence_length": preprocessor.sequence_length,
            "max_sequence_length": preprocessor.max_sequence_length,
            "truncation": preprocessor.truncation,
        }
    backbone = getattr(model, "backbone", None)
    return {
        "format_version": FORMAT_VERSION,
        **_class_and_arguments(model),
        "backbone": None if backbone is None else _class_and_arguments(backbone),
        "text_front": text_front,
    }


def _class_and_arguments(model):
    arguments = model.get_config()
    for key in ("backbone", "preprocessor"):
        arguments.pop(key, None)
    if "dtype" in arguments:
        # Keras would put a class and its module here, and import it on loading.
        arguments["dtype"] = model.policy.name
    arguments = json.loads(_to_json(arguments))
    return {"class": type(model).__name__, "arguments": arguments}


def _make_text_front(arguments, directory):
    from keras_recbert.text.text_preprocessor import TextPreprocessor
    from keras_recbert.text.vocabulary import load_vocabulary
    from keras_recbert.text.wordpiece_tokenizer import WordPieceTokenizer

    if arguments is None:
        return None
    arguments = dict(arguments)
    tokenizer = WordPieceTokenizer(
        load_vocabulary(directory / VOCABULARY),
        lowercase=arguments.pop("lowercase"),
        strip_accents=arguments.pop("strip_accents"),
    )
    return TextPreprocessor(tokenizer, **arguments)


def _build(config, preprocessor, classes):
    """The model that `config` describes, with initial weights."""
    make, arguments = classes[config["class"]], dict(config["arguments"])
    if config["backbone"] is None:
        model = make(**arguments)
        model.preprocessor = preprocessor
        return model
    described = config["backbone"]
    backbone = classes[described["class"]](**described["arguments"])
    num_texts = arguments.pop("num_texts", 1)  # learned by `fit`, no argument
    model = make(backbone=backbone, preprocessor=preprocessor, **arguments)
    model.num_texts = num_texts
    return model


# Weights -------------------------------------------------------------------------


def _read_weights(model, config):
    """All weights as arrays, by the names they have in a model built anew.

    Building one without numbers costs a second, and shows that the preset will load.
    """
    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            twin = thread.submit(_list_weights_of_twin, model, config).result()
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"This model cannot be a preset: it is not built again ({error})."
            ) from error
    tensors = {}
    for weight, (name, shape, dtype) in zip(model.weights, twin, strict=False):
        # A name scope around the model stands before its path.
        if not f"/{weight.path}".endswith(f"/{name}"):
            break
        if (tuple(weight.shape), weight.dtype) != (shape, dtype) or name in tensors:
            break
        tensors[name] = weight.numpy()
    if not len(tensors) == len(model.weights) == len(twin) or not all(
        dtype in DTYPES for _, _, dtype in twin
    ):
        raise ValueError(
            "This model cannot be a preset: built again from its arguments it has "
            f"{len(twin)} weights, and it has {len(model.weights)}; they agree up to "
            f"number {len(tensors)}. Quantized models and encoders with LoRA adapters "
            "have weights that their arguments do not name: save the task model, or "
            "what `keras_recbert.tasks.merge_adapters(encoder)` gives."
        )
    for name, tensor in tensors.items():
        if not np.all(np.isfinite(tensor)):
            raise ValueError(
                f"The weight {name!r} holds NaN or infinite numbers, so nothing is "
                "written. Did the training diverge? Try a lower learning rate."
            )
    return tensors


def _list_weights_of_twin(model, config):
    """Names, shapes and dtypes of the weights of a model built from `config`.

    Runs in a thread of its own, as `builder.count_parameters` does and says why.
    """
    import keras

    parts = (model, getattr(model, "backbone", model))
    classes = {type(part).__name__: type(part) for part in parts}
    with keras.StatelessScope(initialize_variables=False):
        twin = _build(config, model.preprocessor, classes)
        return [(w.path, tuple(w.shape), w.dtype) for w in twin.weights]


def _fill_weights(model, file):
    from safetensors import SafetensorError, safe_open

    weights = {weight.path: weight for weight in model.weights}
    try:
        with safe_open(file, "numpy") as tensors:
            _check_names(file, list(tensors.keys()), list(weights))
            for name, weight in weights.items():
                stored = tensors.get_slice(name)
                found = (tuple(stored.get_shape()), stored.get_dtype())
                needed = (tuple(weight.shape), DTYPES[weight.dtype])
                if found != needed:
                    raise CheckpointError(
                        f"{file}: the tensor {name!r} has shape and dtype "
                        f"{found}. By {CONFIG} they must be {needed}. {AGAIN}"
                    )
                tensor = tensors.get_tensor(name)
                if not np.all(np.isfinite(tensor)):
                    raise CheckpointError(
                        f"{file}: the tensor {name!r} holds NaN or infinite numbers. "
                        f"{AGAIN}"
                    )
                weight.assign(tensor)
    except SafetensorError as error:
        raise CheckpointError(
            f"{file} is damaged or cut short ({error}). {AGAIN}"
        ) from error


def _check_names(file, found, needed):
    for what, names in (
        ("lacks", [name for name in needed if name not in found]),
        ("holds, beside those of the model,", [n for n in found if n not in needed]),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise CheckpointError(
                f"{file} {what} the tensor {sorted(names)[0]!r}{more}. The model that "
                f"{CONFIG} describes has {len(needed)} tensors. {AGAIN}"
            )


# Files ---------------------------------------------------------------------------


def _write_vocabulary(vocabulary, file):
    from keras_recbert.text.vocabulary import load_vocabulary, save_vocabulary

    save_vocabulary(vocabulary, file)
    if load_vocabulary(file) != list(vocabulary):
        raise ValueError(
            f"The word piece {vocabulary[0]!r} cannot be the first of a vocabulary "
            "file: it starts with what readers take for a byte order mark."
        )


def _check_files(directory, files):
    known = (CONFIG, WEIGHTS, VOCABULARY)
    _check_keys(directory / CARD, "files", files, (CONFIG, WEIGHTS), (VOCABULARY,))
    for name in filter(files.__contains__, known):
        _check_keys(directory / CARD, name, files[name], ("bytes", "sha256"))
        file = directory / name
        if not file.is_file():
            raise CheckpointError(f"{file} is missing, which {CARD} names. {AGAIN}")
        # Sizes first: they find a cut file without reading it.
        for what, found in (
            ("bytes", lambda file: file.stat().st_size),
            ("sha256", _sum),
        ):
            found, expected = found(file), files[name][what]
            if found != expected:
                what = {"bytes": "size in bytes", "sha256": "sha256 sum"}[what]
                raise CheckpointError(
                    f"{file} was changed or damaged: its {what} is {found}, and by "
                    f"{CARD} it must be {expected}. {AGAIN}"
                )


def _check_config(file, config):
    _check_version(file, config)
    _check_keys(file, "", config, CONFIG_KEYS)
    models = [("", config)]
    if config["backbone"] is not None:
        models.append(("backbone", config["backbone"]))
        _check_keys(file, "backbone", config["backbone"], ("class", "arguments"))
    for where, described in models:
        where = f"{where}.arguments".lstrip(".")
        arguments = described["arguments"]
        if not isinstance(arguments, dict) or not all(
            map(_is_plain, arguments.values())
        ):
            # Keras takes some dicts for classes to import.
            raise CheckpointError(
                f"{file}: {where} must hold numbers, strings and lists of them. "
                f"It holds {arguments!r}."
            )
        if not isinstance(described["class"], str):
            raise CheckpointError(
                f"{file}: a class is a string. It is {described['class']!r}."
            )
    if config["text_front"] is not None:
        keys = ("lowercase", "strip_accents", "sequence_length")
        keys += ("max_sequence_length", "truncation")
        _check_keys(file, "text_front", config["text_front"], keys)


def _is_plain(value):
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _check_version(file, content):
    version = content.get("format_version")
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{file}: the format version is {version!r}. This version of "
            f"keras_recbert reads version {FORMAT_VERSION}. The version that wrote "
            f"the preset can load it: {content.get('versions', 'not said')}."
        )


def _check_keys(file, where, value, needed, optional=()):
    where = f"{file}: {where}" if where else str(file)
    if not isinstance(value, dict):
        raise CheckpointError(f"{where} must be a JSON object. It is {value!r}.")
    missing = [key for key in needed if key not in value]
    unknown = [key for key in value if key not in (*needed, *optional)]
    if missing or unknown:
        raise CheckpointError(
            f"{where} must have the keys {', '.join(needed)}"
            f"{''.join(f' (and may have {key})' for key in optional)}. "
            f"Missing: {missing}. Unknown: {unknown}. {AGAIN}"
        )


def _check_metrics(metrics):
    try:
        plain = json.loads(_to_json(metrics))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`metrics` must be a dict of finite numbers, strings, lists and dicts. "
            f"Received: {metrics!r} ({error})."
        ) from error
    if not isinstance(metrics, dict) or list(plain) != list(metrics):
        raise ValueError(
            "`metrics` must be a dict with strings as keys, such as "
            f"{{'SST-2 dev accuracy': 91.4}}. Received: {metrics!r}."
        )
    return plain


def _to_json(value):
    """JSON of finite numbers; NumPy's scalars become plain ones."""

    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        raise TypeError(f"{value!r} of type {type(value).__name__} is no JSON")

    # Escaped, so that no encoding and no editor changes a character.
    return json.dumps(value, indent=2, allow_nan=False, default=plain) + "\n"


def _sum(file):
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sum_of_card(card):
    """sha256 sum of all of a card but that sum."""
    rest = {key: value for key, value in card.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _versions():
    import keras
    import tensorflow as tf

    # Loaded, being the parent; to import it here would turn the arrows back.
    package = sys.modules[__name__.partition(".")[0]]
    return {
        "keras_recbert": package.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
