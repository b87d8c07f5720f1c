"""The bi-attentive student as an encoder: equations, and what a user types."""

import keras
import numpy as np
import pytest
import weights_of
from harness import assert_close, build_shrunk, token_batch
from reference.bi_attentive import bi_attentive_student
from toy_texts import reviews

import keras_recbert
from keras_recbert.models.encoders import get_encoder


def test_outputs_are_those_of_the_thesis():
    encoder = build_shrunk("bi_attentive_student", channels="multichannel")
    batch = token_batch()
    # Texts of 4 and 7 tokens; single texts of 7 and 1.
    batch["segment_ids"] = np.zeros_like(batch["token_ids"])
    batch["segment_ids"][0, 4:] = 1
    outputs = encoder(batch)
    tables = np.concatenate([t.numpy() for t in encoder.embeddings.tables], axis=1)
    weights = weights_of.bi_attentive_student(encoder.blocks[0])
    kernel, bias = (weight.numpy() for weight in encoder.pooler.weights)
    for row, (first, second) in enumerate(((4, 11), (7, 0), (1, 0))):
        vectors = tables[batch["token_ids"][row]].astype("float64")
        texts = vectors[:first], vectors[first:second] if second else vectors[:first]
        pooled, x, y = bi_attentive_student(*texts, weights)
        expected = np.maximum(pooled @ kernel + bias, 0.0)
        assert_close(outputs["pooled_output"][row], expected)
        states = [*x, *(y if second else [])]
        assert_close(outputs["sequence_output"][row, : len(states)], states)


@pytest.mark.slow
def test_no_optional_argument(tmp_path, eager_steps):
    """From texts to a served model; the default recipe learns."""
    keras.utils.set_random_seed(0)
    texts, labels = reviews(10)
    vocabulary = keras_recbert.text.learn_vocabulary(texts, 100, min_frequency=1)
    model = keras_recbert.build(
        "bi_attentive_student", task="classifier", vocabulary=vocabulary
    )
    assert model.pooling == "first" and model.learning_rate == 1e-3
    model.fit(texts, labels, epochs=12, verbose=0)
    logits = model.predict(texts, verbose=0)
    assert (logits.argmax(1) == labels).mean() > 0.8
    model.save_preset(tmp_path / "preset")
    loaded = keras_recbert.load(tmp_path / "preset")
    np.testing.assert_array_equal(loaded.predict(texts, verbose=0), logits)
    encoder = get_encoder("BiAttentiveEncoder")
    assert isinstance(loaded.encoder, encoder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recurrent_dim": 0}, "`recurrent_dim` must be a whole number of at least 1"),
        ({"channels": "both"}, "`channels` must be one of"),
        ({"dropout": 1.0}, "`dropout` must be a number in"),
        ({"vocabulary_size": 10**12}, "The word vectors need .*Lower "),
    ],
)
def test_what_is_impossible_is_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        get_encoder("BiAttentiveEncoder")(**arguments)
