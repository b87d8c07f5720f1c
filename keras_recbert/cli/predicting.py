"""The command that predicts: for texts on the command line, or rows of a file."""

import os
import pathlib
from typing import Annotated

from tyro.conf import arg

import keras_recbert
from keras_recbert.config import PredictConfig
from keras_recbert.convert.hub_folder import local_folder
from keras_recbert.core.answering import only_answer
from keras_recbert.core.beam_options import needs_beam


def predict(config: Annotated[PredictConfig, arg(name="")]):
    """Predicts for texts, or for each row of a file; resumes a file after a stop.

    Of a SavedModel it needs TensorFlow and TF Text only. `--recipe FILE` takes the
    options from a YAML file; options beside it replace the file's.
    """
    if config.input is None and config.output is None:
        if config.text_column:
            raise ValueError("--text-column is for a file. Add --input FILE.")
        if not config.texts:
            raise ValueError(
                "There is nothing to ask: give one text or more, or a file: --input "
                "FILE --output FILE."
            )
        only_answer()
        from keras_recbert.serving.answers import print_answers

        model = local_folder(config.model)
        predictor = _load(model, config.head)
        print_answers(predictor, model, config.texts, config.pairs)
        return
    if config.texts or config.pairs:
        raise ValueError(
            "Give texts, or a file (--input FILE), not both. Pairs in a file are two "
            "columns: --text-column FIRST SECOND."
        )
    if config.input is None or config.output is None:
        missing = "--input" if config.input is None else "--output"
        raise ValueError(f"A file needs --input and --output. Add {missing} FILE.")
    if needs_beam(config.input, config.num_workers, config.beam_options):
        only_answer()  # a call at a time in each process, on its share of the cores
        from keras_recbert.serving.predict_beam import predict_beam

        predict_beam(
            config.model,
            config.input,
            config.output,
            config.text_column or (),
            config.batch_size,
            config.head,
            config.num_workers,
            config.beam_options,
            config.overwrite,
        )
        return
    only_answer(threads_of_an_op=1)  # a call a core
    from keras_recbert.serving.predict_file import predict_file

    model = local_folder(config.model)
    predict_file(
        model,
        lambda: _load(model, config.head),
        config.input,
        config.output,
        config.text_column or (),
        config.batch_size,
        config.encoding,
        config.overwrite,
        config.head,
    )


def _load(path, head):
    """A `Predictor` of a SavedModel, LiteRT or ONNX file, model.keras, preset, head."""
    from keras_recbert.serving.answers import model_predictor, savedmodel_predictor
    from keras_recbert.serving.savedmodel import MARKER

    # What is not on this disk may be gs://, which TensorFlow reads.
    if (pathlib.Path(path) / MARKER).is_file() or not os.path.exists(path):
        return savedmodel_predictor(path, head)
    suffix = pathlib.Path(path).suffix
    if suffix in (".tflite", ".onnx") and head is not None:
        raise ValueError(f"A file of {suffix} has one head. Leave --head out.")
    if suffix == ".tflite":
        from keras_recbert.serving.litert import read_litert

        return read_litert(path)
    if suffix == ".onnx":
        from keras_recbert.serving.onnx import read_onnx

        return read_onnx(path)
    model = keras_recbert.load(path)
    if not hasattr(model, "answer"):
        raise ValueError(
            f"{path} holds an encoder without a head for a task, which predicts "
            "nothing. Train one first: recbert finetune --weights."
        )
    if model.preprocessor is None:
        raise ValueError(
            f"{path} has no vocabulary, so it takes no texts. Build it with one, and "
            "write it again: keras_recbert.build(NAME, vocabulary=FILE, ...)."
        )
    return model_predictor(model, head)
