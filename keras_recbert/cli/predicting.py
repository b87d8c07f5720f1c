"""The command that predicts: for texts on the command line, or rows of a file."""

import pathlib
from typing import Annotated

from tyro.conf import Positional, arg

import keras_recbert


def predict(
    model: Positional[str],
    texts: Annotated[Positional[list[str]], arg(metavar="[TEXT ...]")],
    pairs: bool = False,
    input: str | None = None,
    output: str | None = None,
    text_column: list[str] | None = None,
    batch_size: int = 32,
    encoding: str = "utf-8",
    overwrite: bool = False,
):
    """Predicts for texts, or for each row of a file; resumes a file after a stop.

    Of a SavedModel it needs TensorFlow and TF Text only.

    Args:
        model: Folder of a SavedModel; for a file also a model.keras or a preset.
        texts: One text or more.
        pairs: The texts are pairs: first, second, first, second, ...
        input: A file in place of texts: .csv, .tsv, .jsonl, .parquet, or .txt with a
            text a line.
        output: The file to write, .csv, .tsv or .jsonl: the columns of the input,
            `prediction`, and `score`, its probability.
        text_column: One or two columns of the input; by default the only one, or those
            with usual names, such as text and text_pair.
        batch_size: Rows of the input that are answered at a time.
        encoding: Encoding of the input.
        overwrite: Replace the output if it exists, or was begun from something else.
    """
    if input is None and output is None:
        if text_column:
            raise ValueError("--text-column is for a file. Add --input FILE.")
        if not texts:
            raise ValueError(
                "There is nothing to ask: give one text or more, or a file: --input "
                "FILE --output FILE."
            )
        from keras_recbert.serving.answers import print_answers

        print_answers(model, texts, pairs)
        return
    if texts or pairs:
        raise ValueError(
            "Give texts, or a file (--input FILE), not both. Pairs in a file are two "
            "columns: --text-column FIRST SECOND."
        )
    if input is None or output is None:
        missing = "--input" if input is None else "--output"
        raise ValueError(f"A file needs --input and --output. Add {missing} FILE.")
    from keras_recbert.serving.predict_file import predict_file

    predict_file(
        model,
        lambda: _load(model),
        input,
        output,
        text_column or (),
        batch_size,
        encoding,
        overwrite,
    )


def _load(path):
    """A `Predictor` of a SavedModel, a model.keras or a preset."""
    from keras_recbert.serving.answers import model_predictor, savedmodel_predictor
    from keras_recbert.serving.savedmodel import MARKER

    if (pathlib.Path(path) / MARKER).is_file():
        return savedmodel_predictor(path)
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
    return model_predictor(model)
