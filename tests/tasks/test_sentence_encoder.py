"""A vector for each text, against a loop over single texts written from the words."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, randomize
from toy_texts import reviews, tiny_model

from keras_recbert.serving.clean_process import ask_in_clean_process
from keras_recbert.serving.savedmodel import foreign_ops, read_savedmodel

TEXTS = reviews(7)[0] + ["", "film"]  # from 2 to 16 word pieces
PAIRS = (TEXTS, TEXTS[::-1])


def make_encoder(name="bert_tiny", **overrides):
    model = tiny_model(name, num_layers=2, **overrides)
    randomize(model)
    model.encoder.preprocessor = model.preprocessor
    return model.encoder


@pytest.fixture(scope="module")
def encoder():
    return make_encoder()


def tokens_of(encoder, text, layer):
    """What a layer gives for the tokens of one text, without padding."""
    features = encoder.preprocessor(text)
    if layer == 0:
        hidden = encoder.embeddings(features["token_ids"], features["segment_ids"])
    else:
        hidden = encoder(features)["encoder_outputs"][layer - 1]
    real = features["padding_mask"].numpy()[0].astype(bool)
    return np.asarray(hidden, "float64")[0][real]


POOL = {
    "mean": lambda tokens: tokens.mean(axis=0),
    "max": lambda tokens: tokens.max(axis=0),
    "cls": lambda tokens: tokens[0],
}


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_by_default_the_mean_of_the_last_block_at_length_1(encoder, capsys):
    found = encoder.encode(TEXTS)
    expected = [tokens_of(encoder, text, 2).mean(axis=0) for text in TEXTS]
    assert found.dtype == np.float32 and found.shape == (9, 18)
    assert_close(found, unit(np.array(expected)))
    assert capsys.readouterr() == ("", "")  # one batch needs no progress bar
    assert_close(encoder.encode(TEXTS[3]), found[3:4], 1e-6)


@pytest.mark.parametrize(
    ("pooling", "layer"), [("mean", 0), ("max", 1), ("cls", 2), ("cls", 0)]
)
def test_any_layer(encoder, pooling, layer):
    options = {"pooling": pooling, "normalize": False}
    found = encoder.encode(TEXTS, layer, **options)
    expected = [POOL[pooling](tokens_of(encoder, text, layer)) for text in TEXTS]
    assert_close(found, expected)
    # From the end the same, whatever batches there are.
    again = encoder.encode(TEXTS, layer - 3, **options, batch_size=2, verbose=0)
    assert_close(found, again, 1e-6)


def test_several_layers(encoder):
    parts = [[tokens_of(encoder, text, layer) for text in TEXTS] for layer in (0, 2)]
    options = {"layer": [0, -1], "normalize": False}

    found = encoder.encode(TEXTS, **options)
    means = [[one.mean(axis=0) for one in part] for part in parts]
    assert_close(found, np.concatenate(means, axis=1))
    found = encoder.encode(TEXTS, **options, pooling="max", combine="sum")
    assert_close(found, [(a + b).max(axis=0) for a, b in zip(*parts, strict=True)])
    found = encoder.encode(TEXTS, combine="stack", layer=[0, 2])
    assert_close(found, unit(np.stack(means, axis=1)))


def test_pairs_and_progress(encoder, capsys):
    found = encoder.encode(PAIRS, batch_size=4)
    assert "9/9" in capsys.readouterr().err
    expected = [
        tokens_of(encoder, pair, 2).mean(axis=0) for pair in zip(*PAIRS, strict=True)
    ]
    assert_close(found, unit(np.array(expected)))
    assert np.abs(found - encoder.encode(TEXTS)).max() > 0.01


def test_a_left_to_right_encoder_has_read_all_at_its_last_token():
    encoder = make_encoder(causal=True)
    found = encoder.encode(TEXTS, pooling="cls", normalize=False)
    assert_close(found, [tokens_of(encoder, text, 2)[-1] for text in TEXTS])


def test_a_task_model_encodes_as_it_is_trained():
    model = tiny_model("swish_tiny", pooling="mean")
    before = model.encode(TEXTS)
    randomize(model.encoder)  # stands for training
    after = model.encode(TEXTS)
    assert np.abs(after - before).max() > 1e-3
    expected = [tokens_of_last(model, text).mean(axis=0) for text in TEXTS]
    assert_close(after, unit(np.array(expected)))


def tokens_of_last(model, text):
    return model.encoder(model.preprocessor(text))["sequence_output"].numpy()[0]


def test_bfloat16_is_pooled_in_float32(encoder):
    half = make_encoder(dtype="mixed_bfloat16")
    found = half.encode(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-5)
    assert_close(found, encoder.encode(TEXTS), 0.06)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 3}, r"`layer` must be from 0 \(the embeddings\) to 2 \(the last"),
        ({"layer": [1, -5]}, r"-1 \(the last block\) to -3; .* layer=\[1, -5\]"),
        ({"layer": True}, "Received: layer=True"),
        ({"layer": []}, r"`layer` names no layer. Received: layer=\[\]"),
        ({"pooling": "first"}, "`pooling` must be one of None, 'cls', 'mean', 'max'"),
        ({"combine": "mean"}, "`combine` must be one of 'concatenate', 'sum', 'stack'"),
        ({"batch_size": 0}, "`batch_size` must be a whole number of at least 1"),
    ],
)
def test_wrong_options(encoder, options, message):
    with pytest.raises(ValueError, match=message):
        encoder.encode(TEXTS, **options)


def test_what_is_no_text(encoder):
    with pytest.raises(ValueError, match="There is no text"):
        encoder.encode([])
    with pytest.raises(TypeError, match="Received"):
        encoder.encode(["a film", None])
    with pytest.raises(ValueError, match="built without a vocabulary"):
        tiny_model().encoder.encode(TEXTS)
    tags = tiny_model(task="token_classifier", label_names=["A", "B"])
    with pytest.raises(ValueError, match="an example of WordPreprocessor may have sev"):
        tags.encode(TEXTS)
    windows = tiny_model(long_texts="windows")
    with pytest.raises(ValueError, match="an example of WindowPreprocessor may have"):
        windows.encode(TEXTS)


def test_a_savedmodel_of_an_encoder_gives_the_same(encoder, tmp_path):
    encoder.export_savedmodel(tmp_path / "vectors")
    ask = read_savedmodel(tmp_path / "vectors")
    found = ask(text=tf.constant(TEXTS))
    assert set(found) == {"embeddings"} and found["embeddings"].shape == (9, 18)
    assert_close(found["embeddings"], encoder.encode(TEXTS), 1e-6)
    assert not foreign_ops(tmp_path / "vectors")
    with pytest.raises(FileExistsError, match="vectors exists already"):
        encoder.export_savedmodel(tmp_path / "vectors")
    with pytest.raises(ValueError, match="built without a vocabulary"):
        tiny_model().encoder.export_savedmodel(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_for_pairs(encoder, tmp_path):
    options = {"layer": [-2, -1], "pooling": "cls", "normalize": False}
    fields = ("text", "text_pair")
    encoder.export_savedmodel(tmp_path / "vectors", fields, **options)
    inputs = dict(zip(fields, PAIRS, strict=True))
    found = ask_in_clean_process(tmp_path / "vectors", inputs)
    assert_close(found["embeddings"], encoder.encode(PAIRS, **options))
