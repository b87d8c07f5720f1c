"""Puts a preset on a hub, or into a folder, with a model card."""

import os
import pathlib
import shutil
import tempfile

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.hub_folder import HUBS, downloaded, local_folder
from keras_recbert.convert.preset_files import (
    CARD,
    FILES,
    checksum_of_card,
    read_card,
    read_config,
)
from keras_recbert.core.folders import check_folder, write_folder
from keras_recbert.core.json_files import read_json, to_json
from keras_recbert.hub.names import HUGGING_FACE, is_hub_name, parse_hub_name
from keras_recbert.publish.model_card import model_card, without_folders

MODEL_CARD = "README.md"
PUSHED = (*FILES, MODEL_CARD)
# As `keras_recbert.train.run_folder` names them.
PRESET, RESULTS = "preset", "results.json"


def push(
    source, target, private=False, licence=None, data_licence=None, overwrite=False
):
    """Puts a preset and its model card on a hub, or into a folder.

    Everything is checked before anything is sent. On Hugging Face it is one commit; a
    folder is written under a temporary name and renamed.

    Args:
        source: str or path. A preset, or the folder of a finished run of `recbert
            finetune`, `distill` or `pretrain`, whose `results.json` the card tells.
        target: str or path. `"hf://user/name"`,
            `"kaggle://owner/model/keras/variation"`, or a folder that does not exist
            yet.
        private: bool. On Hugging Face: nobody else sees the model.
        licence: str, such as `"apache-2.0"`. Under what terms the weights may be used;
            by default what the preset says.
        data_licence: str. The terms of the data that it learned from; by default those
            that the publishers of its tasks state.
        overwrite: bool. Of a folder: replaces one that a push wrote.

    Returns:
        str. What was written, and where.

    Raises:
        FileNotFoundError: if there is nothing at `source`.
        ValueError: if there is no preset, it is damaged, `results.json` is of another
            run, or arguments do not fit; says what to do.
        FileExistsError: if the folder may not be written.
        PermissionError, ConnectionError, ImportError: if the hub does not take it.
    """
    for argument, value in (("licence", licence), ("data_licence", data_licence)):
        if value is not None and not value.strip():
            raise ValueError(f"`{argument}` is empty. Name one, such as apache-2.0.")
    name = _check_target(target, private, overwrite)
    preset, results = _find_preset(source)
    card = _public_card(read_card(preset), preset, licence)
    config = read_config(preset)
    if results is not None:
        _check_results(results, card, preset)
    shown = pathlib.Path(target).absolute().name if name is None else str(name)
    readme = model_card(card, config, results, shown, data_licence)
    if name is None:
        with write_folder(target, PUSHED, overwrite) as folder:
            _fill(folder, preset, card, readme)
        return str(target)
    hub = HUBS[name.hub]
    hub.check_ready()
    with tempfile.TemporaryDirectory() as folder:
        _fill(pathlib.Path(folder), preset, card, readme)
        written = hub.upload(name, folder, private, card["license"])
    downloaded.cache_clear()  # a name may now be another revision
    return written


def _check_target(target, private, overwrite):
    """The `HubName` of a target, or None of a folder."""
    text = os.fspath(target)
    if not is_hub_name(text):
        if "://" in text:
            raise ValueError(
                "A preset is pushed to hf://user/name, to "
                "kaggle://owner/model/keras/variation or to a folder. Received: "
                f"{text!r}."
            )
        if private:
            raise ValueError(
                "A folder is as private as its disk. Received: private beside "
                f"{text!r}. Leave private (--private) out, or push to hf://user/name."
            )
        check_folder(text, PUSHED, overwrite)
        return None
    name = parse_hub_name(text)
    if name.revision is not None:
        raise ValueError(
            "A push makes a revision of its own. Received: "
            f"{text!r}. Push to {name.hub}://{name.model}."
        )
    if overwrite:
        raise ValueError(
            f"A hub keeps what was pushed before. Received: overwrite beside {text!r}. "
            "Leave overwrite (--overwrite) out."
        )
    if private and name.hub != HUGGING_FACE:
        raise ValueError(
            "Kaggle keeps a new model private until its page says otherwise. Leave "
            f"private (--private) out. Received: {text!r}."
        )
    return name


def _find_preset(source):
    """The folder of a preset, and what `results.json` of its run holds, or None."""
    source = pathlib.Path(local_folder(source))
    if (source / CARD).is_file():
        beside = source.absolute().parent / RESULTS
        is_of_run = source.absolute().name == PRESET and beside.is_file()
        return source, _read_results(beside) if is_of_run else None
    if (source / PRESET / CARD).is_file():
        if not (source / RESULTS).is_file():
            raise ValueError(
                f"The run in {source} is not finished: it has no {RESULTS}. Repeat its "
                f"command, which resumes it; or push the preset alone: "
                f"{source / PRESET}."
            )
        return source / PRESET, _read_results(source / RESULTS)
    if not source.exists():
        raise FileNotFoundError(
            f"There is nothing at {source}. Expected a preset, or the folder of a run "
            "of `recbert finetune`, `distill` or `pretrain`."
        )
    raise ValueError(f"{source} holds no preset. {_what_to_do(source)}")


def _read_results(file):
    try:
        return read_json(file)
    except ValueError as error:
        raise CheckpointError(
            f"{file} is damaged: {error}. Push the preset from a folder of its own."
        ) from error


def _what_to_do(source):
    if (source / "saved_model.pb").is_file():
        return (
            "It is a SavedModel, a graph that cannot be trained further. Push what it "
            "was exported from: the folder of the run, or a preset "
            "(`recbert convert RUN/model.keras PRESET`)."
        )
    if source.suffix == ".keras" or (source / "model.safetensors").is_file():
        return f"Make one of it: recbert convert {source} PRESET, then push PRESET."
    return (
        "Expected card.json, as `model.save_preset(folder)` writes it, or the folder "
        "of a run of `recbert finetune`, `distill` or `pretrain`."
    )


def _public_card(card, preset, licence):
    """The card of a preset as others may see it, with a licence if one is given."""
    if licence is not None and card["license"] not in (None, licence):
        raise ValueError(
            f"The card of {preset} says that the licence is {card['license']!r}. "
            f"Received: licence={licence!r}. Leave licence (--licence) out, or write "
            "the preset again with the right one."
        )
    source = without_folders(card["source"])
    card = {**card, "license": licence or card["license"], "source": source}
    return {**card, "sha256": checksum_of_card(card)}


def _check_results(results, card, preset):
    """Raises if a `results.json` is not of the run that wrote a preset."""
    is_of_a_run = isinstance(results, dict) and isinstance(results.get("config"), dict)
    found = results.get("scores") if is_of_a_run else None
    if found is None or found != card["metrics"].get("scores"):
        raise CheckpointError(
            f"{preset.parent / RESULTS} is not of the run that wrote {preset}: their "
            f"scores differ. Expected: {card['metrics'].get('scores')}. Received: "
            f"{found}. Push a copy of the preset from a folder of its own."
        )


def _fill(folder, preset, card, readme):
    """Writes what is pushed: the files that the card names, the card, the README."""
    for file in card["files"]:
        shutil.copyfile(preset / file, folder / file)
    (folder / CARD).write_text(to_json(card), encoding="utf-8")
    (folder / MODEL_CARD).write_text(readme, encoding="utf-8")
    read_card(folder)  # what is sent is what the card says
