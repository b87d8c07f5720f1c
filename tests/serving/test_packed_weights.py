"""oneDNN may keep packed weights in a process that only answers: equal answers."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from harness import randomize, set_seed, shrunk_sizes
from toy_texts import VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.builder.encoder import encoder_class
from keras_recbert.config import FineTuningConfig
from keras_recbert.core.answering import answering_variables, only_answer
from keras_recbert.serving.savedmodel import read_savedmodel, write_savedmodel
from keras_recbert.train.run import open_run

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

# One thread an op, whatever the cores: 99 calls at a time.
COMMAND = """
import os, sys
from keras_recbert.cli import main
main([*sys.argv[1:], *(["--num-batch-threads", "99"] if "serve" in sys.argv else [])])
names = "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "TF_NUM_INTRAOP_THREADS"
print(*(os.environ.get(name) for name in names))
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


@pytest.mark.slow  # processes that load TensorFlow
@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("swish_tiny", "float32"),
        ("bert_tiny", "bfloat16"),
        ("trans_blstm_tiny", "float32"),
        ("bilstm_student", "float32"),
        ("bi_attentive_student", "bfloat16"),
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


def test_a_process_that_may_train_stays_as_it_is(monkeypatch):
    monkeypatch.delenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", raising=False)
    only_answer()  # TensorFlow is loaded here
    assert "TF_ONEDNN_ASSUME_FROZEN_WEIGHTS" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "threads"),
    [
        ("serve nowhere", "1"),
        ("predict m --input nowhere.csv --output a.csv", "1"),
        # One call at a time, which has all cores, or those of its process.
        ("predict nowhere text", None),
        ("predict m --input nowhere*.jsonl --output a.jsonl", None),
        ("predict m --input nowhere.jsonl --output a.jsonl --num-workers 2", None),
    ],
)
def test_commands_that_answer_keep_packed_weights(monkeypatch, words, threads):
    for name in ("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "TF_NUM_INTRAOP_THREADS"):
        monkeypatch.delenv(name, raising=False)
    told = subprocess.run(
        [sys.executable, "-c", COMMAND, *words.split()], capture_output=True, text=True
    )
    assert "nowhere" in told.stderr
    assert told.stdout == f"1 {threads}\n"


def test_training_is_refused_where_weights_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_ONEDNN_ASSUME_FROZEN_WEIGHTS", "1")
    model = tiny_model("bert_tiny", task="classifier", label_names=["bad", "good"])
    with pytest.raises(ValueError, match="unset TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"):
        model.fit(*reviews(4))
    run = open_run(FineTuningConfig(output_dir=str(tmp_path / "run")), None)
    with pytest.raises(ValueError, match="unset TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"):
        run.__enter__()
    assert not list(tmp_path.iterdir())
