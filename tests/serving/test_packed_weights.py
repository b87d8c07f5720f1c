"""oneDNN may keep packed weights in a process that only answers: equal answers."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from harness import randomize, set_seed, shrunk_sizes
from savedmodels import SLOW
from toy_texts import VOCABULARY, reviews

import keras_recbert
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.core.answering import answering_variables
from keras_recbert.serving.savedmodel import read_savedmodel, write_savedmodel

TEXTS = [*reviews(9)[0], "", "no", "very " * 30]
# Of other sizes, and the first ones again.
BATCHES = TEXTS, TEXTS[:1], TEXTS[-1:], TEXTS[3:8] * 9, TEXTS
WORDS = [word for word in VOCABULARY if not word.startswith("##")]
ASK = """
import json, sys
import tensorflow as tf, tensorflow_text
loaded = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
batches = json.load(sys.stdin)
scores = [loaded(text=tf.constant(texts))["scores"].numpy() for texts in batches]
print(json.dumps([own.tolist() for own in scores]))
"""


def write(name, folder, precision):
    set_seed(0)
    reads_words = encoder_class(keras_recbert.get_card(name).encoder).reads_words
    model = keras_recbert.build(
        name,
        task="classifier",
        label_names=["bad", "good"],
        vocabulary=WORDS if reads_words else VOCABULARY,
        dtype=precision,
        **shrunk_sizes(name),
    )
    randomize(model)
    write_savedmodel(model, folder)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("swish_tiny", "float32"),
        pytest.param("bert_tiny", "bfloat16", marks=SLOW),
        pytest.param("trans_blstm_tiny", "float32", marks=SLOW),
        pytest.param("bilstm_student", "float32", marks=SLOW),
        pytest.param("bi_attentive_student", "bfloat16", marks=SLOW),
    ],
)
def test_answers_are_those_of_weights_packed_at_each_call(
    tmp_path, monkeypatch, name, precision
):
    write(name, tmp_path / "model", precision)
    asked = read_savedmodel(tmp_path / "model")
    expected = [asked(text=tf.constant(texts))["scores"].numpy() for texts in BATCHES]
    assert np.ptp(expected[0][:, 0]) > 1e-3
    variables = answering_variables(threads_of_an_op=1)
    assert variables["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] == "1"
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    answer = subprocess.run(
        [sys.executable, "-c", ASK, str(tmp_path / "model")],
        input=json.dumps(BATCHES),
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(answer.stdout)
    for scores, own in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            scores, own, atol=1e-5 if precision == "float32" else 1e-2
        )
    assert found[0] == found[-1]


def test_what_the_user_set_stays(monkeypatch):
    monkeypatch.delenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", raising=False)
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "3")
    assert answering_variables() == {"TF_ONEDNN_ASSUME_FROZEN_WEIGHTS": "1"}
    assert "TF_NUM_INTRAOP_THREADS" not in answering_variables(threads_of_an_op=1)
    monkeypatch.setenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "0")
    assert answering_variables(threads_of_an_op=2) == {}
