"""What LiteRT and ONNX files share: packed ids in, scores out, and the files beside.

Beside `NAME.tflite` and `NAME.onnx` are `NAME.vocab.txt`, the vocabulary; `NAME.json`:
how texts become ids, names of labels, checksums; and `reference_tokenizer.py`, which
makes these ids in plain Python.
"""

import contextlib
import dataclasses
import hashlib
import pathlib

import numpy as np
import tensorflow as tf

from keras_recbert.core.folders import check_file, new_file
from keras_recbert.core.json_files import file_sha256, read_json, to_json
from keras_recbert.core.unicode_classes import (
    CJK,
    CONTROL,
    NONSPACING_MARK,
    PUNCTUATION,
    WHITESPACE,
)
from keras_recbert.models.precision import in_precision
from keras_recbert.serving.answers import Predictor
from keras_recbert.serving.savedmodel import PACKED
from keras_recbert.text.packers import get_packer
from keras_recbert.text.vocabulary import load_vocabulary
from keras_recbert.text.word_tokenizer import get_tokenizer

FORMAT_VERSION = 2  # 2 has the classes of characters
# Heads of one row of logits a text.
HEADS = ("classifier", "multilabel_classifier", "regressor")
TOKENIZER = pathlib.Path(__file__).with_name("reference_tokenizer.py")
_CHARACTERS = {
    # Halves of a surrogate pair, too, which have no UTF-8.
    "dropped": f"{CONTROL} D800-DFFF",
    "nonspacing_marks": NONSPACING_MARK,
    "spaces": WHITESPACE,
    "words_of_their_own": f"{PUNCTUATION} {CJK}",
}


@dataclasses.dataclass(frozen=True)
class PackedFormat:
    """A format of files.

    Attributes:
        name: str. What it is called, such as `"LiteRT"`.
        article: str. What stands before the name, `"A"` or `"An"`.
        suffix: str. How its files end.
        option: str. Its name on the command line.
    """

    name: str
    article: str
    suffix: str
    option: str

    def __str__(self):
        return f"{self.article} {self.name}"

    def side_files(self, path):
        """Paths of the vocabulary and the description of a model.

        Raises:
            ValueError: if the path does not end as such a file does.
        """
        if path.suffix != self.suffix:
            raise ValueError(
                f"{self} file ends with {self.suffix}. Received: {str(path)!r}. Try "
                f"{str(path.with_suffix(self.suffix))!r}."
            )
        return path.with_suffix(".vocab.txt"), path.with_suffix(".json")


def write_packed_file(model, path, file_format, convert, overwrite=False):
    """Writes a model in a format, and the files beside it: all of them or none.

    Files that are beside the path already and say the same stay, so that one name may
    have a file of each format.

    Args:
        model: `keras_recbert.tasks.text_model.TextModel` of one head on texts: a
            classifier, a multi-label classifier or a regressor.
        path: str or path.
        file_format: `PackedFormat`.
        convert: function of a model in float32 that returns the bytes of the file.
        overwrite: bool. Replaces files that exist and say something else.

    Raises:
        ValueError: if the model is none of these; if the path ends otherwise; as
            `convert`.
        FileExistsError: if a file exists and `overwrite` is False.
        OSError: if they cannot be written.
    """
    path = pathlib.Path(path)
    vocabulary, card = file_format.side_files(path)
    _check_model(model, file_format)
    words = "".join(f"{word}\n" for word in model.preprocessor.tokenizer.vocabulary)
    words = words.encode()
    contents = {
        vocabulary: words,
        path.with_name(TOKENIZER.name): TOKENIZER.read_bytes(),
    }
    description = _describe(model)
    checksum = {vocabulary.name: hashlib.sha256(words).hexdigest()}
    checksums = _checksums_of_the_same(card, {**description, "sha256": checksum})
    for file in (path, *contents, card):
        check_file(file)
        if file.exists() and not overwrite:
            same = file == card and checksums
            if not same and file.read_bytes() != contents.get(file):
                raise FileExistsError(
                    f"{file} exists already. Choose another path, or pass "
                    "overwrite=True (--overwrite) to replace it."
                )
    contents = {path: convert(in_precision(model, "float32")), **contents}
    with contextlib.ExitStack() as stack:
        # Their names are theirs in the reverse order: the model's comes last.
        for file, content in contents.items():
            written = stack.enter_context(new_file(file))
            written.write_bytes(content)
            if file == path:
                checksum[file.name] = file_sha256(written)
        written = stack.enter_context(new_file(card))
        checksums = {**checksums, **checksum}
        described = to_json({**description, "sha256": checksums})
        written.write_text(described, encoding="utf-8")


