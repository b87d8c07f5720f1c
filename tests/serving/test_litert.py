"""LiteRT files: equal to the model, of built-in ops, and whole or not there."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import randomize, set_seed
from toy_texts import VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.serving.litert import litert_ops, read_litert, write_litert

TEXTS = [*reviews(6)[0], "", "no"]
NAMES = ["bad", "good"]
WORDS = [word for word in VOCABULARY if not word.startswith("##")]
STUDENTS = {
    "bilstm_student": {"recurrent_dim": 5, "vector_dim": 7, "vocabulary": WORDS},
    "bi_attentive_student": {"recurrent_dim": 5, "projection_dim": 7, "vector_dim": 6},
    "swish_student": {"num_layers": 2, "hidden_dim": 18, "recurrent_dim": 9},
    "transformer_student": {"num_layers": 1, "hidden_dim": 18, "num_heads": 2},
}


def student(name, **options):
    set_seed(0)
    options = {"vocabulary": VOCABULARY, **STUDENTS[name], **options}
    model = keras_recbert.build(name, task="classifier", label_names=NAMES, **options)
    randomize(model)
    return model


def scores_of(model):
    """Of the texts in one batch, padded, op by op."""
    return model.answer(model(model.preprocessor(TEXTS), training=False))["scores"]


@pytest.mark.parametrize("name", STUDENTS)
def test_file_gives_the_scores_of_the_model(name, tmp_path):
    model = student(name)
    write_litert(model, tmp_path / "model.tflite")
    answers = read_litert(tmp_path / "model.tflite").function(text=TEXTS)
    expected = scores_of(model).numpy()
    assert np.ptp(expected[:, 0]) > 1e-2  # else any answer would do
    np.testing.assert_allclose(answers["scores"], expected, atol=1e-4)
    labels = [NAMES[row.argmax()].encode() for row in expected]
    assert answers["label"].numpy().tolist() == labels
    ops = litert_ops(tmp_path / "model.tflite")
    assert [op for op in ops if op.startswith("Flex") or not op.isupper()] == []


# The commands, on one model -------------------------------------------------------


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A preset in mixed bfloat16, as training may leave it, and its file in int8."""
    folder = tmp_path_factory.mktemp("litert")
    model = student("swish_student", dtype="mixed_bfloat16")
    model.save_preset(folder / "preset")
    argv = ["export", str(folder / "preset"), str(folder / "small.tflite")]
    assert main([*argv, "--format", "litert", "--int8"]) == 0
    return model, folder


def test_int8_is_close_and_computes_in_float32(exported):
    _, folder = exported
    answers = read_litert(folder / "small.tflite").function(text=TEXTS)
    expected = scores_of(student("swish_student")).numpy()
    # Nine units of random weights: their errors do not average out.
    np.testing.assert_allclose(answers["scores"], expected, atol=0.2)
    found = answers["scores"].numpy()[:, 0]
    assert np.corrcoef(found, expected[:, 0])[0, 1] > 0.95
    assert answers["scores"].dtype == tf.float32


def test_predict_answers_the_rows_of_a_file(exported, tmp_path):
    _, folder = exported
    (tmp_path / "in.csv").write_text("text\na good film\nbad\n")
    output = tmp_path / "out.csv"
    argv = ["--input", str(tmp_path / "in.csv"), "--output", str(output)]
    assert main(["predict", str(folder / "small.tflite"), *argv]) == 0
    assert output.read_text().splitlines()[0] == "text,prediction,score"


def test_files_belong_together(exported, tmp_path):
    _, folder = exported
    for file in folder.glob("small.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / "small.tflite"
    assert json.loads((tmp_path / "small.json").read_text())["label_names"] == NAMES
    vocabulary = tmp_path / "small.vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("film", "movie"))
    with pytest.raises(ValueError, match="vocab.txt is not the file that small.json"):
        read_litert(path)
    vocabulary.unlink()
    with pytest.raises(FileNotFoundError, match="A LiteRT model is small.tflite, sma"):
        read_litert(path)


# Refusals -------------------------------------------------------------------------


@keras.saving.register_keras_serializable("tests")
class Digamma(keras.layers.Layer):
    """An op that LiteRT lacks."""

    def call(self, x):
        return tf.math.digamma(tf.abs(x) + 1.0)


def test_what_does_not_convert_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    model = student("transformer_student")
    answer = model.answer
    digamma = Digamma()
    monkeypatch.setattr(model, "answer", lambda logits: answer(digamma(logits)))
    with pytest.raises(ValueError, match="transformer_student was not .* has no Digam"):
        write_litert(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []


def test_wrong_models_and_paths_are_refused(exported, tmp_path, capsys):
    model, folder = exported
    with pytest.raises(ValueError, match="ends with .tflite. Received: .*Try 'x.tfli"):
        write_litert(model, "x.lite")
    with pytest.raises(FileExistsError, match="small.tflite exists already"):
        write_litert(model, folder / "small.tflite")
    with pytest.raises(ValueError, match="Received: an encoder without a head"):
        write_litert(model.encoder, tmp_path / "x.tflite")
    windows = tiny_model(long_texts="windows")
    with pytest.raises(ValueError, match="Received: a model with long_texts='windows'"):
        write_litert(windows, tmp_path / "x.tflite")
    export = ["export", str(folder / "preset"), str(tmp_path / "x")]
    assert main([*export, "--int8"]) == 2
    assert "--int8 is for LiteRT files. Add --format litert" in capsys.readouterr().err
    assert main([*export, "--format", "litert", "--fields", "text"]) == 2
    assert "--fields is for a SavedModel" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
