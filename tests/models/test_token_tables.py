"""Students on the word pieces of a BERT, started from its token table."""

import json

import numpy as np
import pytest
from toy_texts import VOCABULARY, reviews, tiny_model, write_glue_task

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.convert.token_table import principal_components, read_token_table
from keras_recbert.text import WordPieceTokenizer

TEXTS, LABELS = reviews(10)
TINY = {"recurrent_dim": 6, "pooled_dim": 5}
WIDTH = 18


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A cased BERT, and the folder of Hugging Face that has it."""
    model = tiny_model(lowercase=False)
    folder = tmp_path_factory.mktemp("bert") / "folder"
    model.encoder.preprocessor = model.preprocessor
    model.encoder.save_huggingface(folder)
    return model.encoder, folder


def test_principal_components_are_those_of_a_singular_value_decomposition():
    table = np.random.default_rng(0).normal(size=(40, 7)) * np.arange(1, 8) + 3.0
    centred = table - table.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    for dim in (1, 3, 7):
        found, expected = principal_components(table, dim), (left * values)[:, :dim]
        same = np.sign((found * expected).sum(axis=0))  # each axis has two signs
        np.testing.assert_allclose(found, expected * same, atol=1e-5)
        np.testing.assert_array_equal(found, principal_components(table, dim))


def test_the_table_of_a_bert_is_the_start(bert, tmp_path, capsys, eager_steps):
    encoder, folder = bert
    model = keras_recbert.build(
        "bilstm_student", task="classifier", vectors=folder, **TINY
    )
    tokenizer = model.preprocessor.tokenizer
    assert type(tokenizer) is WordPieceTokenizer
    assert tokenizer.vocabulary == tuple(VOCABULARY) and not tokenizer.lowercase
    (table,) = model.encoder.embeddings.tables
    np.testing.assert_array_equal(table, encoder.embeddings.weights[0])
    # A word of two pieces.
    pieces = [VOCABULARY.index(piece) for piece in ("[CLS]", "good", "##s", "[SEP]")]
    assert model.preprocessor(["goods"])["token_ids"].numpy()[0, :4].tolist() == pieces
    model.fit(TEXTS[:2], LABELS[:2])
    assert f"from vectors of {folder}: learning" in capsys.readouterr().out
    assert np.any(model.encoder.embeddings.tables[0].numpy() != read(folder))
    expected = model.predict(TEXTS, verbose=0)
    model.save_preset(tmp_path / "preset")
    loaded = keras_recbert.load(tmp_path / "preset")
    assert type(loaded.preprocessor.tokenizer) is WordPieceTokenizer
    np.testing.assert_array_equal(loaded.predict(TEXTS, verbose=0), expected)


def read(folder):
    return read_token_table(folder).vectors


def test_a_narrower_student_takes_principal_components(bert):
    sizes = {"projection_dim": 7, "vector_dim": 5, **TINY}
    student = keras_recbert.build("bi_attentive_student", vectors=bert[1], **sizes)
    (table,) = student.embeddings.tables
    np.testing.assert_array_equal(table, principal_components(read(bert[1]), 5))
    assert student.encode(TEXTS[:2], verbose=0).shape == (2, 12)
    two = keras_recbert.build(
        "bilstm_student", vectors=bert[1], channels="multichannel", **TINY
    )
    assert [table.shape[1] for table in two.embeddings.tables] == [WIDTH, WIDTH]


def test_a_run_takes_the_folder(bert, tmp_path, capsys, eager_steps):
    write_glue_task(tmp_path / "glue", "sst2")
    command = ["finetune", "--task", "sst2", "--data-dir", str(tmp_path / "glue")]
    command += ["--vectors", str(bert[1]), "--output-dir", str(tmp_path / "run")]
    command += ["--epochs", "1", "--no-export"]
    sizes = ["--overrides", "recurrent_dim", "6", "vector_dim", "4"]
    assert main([*command, "--model", "bilstm_student", *sizes]) == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["learning_rate"] == 1e-3
    model = keras_recbert.load(tmp_path / "run" / "preset")
    assert model.preprocessor.tokenizer.vocabulary == tuple(VOCABULARY)
    assert not model.preprocessor.tokenizer.lowercase
    for name, more, message in (
        ("bert_tiny", [], "takes no `vectors`. Received: vectors="),
        ("bilstm_student", ["--num-oov-buckets", "3"], "not of word pieces. Received"),
    ):
        capsys.readouterr()
        assert main([*command, "--model", name, "--overwrite", *more]) == 2
        assert message in capsys.readouterr().err


def test_what_does_not_go_together_is_told(bert, tmp_path):
    def message_of(name="bilstm_student", **arguments):
        with pytest.raises((ValueError, FileNotFoundError)) as caught:
            keras_recbert.build(name, **{"vectors": bert[1], **arguments})
        return str(caught.value)

    assert "`vector_dim` must be at most 18" in message_of(vector_dim=19)
    assert "`vector_dim` must be a whole number of at" in message_of(vector_dim=0)
    assert "Received beside the folder of a BERT" in message_of(texts=TEXTS)
    other = [*VOCABULARY[:-1], "other"]
    assert f"differs from that of {bert[1]}" in message_of(vocabulary=other)
    refused = message_of("bi_attentive_student", vectors="glove.txt")
    assert "vectors come from the folder of a BERT. Received: vectors='glo" in refused
    assert str(tmp_path) in message_of(vectors=tmp_path)
    (bert[1] / "vocab.txt").rename(tmp_path / "vocab.txt")
    assert "has no vocabulary, so its vectors have no" in message_of()