def read_side_files(path, file_format):
    """Reads the files beside a model that `write_packed_file` wrote.

    Args:
        path: path of the model.
        file_format: `PackedFormat`.

    Returns:
        Tuple of the packer of its texts and the description, a dict.

    Raises:
        FileNotFoundError: if one of the three files is missing.
        ValueError: if one is not the file that was written.
    """
    vocabulary, card = file_format.side_files(path)
    anew = f"recbert export MODEL {path} --format {file_format.option}"
    for file in (path, vocabulary, card):
        if not file.is_file():
            raise FileNotFoundError(
                f"There is no file {file}. {file_format} model is {path.name}, "
                f"{vocabulary.name} and {card.name}: {anew}."
            )
    described = read_json(card)
    for file in (path, vocabulary):
        if described["sha256"].get(file.name) != file_sha256(file):
            raise ValueError(
                f"{file} is not the file that {card.name} was written for. Write them "
                f"anew: {anew} --overwrite."
            )
    tokenizer = get_tokenizer(described["tokenizer"])(
        load_vocabulary(vocabulary), **described["tokenizer_options"]
    )
    packer = get_packer(described["packer"])(tokenizer, **described["packer_arguments"])
    return packer, described


def packed_predictor(packer, described, run):
    """A `Predictor` of texts.

    Args:
        packer, described: as of `read_side_files`.
        run: function of a dict of `PACKED`, int32 arrays `(batch_size,
            sequence_length)`, that gives a dict of arrays: the numbers of
            `Head.answer`.
    """

    def function(**texts):
        packed = packer(texts)
        rows = {name: packed[name].numpy() for name in PACKED}
        if not len(rows["token_ids"]):
            raise ValueError("There is nothing to ask: give one text or more.")
        answers = dict(run(rows))
        names = described["label_names"]
        if described["task"] == "classifier":
            labels = np.array(names, dtype=object)
            answers["label"] = labels[answers["scores"].argmax(axis=1)]
        if described["task"] == "multilabel_classifier":
            rows = [names] * len(answers["scores"])
            answers["label_names"] = np.array(rows, dtype=object)
        return {name: tf.constant(value) for name, value in answers.items()}

    return Predictor(function, tuple(described["fields"]))


def packed_answer(model):
    """Function of `PACKED`, in order, that gives the numbers of `Head.answer`."""

    def answer(*rows):
        answers = model.answer(
            model(dict(zip(PACKED, rows, strict=True)), training=False)
        )
        return {k: v for k, v in answers.items() if v.dtype != tf.string}

    return answer


def packed_signature(batch_size):
    """Specs of `PACKED`, of any length."""
    return [tf.TensorSpec([batch_size, None], tf.int32, name) for name in PACKED]


def conversion_error(model, file_format, why):
    """A `ValueError` for an encoder that was not converted.

    Args:
        model: what was to be converted.
        file_format: `PackedFormat`.
        why: str.
    """
    return ValueError(
        f"The encoder {model.encoder.name} was not converted: {why}. The encoders of "
        "`recbert list` convert; a block of your own does where its `call` is made of "
        f"ops that {file_format.name} has. A SavedModel takes any: recbert export "
        "MODEL FOLDER."
    )


def _checksums_of_the_same(card, description):
    """Checksums in a description that is there, if it is the same; else none.

    The same, with its vocabulary; it may have models beside.
    """
    if not card.is_file():
        return {}
    try:
        held = read_json(card)
    except ValueError:  # another file of this name, which is not replaced unasked
        return {}
    checksums = held.get("sha256", {}) if isinstance(held, dict) else {}
    same = {**description, "sha256": {**checksums, **description["sha256"]}}
    return checksums if held == same else {}


def _check_model(model, file_format):
    """Raises `ValueError` for a model that is not one row of scores a text."""
    task = getattr(getattr(model, "head", None), "task", None)
    if task not in HEADS:
        held = "an encoder without a head" if task is None else f"task {task!r}"
        raise ValueError(
            f"{file_format} file is written of a {', '.join(HEADS)}. Received: {held}. "
            "Others are served as a SavedModel: recbert export MODEL FOLDER."
        )
    if model.preprocessor is None:
        raise ValueError(
            "The model has no vocabulary, so it takes no texts. Build it with one: "
            "keras_recbert.build(NAME, vocabulary=FILE, ...)."
        )
    if model.long_texts != "truncate":
        raise ValueError(
            f"{file_format} file reads a text as one row. Received: a model with "
            f"long_texts={model.long_texts!r}. Write a SavedModel of it: recbert "
            "export MODEL FOLDER."
        )


def _describe(model):
    """What makes ids of texts and labels of scores, as JSON."""
    packer = model.preprocessor
    names = getattr(model.head, "label_names", None)
    return {
        "format_version": FORMAT_VERSION,
        "encoder": model.encoder.name,
        "task": model.head.task,
        "fields": list(model.fields),
        "label_names": None if names is None else list(names),
        "packer": type(packer).__name__,
        "packer_arguments": packer.arguments(),
        "tokenizer": type(packer.tokenizer).__name__,
        "tokenizer_options": packer.tokenizer.options(),
        "characters": {k: " ".join(v.split()) for k, v in _CHARACTERS.items()},
    }
