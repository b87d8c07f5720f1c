"""What a user types to build a model of words."""

import numpy as np
import pytest
import tensorflow as tf
from harness import set_seed
from toy_texts import DISLIKED, FILLERS, LIKED, VOCABULARY, reviews, tiny_model
from word_vector_files import text, vectors_of, write

import keras_recbert
from keras_recbert.text import WordTokenizer, read_word_vectors

TEXTS, LABELS = reviews()
TINY = {"recurrent_dim": 6, "pooled_dim": 5}


@pytest.fixture(scope="module")
def glove(tmp_path_factory):
    words = [*LIKED, *DISLIKED, *FILLERS, "unseen", "U.S."]
    path = tmp_path_factory.mktemp("vectors") / "glove.txt"
    return write(path, text(words, vectors_of(words)))


def table_of(model):
    encoder = getattr(model, "encoder", model)
    return [table.numpy() for table in encoder.embeddings.tables]


def test_no_optional_argument(eager_steps):
    """From texts alone, at the default size; the default recipe learns."""
    set_seed(0)
    texts, labels = reviews(10)
    model = keras_recbert.build("bilstm_student", task="classifier", texts=texts)
    assert model.pooling == "first" and model.learning_rate == 1e-3
    assert model.encoder.config["channels"] == "non_static"
    assert model.encoder.config["recurrent_dim"] == 150
    model.fit(texts, labels, epochs=6, verbose=0)
    assert (model.predict(texts, verbose=0).argmax(1) == labels).mean() > 0.8


def test_vectors_of_a_file(glove, capsys, eager_steps):
    model = keras_recbert.build(
        "bilstm_student", task="classifier", vectors=glove, **TINY
    )
    words = model.preprocessor.tokenizer.vocabulary
    assert words[5:] == (*LIKED, *DISLIKED, *FILLERS, "unseen")
    assert model.encoder.config["vector_dim"] == 4
    static, trained = table_of(model)
    np.testing.assert_array_equal(static, trained)
    np.testing.assert_array_equal(static[5:], read_word_vectors(glove).vectors[:-1])
    assert (
        keras_recbert.count_parameters("bilstm_student", vectors=glove, **TINY)
        == model.encoder.count_params()
    )
    model.fit(TEXTS[:2], LABELS[:2])
    assert (
        f"bilstm_student from vectors of {glove}: learning" in capsys.readouterr().out
    )
    assert np.any(table_of(model)[1] != trained)
    np.testing.assert_array_equal(table_of(model)[0], static)


def test_vectors_of_the_words_of_texts(glove, capsys):
    arguments = {"vectors": glove, "texts": TEXTS, "max_words": 9, **TINY}
    model = keras_recbert.build("bilstm_student", task="regressor", **arguments)
    assert model.preprocessor.tokenizer.vocabulary_size == 5 + 9
    assert "8 of 9 words have a vector" in capsys.readouterr().out  # not "."
    vectors = read_word_vectors(glove)
    given = {**arguments, "vectors": vectors, "channels": "static"}
    encoder = keras_recbert.build("bilstm_student", **given)
    known = [w in vectors.words for w in encoder.preprocessor.tokenizer.vocabulary]
    (static,) = table_of(encoder)
    np.testing.assert_array_equal(static[known], table_of(model)[0][known])
    assert encoder.encode(TEXTS[:3], layer=[0, 1], verbose=0).shape == (3, 4 + 12)


def test_a_vocabulary_that_is_given(glove):
    words = VOCABULARY[:9]
    model = keras_recbert.build(
        "bilstm_student", task="classifier", vocabulary=words, vectors=glove, **TINY
    )
    assert type(model.preprocessor.tokenizer) is WordTokenizer
    assert model.preprocessor.tokenizer.vocabulary == tuple(words)
    np.testing.assert_array_equal(
        table_of(model)[0][5:9], read_word_vectors(glove).vectors[:4]
    )


