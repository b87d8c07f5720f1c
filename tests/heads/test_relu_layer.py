"""A layer with ReLU below the logits, one for each head (Liu 2020, section 4.2)."""

import numpy as np
import pytest
from harness import assert_close, largest_difference, set_seed
from toy_texts import VOCABULARY, tiny_model

import keras_recbert

SIZES = {"recurrent_dim": 5, "vector_dim": 6, "pooled_dim": None}
TASK = {
    "tone": {"task": "classifier", "relu_units": 7},
    "stars": {"task": "regressor", "relu_units": 4},
}
TEXTS = ["a good film.", "dull", "a very cold story with music"]


def student(name="bilstm_student", **more):
    set_seed(0)  # else all of a few ReLUs may be 0
    words = [word for word in VOCABULARY if not word.startswith("##")]
    words = VOCABULARY if name == "bi_attentive_student" else words
    arguments = {**SIZES, "vocabulary": words, **more}
    return keras_recbert.build(name, task=TASK, **arguments)


@pytest.mark.parametrize(
    "name, sizes, width",
    [
        ("bilstm_student", {}, 10),
        ("siamese_bilstm_student", {}, 40),
        ("bi_attentive_student", {"projection_dim": 8}, 60),
    ],
)
def test_each_head_has_a_layer_of_its_own(name, sizes, width, eager_steps):
    model = student(name, **sizes)
    rows = np.asarray(model.encoder(model.preprocessor(TEXTS))["pooled_output"])
    assert rows.shape == (3, width)  # what the ReLU layer of the encoder would read
    logits = model.predict(TEXTS, verbose=0)
    for head, units in (("tone", 7), ("stars", 4)):
        one = model.heads[head]
        weights, bias = map(np.asarray, one.relu.get_weights())
        assert weights.shape == (width, units)
        hidden = np.maximum(rows @ weights + bias, 0.0)
        weights, bias = map(np.asarray, one.dense.get_weights())
        expected = np.squeeze(hidden @ weights + bias)
        assert_close(logits[head], expected, 1e-5, head)
        assert largest_difference(logits[head][0], logits[head][2]) > 0


def test_training_and_files_keep_it(tmp_path, eager_steps):
    model = student()
    before = [head.relu.kernel.numpy() for head in model.heads.values()]
    labels = {"tone": ["good", "bad", "bad"], "stars": [5.0, 1.0, 2.0]}
    model.fit(TEXTS, labels, verbose=0)
    for head, kernel in zip(model.heads.values(), before, strict=True):
        assert largest_difference(head.relu.kernel, kernel) > 1e-6
    expected = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        found = keras_recbert.load(tmp_path / name).predict(TEXTS, verbose=0)
        for head, values in expected.items():
            assert_close(found[head], values, 1e-6)


def test_what_cannot_be_is_told(tmp_path):
    with pytest.raises(
        ValueError, match="`relu_units` must be.*Received: relu_units=0"
    ):
        tiny_model(relu_units=0)
    model = tiny_model(relu_units=3, pooling="first")
    with pytest.raises(ValueError, match="one layer between.*relu_units=3"):
        model.save_huggingface(tmp_path / "bert")
    assert not list(tmp_path.iterdir())


def test_a_head_of_hugging_face_is_not_taken(tmp_path):
    names = {"label_names": ["good", "bad"]}
    model = tiny_model(pooling="first", num_layers=2, **names)
    model.save_huggingface(tmp_path / "bert")
    with pytest.warns(UserWarning, match="its head starts random.*relu_units=3"):
        built = keras_recbert.build(
            "bert_tiny",
            task="classifier",
            weights=tmp_path / "bert",
            relu_units=3,
            hidden_dim=18,
            intermediate_dim=72,
            num_heads=2,
            **names,
        )
    assert built.head.dense.kernel.shape == (3, 2)
