"""Commands that turn models into files of other kinds: export, convert."""

import pathlib
from typing import Literal

from tyro.conf import Positional

import keras_recbert
from keras_recbert.core.folders import check_folder


def export(
    model: Positional[str],
    output: Positional[str],
    fields: tuple[str, ...] | None = None,
    format: Literal["savedmodel", "litert", "onnx"] | None = None,
    version: int | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    int8: bool = False,
    gradients: bool = False,
    overwrite: bool = False,
):
    """Writes a SavedModel that answers raw strings, or a file for small devices.

    The SavedModel of an encoder embeds raw strings.

    Args:
        model: A model.keras written by `recbert finetune` or `model.save`, a preset, or
            a BERT of another tool. Of an encoder the SavedModel gives `embeddings`: the
            mean of the last block's tokens at length 1.
        output: Folder of the SavedModel, or a file that ends with .tflite or .onnx.
        fields: Of a SavedModel, what an example has: text, or text text_pair; by
            default what the model was trained on.
        format: savedmodel; or litert or onnx, packed ids to scores by ops of these
            formats, with the vocabulary and a tokenizer in files beside. By default
            that of the file's end, else savedmodel.
        version: Of a SavedModel, its number: the folder then is one that TensorFlow
            Serving loads, FOLDER/VERSION/saved_model.pb with requests to warm it up and
            the files that configure the server beside it.
        precision: Of a SavedModel: bfloat16, weights of half the bytes; by default
            that of the model.
        int8: Of litert: weights of 8 bits, a quarter of the bytes.
        gradients: Of the SavedModel of a classifier or regressor: a signature that
            tells what an answer owes to each token, by which `recbert play` colours
            words.
        overwrite: Replace the folder if it exists.
    """
    if format is None:
        formats = {".tflite": "litert", ".onnx": "onnx"}
        format = formats.get(pathlib.Path(output).suffix, "savedmodel")
    if format != "litert" and int8:
        raise ValueError("--int8 is for LiteRT files. Add --format litert.")
    for name, value in (("fields", fields), ("version", version)):
        if format != "savedmodel" and value is not None:
            raise ValueError(
                f"--{name} is for a SavedModel. A file of {format} has the fields that "
                f"the model was trained on, and no version. Leave --{name} out."
            )
    if format != "savedmodel" and gradients:
        raise ValueError("--gradients is for a SavedModel. Leave it out.")
    if format != "savedmodel" and precision is not None:
        raise ValueError("--precision is for a SavedModel. Smaller LiteRT: --int8.")
    loaded = keras_recbert.load(model)
    if isinstance(loaded, keras_recbert.tasks.Pretrainer):
        raise ValueError(
            f"{model} holds an encoder with the heads of its pre-training. Take the "
            f"encoder first: recbert convert {model} FOLDER, then export FOLDER."
        )
    if format != "savedmodel":
        _export_packed(loaded, output, format, int8, overwrite)
        return
    if precision is not None:
        loaded = _in_precision(loaded, precision)
    if fields is None:
        fields = getattr(loaded, "fields", ("text",))  # an encoder's
    if version is not None:
        _export_bundle(loaded, output, version, fields, overwrite, gradients)
        return
    from keras_recbert.serving.input_x_gradient import check_gradients
    from keras_recbert.serving.savedmodel import saved_model_cli_line

    options = {}
    if gradients:
        check_gradients(loaded)  # an encoder's knows no such option
        options["gradients"] = True
    loaded.export_savedmodel(output, fields=fields, overwrite=overwrite, **options)

    if loaded.preprocessor.text_field is not None:
        fields = (loaded.preprocessor.text_field,)
    lists = [name for name in loaded.preprocessor.list_fields if name in fields]
    texts = "'a text' 'another' --pairs" if len(fields) == 2 else "'a sentence'"
    if lists:
        texts = "'a text' " * (len(fields) - 1) + "'one' 'two'"
    print(
        f"Wrote {output}. Query it: recbert predict {output} {texts}\n"
        "TensorFlow's saved_model_cli needs the ops of TF Text, so call it as: "
        f"{saved_model_cli_line(output, fields, lists)}"
    )


def _in_precision(model, precision):
    from keras_recbert.models.precision import in_precision

    if not hasattr(model, "encoder"):
        raise ValueError(
            "--precision is of a model with a head. Received: an encoder. Leave it out."
        )
    return in_precision(model, precision)


