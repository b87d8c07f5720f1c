"""SavedModels on disk: the version that is served, and the ones that follow it."""

import dataclasses
import logging
import os
import pathlib
import re

import numpy as np
import tensorflow as tf
from google.protobuf import json_format

from keras_recbert.core.os_errors import in_words
from keras_recbert.serving.savedmodel import (
    MARKER,
    read_meta_graph,
    read_savedmodel,
    versions_on_disk,
)

LOG = logging.getLogger("keras_recbert.server")
DEFAULT = "serving_default"
OF_A_RUN = "savedmodel"  # what fine-tuning and distillation write into their folder
_NAME = re.compile(r"[A-Za-z0-9_.@+-]+")


class Signature:
    """A signature of a SavedModel as a function of NumPy arrays.

    Args:
        function: what `tf.saved_model.load(path).signatures` holds.

    Attributes:
        inputs, outputs: dicts of name to `tf.TensorSpec`.
        joins: bool. Whether requests may share a call: each tensor has a row an
            example, and rows of outputs are of one size whatever is beside them.
            Tags of words and scores of choices are as long as the longest of a call.
    """

    def __init__(self, function):
        self._function = function
        self.inputs = dict(function.structured_input_signature[1])
        self.outputs = dict(function.structured_outputs)
        specs = [*self.inputs.values(), *self.outputs.values()]
        self.joins = all(spec.shape.rank and spec.shape[0] is None for spec in specs)
        self.joins &= all(
            spec.shape[1:].is_fully_defined() for spec in self.outputs.values()
        )

    def __call__(self, columns):
        """A dict of arrays for a dict of arrays; errors are TensorFlow's."""
        tensors = {
            name: tf.constant(values, self.inputs[name].dtype)
            for name, values in columns.items()
        }
        outputs = self._function(**tensors)
        return {
            name: np.asarray(value, object if value.dtype == tf.string else None)
            for name, value in outputs.items()
        }


@dataclasses.dataclass(frozen=True)
class Version:
    """A loaded SavedModel: its number, its signatures, and their description.

    `first_answer` is what it answered to the text "a", a dict of arrays.
    """

    number: int
    signatures: dict
    signature_def: dict
    first_answer: dict


def load_version(number, path):
    """Loads a SavedModel and asks it once, as its first call takes longest.

    Args:
        number: int. Its number; 1 for a folder that has none.
        path: path of the folder.

    Returns:
        `Version`.

    Raises:
        ValueError: if it is damaged, has no signature `serving_default`, or does not
            answer one short text.
        FileNotFoundError: if there is none.
    """
    loaded = read_savedmodel(path, DEFAULT).loaded
    signatures = {name: Signature(own) for name, own in loaded.signatures.items()}
    default = signatures[DEFAULT]
    try:
        asked = {name: _example(spec) for name, spec in default.inputs.items()}
        answer = default(asked)
    except (tf.errors.OpError, ValueError) as error:
        raise ValueError(
            f"The SavedModel at {path} does not answer the text 'a': {reason(error)}. "
            "Write it anew: recbert export MODEL FOLDER."
        ) from error
    described = {
        name: json_format.MessageToDict(
            one,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
        )
        for name, one in read_meta_graph(path).signature_def.items()
    }
    return Version(number, signatures, described, answer)


def _example(spec):
    """One example; two of what it has a list of, as choices need another."""
    shape = [1, *(size or 2 for size in spec.shape[1:])] if spec.shape.rank else []
    if spec.dtype == tf.string:
        return np.full(shape, b"a", object)
    return np.zeros(shape, spec.dtype.as_numpy_dtype)


def reason(error):
    """What an op of TensorFlow says, without the place in the graph around it."""
    message = getattr(error, "message", "")
    found = re.search(r"([^\n]+)\n\t \[\[", message)
    return found[1].strip() if found else in_words(error)


class Model:
    """The highest version of a model that loads.

    Args:
        folder: str or path. A SavedModel, which is version 1 and stays as it was
            loaded; a folder of numbered ones, `1/saved_model.pb`; or the folder of a
            run that wrote `savedmodel/`.

    Attributes:
        name: str. Name of the folder, by which it is asked.
        version: `Version` that answers.
        damaged: dict of number to message, of versions on disk that did not load.

    Raises:
        FileNotFoundError: if the folder holds no SavedModel.
        ValueError: if none of them loads, or its name fits no address.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = name_of(folder)
        if (self.folder / OF_A_RUN / MARKER).is_file():
            self.folder /= OF_A_RUN
        self.version = None
        self._failed = {}  # number to (state of its files, message)
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"The name of the folder {folder} is that of the model in its address. "
                "Valid are letters of ASCII, digits and . @ + - _. Received: "
                f"{self.name!r}. Rename it, or make a link to it with another name."
            )
        if not versions_on_disk(self.folder):
            raise FileNotFoundError(
                f"There is no SavedModel at {folder}: it holds neither {MARKER}, nor "
                f"numbered versions such as 1/{MARKER}, nor {OF_A_RUN}/{MARKER} of a "
                f"run. Write one: recbert export MODEL {folder}."
            )
        self.refresh()
        if self.version is None:
            raise ValueError(next(iter(self.damaged.values())))

    @property
    def damaged(self):
        return {number: message for number, (_, message) in self._failed.items()}

    def refresh(self):
        """Loads the highest version on disk, if that is another than the one served.

        A damaged one is logged, and the next one below it is tried; it is tried again
        when its files change. Where nothing is left on disk, what is served stays.
        """
        found = versions_on_disk(self.folder)
        self._failed = {n: one for n, one in self._failed.items() if n in found}
        for number in sorted(found, reverse=True):
            if self.version is not None and number == self.version.number:
                return
            state = _state(found[number])
            if self._failed.get(number, (None, None))[0] == state:
                continue
            try:
                version = load_version(number, found[number])
            except (ValueError, OSError) as error:
                self._failed[number] = state, str(error)
                LOG.error("%s: version %d is left out. %s", self.name, number, error)
                continue
            self._failed.pop(number, None)
            before, self.version = self.version, version
            if before is not None:
                LOG.info(
                    "%s: version %d takes over from version %d.",
                    self.name,
                    number,
                    before.number,
                )
            return


def _state(folder):
    """Names, sizes and times of the files of a folder: another state is another try."""
    stats = ((path, path.stat()) for path in sorted(folder.rglob("*")))
    return [(str(path), one.st_size, one.st_mtime_ns) for path, one in stats]


def name_of(folder):
    """The name by which the model of a folder is asked; a link has its own."""
    return os.path.basename(os.path.abspath(folder))


def open_models(folders):
    """Loads the models of some folders.

    Args:
        folders: sequence of str or path.

    Returns:
        dict of name to `Model`.

    Raises:
        ValueError, FileNotFoundError: as `Model`; or if two have one name.
    """
    names = [name_of(folder) for folder in folders]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"Two folders have the name {name!r}, by which a model is asked. "
                f"Received: {', '.join(map(str, folders))}. Rename one, or make a link "
                "to it with another name."
            )
    models = map(Model, folders)
    return {model.name: model for model in models}
