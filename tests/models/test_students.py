"""Students of a BERT that have its frame: sizes, starts, and what a user types."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, set_seed, token_batch
from toy_texts import SIZES, VOCABULARY, reviews, tiny_model

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.tasks.fine_tuning_defaults import fine_tuning_defaults

TEXTS, LABELS = reviews(10)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A BERT of 5 layers, and the folder of Hugging Face that has it."""
    model = tiny_model(num_layers=5)
    folder = tmp_path_factory.mktemp("bert") / "folder"
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_huggingface(folder)
    return model.encoder, folder


def without_embeddings(name):
    """Parameters of the blocks: without embeddings and pooler."""
    count = keras_recbert.count_parameters
    return 3 * (count(name, num_layers=2) - count(name, num_layers=1))


def test_the_transformer_student_is_as_large_as_in_the_thesis():
    """Liu 2020, table 4.1."""
    assert round(without_embeddings("transformer_student") / 1e6, 1) == 21.3
    assert round(without_embeddings("transformer_student_minilm") / 1e6, 1) == 5.3
    card = keras_recbert.get_card("transformer_student")
    assert card.sizes["pooled_layers"] == "all" and "21.3M" in card.note


def test_the_swish_student_fits_in_5_megabytes():
    name, width = "swish_student", 256
    count = keras_recbert.count_parameters(name)
    embeddings = (30522 + 512 + 2 + 2) * width
    assert count - embeddings == 1_154_304 < 1_250_000
    sizes = keras_recbert.get_card(name).sizes
    assert "attention" not in str(keras_recbert.explain(name))
    assert sizes["num_layers"] == 2


@pytest.mark.slow
def test_the_swish_student_learns(tmp_path, eager_steps):
    """From texts at the default size; the default recipe learns."""
    set_seed(0)
    model = keras_recbert.build(
        "swish_student", task="classifier", vocabulary=VOCABULARY
    )
    assert model.pooling == "mean"
    texts, labels = reviews()
    model.fit(texts, labels, epochs=6, verbose=0)
    logits = model.predict(texts, verbose=0)
    assert (logits.argmax(1) == labels).mean() > 0.8
    model.save_preset(tmp_path / "preset")
    loaded = keras_recbert.load(tmp_path / "preset")
    np.testing.assert_array_equal(loaded.predict(texts, verbose=0), logits)


def test_the_transformer_student_starts_from_the_first_layers(bert):
    teacher, folder = bert
    sizes = {key: SIZES[key] for key in ("hidden_dim", "num_heads")}
    student = keras_recbert.build("transformer_student", weights=folder, **sizes)
    assert len(student.blocks) == 3
    batch = token_batch()
    batch["token_ids"] %= len(VOCABULARY)
    outputs, expected = student(batch), teacher(batch)
    for index in range(3):
        assert_close(
            outputs["encoder_outputs"][index], expected["encoder_outputs"][index], 1e-6
        )
    first = np.mean([output[:, 0] for output in expected["encoder_outputs"][:3]], 0)
    assert_close(outputs["pooled_output"], teacher.pooler(first), 1e-6)
    assert not student.weights_report.new
    assert fine_tuning_defaults(student).pooling == "first"
    plain = keras_recbert.build("bert_mini", weights=folder, num_layers=3, **sizes)
    assert_close(plain(batch)["sequence_output"], outputs["sequence_output"], 1e-6)
    assert fine_tuning_defaults(plain).pooling == "mean"
    # Any other name asks for a number of layers that is meant.
    with pytest.raises(ValueError, match="named explicitly, takes the first 4 of 5"):
        keras_recbert.build("bert_mini", weights=folder, **sizes)
    with pytest.raises(ValueError, match="num_layers: 6 in .*, 5 in the checkpoint"):
        keras_recbert.build(
            "transformer_student", weights=folder, num_layers=6, **sizes
        )


def test_the_transformer_student_is_read_where_it_is_pooled(
    bert, tmp_path, eager_steps
):
    """From a BERT to a classifier, which every file keeps."""
    set_seed(0)
    sizes = {key: SIZES[key] for key in ("hidden_dim", "num_heads")}
    model = keras_recbert.build(
        "transformer_student", task="classifier", weights=bert[1], **sizes
    )
    assert model.pooling == "first"
    before = [weight.numpy() for weight in model.trainable_weights]
    model.fit(TEXTS, LABELS, epochs=1, verbose=0)
    for old, weight in zip(before, model.trainable_weights, strict=True):
        assert np.any(weight.numpy() != old), f"training leaves {weight.path}"
    logits = model.predict(TEXTS, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    for name in ("model.keras", "preset"):
        loaded = keras_recbert.load(tmp_path / name)
        assert loaded.encoder.config["pooled_layers"] == "all"
        assert loaded.pooling == "first"
        np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), logits)
    model.export_savedmodel(tmp_path / "served")
    served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    scores = served(text=tf.constant(TEXTS))["scores"]
    np.testing.assert_allclose(scores, tf.nn.softmax(logits), atol=1e-6)
    # A preset of the encoder starts one that reads its last block alone.
    model.encoder.save_preset(tmp_path / "student")
    plain = keras_recbert.build(
        "bert_mini", weights=tmp_path / "student", num_layers=3, **sizes
    )
    assert plain.config["pooled_layers"] == "last"


def test_what_is_impossible_is_told(bert, tmp_path):
    with pytest.raises(ValueError, match="must be one of 'last', 'all'. Received"):
        keras_recbert.build("bert_tiny", pooled_layers="mean")
    student = tiny_model("transformer_student", num_layers=2)
    with pytest.raises(ValueError, match="pooled_layers='all'. `save_preset` and"):
        student.encoder.save_huggingface(tmp_path / "folder")
    assert main(["explain", "transformer_student"]) == 0