def _export_bundle(model, output, version, fields, overwrite, gradients):
    from keras_recbert.serving.bundle import write_bundle

    options = {"overwrite": overwrite, "gradients": gradients}
    written = write_bundle(model, output, version, fields, **options)
    print(
        f"Wrote {written}, and beside it what TensorFlow Serving needs: README.md says "
        f"how to start it. Try it first: recbert check {output}"
    )


def check(model: Positional[str]):
    """Loads a SavedModel as a server does, which has TensorFlow and TF Text alone.

    Replays the requests that warm it up, and lists the ops that TensorFlow lacks with
    the first release of TF Text that has them.

    Args:
        model: A SavedModel, or a folder of numbered versions, of which the highest is
            checked.
    """
    from keras_recbert.serving.check import check_bundle

    found = check_bundle(model)
    print(found)
    if found.refused:
        raise ValueError(
            f"{found.path} has ops that not every server knows: "
            f"{', '.join(found.refused)}."
        )


def _export_packed(model, output, format, int8, overwrite):
    from keras_recbert.serving.packed_file import TOKENIZER

    if format == "litert":
        from keras_recbert.serving.litert import write_litert

        write_litert(model, output, int8=int8, overwrite=overwrite)
    else:
        from keras_recbert.serving.onnx import write_onnx

        write_onnx(model, output, overwrite=overwrite)
    path = pathlib.Path(output)
    print(
        f"Wrote {output} ({path.stat().st_size / 1e6:.1f} MB) with "
        f"{path.with_suffix('.vocab.txt').name}, {path.with_suffix('.json').name} and "
        f"{TOKENIZER.name}. Query it: recbert predict {output} --input FILE --output "
        "FILE"
    )


def convert(
    source: Positional[str],
    output: Positional[str],
    model: str | None = None,
    to: Literal["preset", "huggingface"] = "preset",
    overwrite: bool = False,
):
    """Turns a BERT of another tool into a preset, or a model into a BERT of others.

    Prints what became of each tensor of a BERT: copied, adapted, new, unused.

    Args:
        source: A folder of Hugging Face, Google's TF1, the Model Garden or TF Hub, a
            preset, or a model.keras.
        output: Folder to write.
        model: Name of the encoder to put the weights into, see `recbert list`; by
            default a plain BERT of the sizes of the source.
        to: preset, for keras_recbert.load and --weights; or huggingface, for
            transformers (plain BERTs only, with a head on the pooled first token).
        overwrite: Replace the folder if it exists.
    """
    from keras_recbert.convert.hub_folder import local_folder, with_revision
    from keras_recbert.convert.huggingface import FILES as HUGGINGFACE_FILES
    from keras_recbert.convert.open_checkpoint import is_preset
    from keras_recbert.convert.preset import read_preset
    from keras_recbert.convert.preset_files import FILES as PRESET_FILES

    files = {"preset": PRESET_FILES, "huggingface": HUGGINGFACE_FILES}[to]
    check_folder(output, files, overwrite)
    card = {"source": with_revision(source)}
    if model is None:
        loaded = keras_recbert.load(source)
        folder = local_folder(source)
        if is_preset(folder):
            kept = ("metrics", "source", "license")
            card = {key: read_preset(folder).card[key] for key in kept}
    else:
        loaded = keras_recbert.build(model, weights=source)
    encoder = getattr(loaded, "encoder", loaded)
    if encoder.weights_report is not None:
        print(encoder.weights_report)
    if to == "preset":
        loaded.save_preset(output, overwrite=overwrite, **card)
        if isinstance(loaded, keras_recbert.tasks.Pretrainer):
            print("The heads of its objectives are left out: the preset is an encoder.")
        print(f"Wrote the preset {output}. Load it: keras_recbert.load({output!r})")
        return
    if hasattr(loaded, "head"):
        loaded.save_huggingface(output, overwrite=overwrite)
        print(
            f"Wrote {output}. Ask it: transformers.pipeline('text-classification', "
            f"{output!r})"
        )
        return
    encoder.preprocessor = loaded.preprocessor
    encoder.save_huggingface(output, overwrite=overwrite)
    if encoder is not loaded:
        print("The heads are left out: the folder holds the encoder.")
    print(
        f"Wrote {output}. Load it: transformers.AutoModel.from_pretrained({output!r})"
    )
