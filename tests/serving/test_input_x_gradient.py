"""Gradients times inputs: against differences, and places in texts."""

import numpy as np
import pytest
import tensorflow as tf
from harness import randomize, set_seed
from toy_texts import VOCABULARY, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.serving.input_x_gradient import input_x_gradient

WORDS = [word for word in VOCABULARY if not word.startswith("##")]
SMALL = {
    "trans_blstm_tiny": {},
    "swish_tiny": {},
    "bilstm_student": {"recurrent_dim": 5, "vector_dim": 7, "vocabulary": WORDS},
    "bi_attentive_student": {
        "recurrent_dim": 5,
        "vector_dim": 7,
        "projection_dim": 6,
        "vocabulary": WORDS,
    },
}
PAIRS = (["good film", "a bad"], ["dull", "warm film a"])


def model_of(name, task):
    set_seed(0)
    options = {"label_names": ["bad", "good", "fair"]} if task == "classifier" else {}
    sizes = SMALL[name]
    if "vocabulary" in sizes:
        model = keras_recbert.build(name, task=task, **options, **sizes)
    else:
        model = tiny_model(name, task=task, **options)
    randomize(model)
    return model


def answer(model, columns):
    """The number that gradients are of, for each row: float64."""
    logits = model(model.preprocessor(columns), training=False).numpy()
    return (logits.max(1) if logits.ndim == 2 else logits).astype("float64")


def scaled_answer(model, token, scale):
    """`answer` where the row of a token in the tables is `scale` times as long."""
    tables = model.encoder.embeddings.token_tables
    kept = [table.numpy() for table in tables]
    for table, rows in zip(tables, kept, strict=True):
        factors = np.ones((len(rows), 1), "float32")
        factors[token] = scale
        table.assign(rows * factors)
    found = answer(model, PAIRS)
    for table, rows in zip(tables, kept, strict=True):
        table.assign(rows)
    return found


@pytest.mark.parametrize("task", ["classifier", "regressor"])
@pytest.mark.parametrize("name", SMALL)
def test_products_are_the_differences_of_scaled_vectors(name, task):
    # The derivative by the scale of a row of the table, where a token stands once.
    model = model_of(name, task)
    found = input_x_gradient(model, PAIRS)
    ids = model.preprocessor(PAIRS)["token_ids"].numpy()
    products = found["input_x_gradient"].numpy()
    assert products.shape == ids.shape
    step = 1e-2
    for token in np.unique(ids):
        above, below = (scaled_answer(model, token, 1 + e) for e in (step, -step))
        expected = (above - below) / (2 * step)
        own = np.where(ids == token, products, 0).sum(axis=1)
        np.testing.assert_allclose(own, expected, rtol=0.02, atol=2e-3)
    assert np.abs(products).max() > 0.01


def test_places_are_bytes_of_each_text_and_rows_are_those_of_pack():
    model = tiny_model(task="classifier", label_names=["x", "y"], sequence_length=9)
    texts = ["\U0001f600 Good fi\u0301lm, good good good good", ""]
    pairs = ["a", "dull film"]
    packer = model.preprocessor
    found = packer.pack_with_offsets(tf.constant(texts), tf.constant(pairs))
    for name, own in packer((texts, pairs)).items():
        np.testing.assert_array_equal(found[name], own)
    special = [
        packer.tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]", "[PAD]")
    ]
    begins, ends = found["begins"].numpy(), found["ends"].numpy()
    is_special = np.isin(found["token_ids"], special)
    np.testing.assert_array_equal(begins == -1, is_special)
    np.testing.assert_array_equal(ends == -1, is_special)
    both = np.array([texts, pairs])
    covered = [
        [
            both[segment, row].encode()[begin:end].decode()
            for begin, end, segment in zip(
                begins[row], ends[row], found["segment_ids"][row], strict=True
            )
            if begin >= 0
        ]
        for row in range(2)
    ]
    first = ["\U0001f600", "Good", "fi\u0301lm", ",", "good", "a"]
    assert covered == [first, ["dull", "film"]]


def test_the_command_writes_it_and_refuses_other_models(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = tiny_model(label_names=["bad", "good"])
    model.save_preset("films")
    for options in ([], ["--version", "1"]):
        path = "served/films" if options else "film_model"
        assert main(["export", "films", path, "--gradients", *options]) == 0
        path = f"{path}/1" if options else path
        served = tf.saved_model.load(path).signatures["input_x_gradient"]
        texts = tf.constant(["good film", "a dull, dull film"])
        for name, value in input_x_gradient(model, (texts,)).items():
            np.testing.assert_allclose(served(text=texts)[name], value, atol=1e-5)
    half = ["films", "half", "--gradients", "--precision", "bfloat16"]
    assert main(["export", *half]) == 0
    served = tf.saved_model.load("half").signatures["input_x_gradient"]
    expected = input_x_gradient(model, (texts,))["input_x_gradient"].numpy()
    found = served(text=texts)["input_x_gradient"].numpy()
    assert np.abs(found - expected).max() < 0.2 * np.abs(expected).max()
    model.export_savedmodel("plain")
    assert "input_x_gradient" not in tf.saved_model.load("plain").signatures
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_preset("encoder")
    tiny_model(task="multilabel_classifier", label_names=["a", "b"]).save_preset("many")
    capsys.readouterr()
    for source, output, message in (
        ("encoder", "out", "Received: sentence encoder, packed by TextPreprocessor"),
        ("many", "out", "Received: multilabel_classifier, packed by TextPreprocessor"),
        ("films", "out.tflite", "--gradients is for a SavedModel"),
    ):
        assert main(["export", source, output, "--gradients"]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))
