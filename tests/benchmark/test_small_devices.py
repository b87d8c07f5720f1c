"""Every encoder as LiteRT and ONNX: the table of docs/small_devices.md."""

import importlib.metadata
import re

import numpy as np
import pytest
from docs_pages import PAGES
from harness import first_alike, randomize, set_seed, shrunk_sizes
from toy_texts import VOCABULARY, reviews

import keras_recbert
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.serving.litert import read_litert, write_litert
from keras_recbert.serving.onnx import read_onnx, write_onnx

# Shrunk, `bert_large` is `bert_tiny`.
NAMES = [n for n in keras_recbert.list_models() if first_alike(n) == n]
TEXTS = [*reviews(9)[0], "", "no", "very " * 30]
WORDS = [word for word in VOCABULARY if not word.startswith("##")]
VERSIONS = ("tensorflow", "tf2onnx", "onnx", "onnxruntime")
FORMATS = {
    "LiteRT": (write_litert, read_litert, "tflite"),
    "ONNX": (write_onnx, read_onnx, "onnx"),
}


def build(name):
    """A classifier of an encoder, tiny, with random weights."""
    set_seed(0)
    reads_words = encoder_class(keras_recbert.get_card(name).encoder).reads_words
    vocabulary = WORDS if reads_words else VOCABULARY
    options = {"label_names": ["bad", "good"], "vocabulary": vocabulary}
    model = keras_recbert.build(
        name, task="classifier", **options, **shrunk_sizes(name)
    )
    randomize(model)
    return model


def differences(name, folder):
    """The largest difference of a score from the model's, by the format."""
    model = build(name)
    batches = TEXTS, TEXTS[:1], TEXTS[-1:]
    expected = [
        model.answer(model(model.preprocessor(texts), training=False))["scores"]
        for texts in batches
    ]
    assert np.ptp(expected[0].numpy()[:, 0]) > 1e-3  # else any answer would do
    found = {}
    for title, (write, read, suffix) in FORMATS.items():
        write(model, folder / f"{name}.{suffix}")
        answer = read(folder / f"{name}.{suffix}").function
        found[title] = max(
            np.abs(answer(text=texts)["scores"] - scores).max()
            for texts, scores in zip(batches, expected, strict=True)
        )
    return found


def names_of(row):
    return re.findall(r"`(\w+)`", row)


def test_the_table_has_all_encoders():
    _, _, table = PAGES["small_devices.md"].partition("| encoder |")
    rows = table.partition("\n\n")[0].splitlines()[2:]
    assert [names_of(row)[0] for row in rows] == NAMES
    names = [name for row in rows for name in names_of(row)]
    assert sorted(names) == sorted(keras_recbert.list_models())


@pytest.mark.benchmark
def test_every_encoder_converts(tmp_path, capsys):
    rows = [f"| encoder | {' | '.join(FORMATS)} |", "|---|" + "---:|" * len(FORMATS)]
    worst = 0.0
    for name in NAMES:
        found = differences(name, tmp_path)
        worst = max(worst, *found.values())
        alike = [n for n in keras_recbert.list_models() if first_alike(n) == name]
        names = ", ".join(f"`{one}`" for one in alike)
        numbers = " | ".join(f"{one:.1e}" for one in found.values())
        rows.append(f"| {names} | {numbers} |")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in VERSIONS]
    with capsys.disabled():
        print("\n" + "\n".join(rows) + f"\n\n{', '.join(versions)}.")
    assert worst < 1e-5, worst
