"""ONNX files: equal to the model, beside LiteRT's, read by a process of neither."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
import tensorflow as tf
from docs_pages import PAGES, blocks
from harness import randomize, set_seed
from toy_texts import VOCABULARY, reviews

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.serving.litert import read_litert
from keras_recbert.serving.onnx import read_onnx, write_onnx

TEXTS = [*reviews(6)[0], "", "no"]
NAMES = ["bad", "good"]
WORDS = [word for word in VOCABULARY if not word.startswith("##")]
SMALL = {
    "bilstm_student": {"recurrent_dim": 5, "vector_dim": 7, "vocabulary": WORDS},
    "transformer_student": {"num_layers": 1, "hidden_dim": 18, "num_heads": 2},
}


def student(name):
    set_seed(0)
    options = {"vocabulary": VOCABULARY, "label_names": NAMES, **SMALL[name]}
    model = keras_recbert.build(name, task="classifier", **options)
    randomize(model)
    return model


def scores_of(model, texts):
    """Of the texts in one batch, padded, op by op."""
    packed = model.preprocessor.pack(*model.preprocessor.columns(texts))
    return model.answer(model(packed, training=False))["scores"].numpy()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A student of loops in both directions, and its files of both formats."""
    folder = tmp_path_factory.mktemp("onnx")
    model = student("bilstm_student")
    model.save_preset(folder / "preset")
    for name in ("student.tflite", "student.onnx"):
        assert main(["export", str(folder / "preset"), str(folder / name)]) == 0
    return model, folder


def test_file_gives_the_scores_of_the_model(exported):
    model, folder = exported
    read = read_onnx(folder / "student.onnx").function
    for texts in (TEXTS, TEXTS[:1], [""]):
        answers, expected = read(text=texts), scores_of(model, texts)
        np.testing.assert_allclose(answers["scores"], expected, atol=1e-5)
        labels = [NAMES[row.argmax()].encode() for row in expected]
        assert answers["label"].numpy().tolist() == labels
    assert np.ptp(scores_of(model, TEXTS)[:, 0]) > 1e-2  # else any answer would do
    litert = read_litert(folder / "student.tflite").function(text=TEXTS)
    expected = scores_of(model, TEXTS)
    np.testing.assert_allclose(litert["scores"], expected, atol=1e-4)
    for answer in (read, read_litert(folder / "student.tflite").function):
        with pytest.raises(ValueError, match="give one text or more"):
            answer(text=[])


def test_file_says_what_it_takes(exported):
    _, folder = exported
    graph = onnx.load(folder / "student.onnx").graph
    (scores,) = graph.output
    for value in graph.input:
        axes = [axis.dim_param for axis in value.type.tensor_type.shape.dim]
        assert axes == ["batch_size", "sequence_length"]
        assert value.type.tensor_type.elem_type == onnx.TensorProto.INT32
    names = [value.name for value in graph.input]
    assert names == ["token_ids", "segment_ids", "padding_mask"]
    assert scores.name == "scores"


def test_formats_share_what_is_beside(exported, tmp_path):
    model, folder = exported
    beside = {"student.vocab.txt", "student.json", "reference_tokenizer.py", "preset"}
    models = {"student.tflite", "student.onnx"}
    assert {path.name for path in folder.iterdir()} == beside | models
    checksums = json.loads((folder / "student.json").read_text())["sha256"]
    assert checksums.keys() == {"student.vocab.txt", *models}
    for file in folder.glob("*.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(FileExistsError, match="student.onnx exists already"):
        write_onnx(model, tmp_path / "student.onnx")
    card, vocabulary = tmp_path / "student.json", tmp_path / "student.vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("film", "movie"))
    with pytest.raises(ValueError, match="vocab.txt is not the file that student.json"):
        read_onnx(tmp_path / "student.onnx")
    card.write_text(card.read_text().replace("good", "fine"))
    (tmp_path / "student.onnx").unlink()
    with pytest.raises(FileExistsError, match="student.vocab.txt exists already"):
        write_onnx(model, tmp_path / "student.onnx")
    with pytest.raises(FileNotFoundError, match="An ONNX model is student.onnx, stud"):
        read_onnx(tmp_path / "student.onnx")


def test_predict_answers_the_rows_of_a_file(exported, tmp_path, capsys):
    _, folder = exported
    (tmp_path / "in.csv").write_text("text\na good film\nbad\n")
    output = tmp_path / "out.csv"
    files = ["--input", str(tmp_path / "in.csv"), "--output", str(output)]
    command = ["predict", str(folder / "student.onnx"), *files]
    assert main([*command, "--head", "x"]) == 2
    assert "A file of .onnx has one head. Leave --head out" in capsys.readouterr().err
    assert main(command) == 0
    assert output.read_text().splitlines()[0] == "text,prediction,score"


def test_a_process_without_tensorflow_answers(exported):
    """The lines of the docs, with what a device has installed."""
    model, folder = exported
    scores = scores_of(model, ["a fine film"])[0]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    lines = blocks("py", PAGES["small_devices.md"])
    assert len(lines) == 2
    for block in lines:
        block += (
            "\nimport sys\n"
            "assert not {'tensorflow', 'keras', 'keras_recbert'} & set(sys.modules)\n"
            "print(scores.tolist())\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        label, found = done.stdout.splitlines()[-2:]
        assert json.loads(found) == pytest.approx(scores.tolist(), abs=1e-5)
        assert label == NAMES[scores.argmax()]


# Refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (
            lambda x: tf.math.digamma(tf.abs(x) + 1.0),
            "transformer_student was not converted: ONNX has no Digamma.",
        ),
        (  # rounded down by TensorFlow, towards zero by ONNX
            lambda x: tf.cast(-tf.shape(x)[0] // 2, "float32"),
            "ONNX gives other scores to 3 x 11 random tokens, by 0",
        ),
    ],
    ids=["no such op", "another result"],
)
def test_what_does_not_convert_is_named_and_leaves_nothing(
    shift, message, tmp_path, monkeypatch, capfd
):
    model = student("transformer_student")
    answer = model.answer
    shifted = lambda x: {"scores": answer(x)["scores"] + shift(x)}  # noqa: E731
    monkeypatch.setattr(model, "answer", shifted)
    with pytest.raises(ValueError, match=message):
        write_onnx(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
    assert "not supported" not in capfd.readouterr().err


def test_wrong_models_and_paths_are_refused(exported, tmp_path, capsys):
    model, folder = exported
    with pytest.raises(ValueError, match="ends with .onnx. Received: .*Try 'x.onnx'"):
        write_onnx(model, "x.pb")
    with pytest.raises(ValueError, match="Received: an encoder without a head"):
        write_onnx(model.encoder, tmp_path / "x.onnx")
    export = ["export", str(folder / "preset"), str(tmp_path / "x.onnx")]
    assert main([*export, "--int8"]) == 2
    assert "--int8 is for LiteRT files" in capsys.readouterr().err
    assert main([*export, "--version", "1"]) == 2
    assert "--version is for a SavedModel. A file of onnx" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