def test_what_does_not_go_together_is_told(glove, tmp_path):
    def message_of(name="bilstm_student", **arguments):
        with pytest.raises((ValueError, FileNotFoundError)) as caught:
            keras_recbert.build(name, **{"task": "classifier", **arguments})
        return str(caught.value)

    assert "4 wide. Received: vector_dim=3" in message_of(vectors=glove, vector_dim=3)
    both = message_of(vocabulary=VOCABULARY, texts=TEXTS)
    assert "`texts` say which words a vocabulary has. Received beside" in both
    assert "have no word pieces" not in message_of(vocabulary=VOCABULARY)
    assert "has no word pieces. Received: 3 that" in message_of(vocabulary=VOCABULARY)
    assert "no file of word vectors at nope" in message_of(vectors="nope")
    buckets = {"vocabulary": VOCABULARY, "num_oov_buckets": 3}
    refused = message_of("bert_tiny", **buckets)
    assert "num_oov_buckets=3 with a WordPieceTokenizer, which cuts" in refused
    assert "no argument 'vectors'" in message_of("bert_tiny", vectors=glove)
    assert "encoders of BERT's frame" in message_of(task="pretrainer")
    tiny_model().encoder.save_preset(tmp_path / "bert")
    refused = message_of(weights=tmp_path / "bert")
    assert "encoder of the same class. 'bilstm_student' is a Word" in refused
    assert "Vectors start from a BERT's: vectors=" in refused
    keras_recbert.build("bilstm_student", texts=TEXTS, **TINY).save_preset(
        tmp_path / "own"
    )
    refused = message_of("bert_tiny", weights=tmp_path / "own")
    assert "holds a WordBiLSTMEncoder. `keras_recbert.load`" in refused
    own = {"weights": tmp_path / "own"}
    assert "of recurrent_dim=" in message_of(**own, recurrent_dim=99)
    assert "`vectors` beside `weights`" in message_of(**own, vectors=glove)


def test_a_preset_starts_another_task(tmp_path, eager_steps):
    """As the students of several tasks are fine-tuned on one of them."""
    options = {"texts": TEXTS, "num_oov_buckets": 3, **TINY}
    task = {"tone": "classifier", "stars": "regressor"}
    several = keras_recbert.build("bilstm_student", task=task, **options)
    several.save_preset(tmp_path / "several")
    weights = tmp_path / "several"
    one = keras_recbert.build("bilstm_student", task="classifier", weights=weights)
    assert one.preprocessor.tokenizer.num_oov_buckets == 3
    np.testing.assert_array_equal(one.encode(TEXTS), several.encode(TEXTS))
    assert len(one.encoder.weights_report.copied) == len(one.encoder.weights)
    bare = keras_recbert.build("bilstm_student", weights=weights)
    np.testing.assert_array_equal(bare.encode(TEXTS), several.encode(TEXTS))


def test_lower_layers_can_be_read(eager_steps):
    sizes = {"num_layers": 2, **TINY}
    model = keras_recbert.build(
        "bilstm_student", task="classifier", texts=TEXTS, layer=1, **sizes
    )
    assert model.predict(TEXTS[:2], verbose=0).shape == (2, 2)
    with pytest.raises(ValueError, match="gives the output of its last block only"):
        keras_recbert.build(
            "siamese_bilstm_student", task="classifier", texts=TEXTS, layer=1, **sizes
        )


def test_every_file_answers_the_same(glove, tmp_path, eager_steps):
    model = keras_recbert.build(
        "bilstm_student", task="classifier", vectors=glove, num_oov_buckets=3, **TINY
    )
    texts = [*reviews()[0], "unheard", "of", "words"]
    expected = model.predict(texts, verbose=0)
    size = len(model.preprocessor.tokenizer.vocabulary)
    assert model.encoder.config["vocabulary_size"] == size + 3
    ids = model.preprocessor(texts[-3:])["token_ids"].numpy()[:, 1]
    assert set(ids) <= {size, size + 1, size + 2} and len(set(ids)) > 1
    assert len({*table_of(model)[0][size:, 0]}) == 3  # rows of their own
    model.save(tmp_path / "model.keras")
    model.save_preset(tmp_path / "preset")
    model.export_savedmodel(tmp_path / "served")
    for name in ("model.keras", "preset"):
        again = keras_recbert.load(tmp_path / name)
        np.testing.assert_array_equal(again.predict(texts, verbose=0), expected)
        assert type(again.preprocessor.tokenizer) is WordTokenizer
        assert again.preprocessor.tokenizer.num_oov_buckets == 3
        assert (again.pooling, again.learning_rate) == ("first", 1e-3)
        for own, wanted in zip(table_of(again), table_of(model), strict=True):
            np.testing.assert_array_equal(own, wanted)
        assert len(again.encoder.trainable_weights) == 6
    served = tf.saved_model.load(tmp_path / "served").signatures["serving_default"]
    scores = served(text=tf.constant(texts))["scores"]
    np.testing.assert_allclose(scores, tf.nn.softmax(expected), atol=1e-6)
