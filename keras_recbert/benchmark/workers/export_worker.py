"""Writes trained models of this zoo in the forms that others serve them in."""

import pathlib

from worker_protocol import serve


def load():
    import tensorflow_text  # noqa: F401

    import keras_recbert.serving.litert  # noqa: F401

    return ["keras_recbert", "keras", "tensorflow"]


def prepare(job):
    """Loads or builds a model, and writes it in each form.

    `job["forms"]` has folders by forms. Of a form that the model cannot have `errors`
    says why; `task` is what the head does, None for an encoder.
    """
    import keras_recbert

    if "name" in job:
        words = keras_recbert.load(job["vocabulary_of"]).preprocessor.tokenizer
        model = keras_recbert.build(
            job["name"],
            task="classifier",
            num_classes=2,
            vocabulary=list(words.vocabulary),
        )
    else:
        model = keras_recbert.load(job["model"])
    errors = {}
    for form, folder in job["forms"].items():
        try:
            _write(model, form, pathlib.Path(folder))
        except ValueError as error:
            errors[form] = str(error)
    task = getattr(getattr(model, "head", None), "task", None)
    facts = {"parameters": model.count_params(), "errors": errors, "task": task}
    return (lambda: None), facts


def _write(model, form, folder):
    from keras_recbert.models.precision import in_precision
    from keras_recbert.serving.litert import write_litert
    from keras_recbert.serving.onnx import write_onnx

    if form in ("float32", "bfloat16"):
        in_precision(model, form).export_savedmodel(folder, fields=("text",))
    elif form in ("litert", "litert_int8"):
        folder.mkdir()
        write_litert(model, folder / "model.tflite", int8=form == "litert_int8")
    elif form == "onnx":
        folder.mkdir()
        write_onnx(model, folder / "model.onnx")
    elif form == "huggingface":
        _write_huggingface(in_precision(model, "float32"), folder)
    else:
        raise KeyError(f"There is no form {form!r}.")


def _write_huggingface(model, folder):
    """Writes a BERT for torch; Hugging Face has no head on the mean of its tokens."""
    import numpy as np

    if model.head.task != "classifier":
        raise ValueError("On torch a classifier answers.")
    reading = model.head.reading
    last = reading.layer in (None, -1, len(model.encoder.blocks))
    if (
        reading.pooling != "mean"
        or reading.concatenate not in (None, "none")
        or not last
    ):
        model.save_huggingface(folder)  # which says what it cannot keep
        return
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_huggingface(folder)
    kernel, bias = map(np.asarray, model.head.dense.get_weights())
    names = np.array(model.head.label_names)
    np.savez(folder / "mean_head.npz", kernel=kernel, bias=bias, names=names)


if __name__ == "__main__":
    serve(load, prepare)
