"""Models of words from the command line: with vectors and without."""

import json

import pytest
from harness import assert_close
from toy_texts import DISLIKED, FILLERS, LIKED, VOCABULARY, write_glue_task
from word_vector_files import text, vectors_of, write

import keras_recbert
from keras_recbert.cli import main
from keras_recbert.config import FineTuningConfig
from keras_recbert.text import learn_vectors
from keras_recbert.text.vocabulary import SPECIAL_TOKENS, save_vocabulary
from keras_recbert.train.run_model import run_vocabulary

TINY = ["--overrides", "recurrent_dim", "6", "pooled_dim", "5"]


@pytest.fixture
def glove(tmp_path):
    words = [*LIKED, *DISLIKED, *FILLERS]
    return write(tmp_path / "glove.txt", text(words, vectors_of(words)))


def test_a_task_with_vectors(glove, tmp_path, capsys, eager_steps):
    write_glue_task(tmp_path / "glue", "sst2")
    run = tmp_path / "run"
    command = ["finetune", "--task", "sst2", "--data-dir", str(tmp_path / "glue")]
    command += ["--model", "bilstm_student", "--vectors", str(glove), "--epochs", "1"]
    command += ["--num-oov-buckets", "5"]
    command += ["--output-dir", str(run), "--no-export", *TINY]
    assert main(command) == 0
    assert f"words have a vector in {glove}" in capsys.readouterr().out
    results = json.loads((run / "results.json").read_text())
    assert results["pooling"] == "first"
    glove.unlink()  # what is saved has its own
    model = keras_recbert.load(run / "preset")
    words = (run / "vocab.txt").read_text().splitlines()
    assert model.preprocessor.tokenizer.vocabulary == tuple(words)
    assert model.preprocessor.tokenizer.vocabulary_size == len(words) + 5
    assert model.encoder.config["channels"] == "multichannel"
    assert 0 <= results["scores"]["validation_accuracy"] <= 1
    assert model.predict(["a good film", "dull"], verbose=0).shape == (2, 2)


def words_of(model="bilstm_student", **options):
    texts = ["Dull, dull film", "a FILM, a rare one"]
    config = FineTuningConfig(model=model, **options)
    return run_vocabulary(config, lambda: iter(texts))


def test_words_of_a_run_without_a_file_of_vectors(tmp_path):
    words, vectors = words_of(max_words=2)
    assert words == [*SPECIAL_TOKENS, ",", "a"]  # all twice
    assert vectors.words == (",", "a") and vectors.vector_dim == 300
    assert words_of(max_words=2, vectors="random") == (words, None)
    options = {"lowercase": False, "min_frequency": 1, "overrides": {"vector_dim": 7}}
    words, vectors = words_of("siamese_bilstm_student", vectors="learned", **options)
    assert {"Dull", "dull", "film", "FILM"} < set(words)
    assert vectors.vector_dim == 7 and set(vectors.words) == set(words[5:])
    save_vocabulary([*SPECIAL_TOKENS, "film", "a"], tmp_path / "vocab.txt")
    _, vectors = words_of(vocabulary=str(tmp_path / "vocab.txt"))
    assert vectors.words == ("film", "a")
    assert words_of("bert_tiny", vocabulary=str(tmp_path / "vocab.txt"))[1] is None


def test_a_run_starts_from_vectors_of_its_texts(tmp_path, capsys, eager_steps):
    write_glue_task(tmp_path / "glue", "sst2")
    command = ["finetune", "--task", "sst2", "--data-dir", str(tmp_path / "glue")]
    command += ["--model", "bilstm_student", "--epochs", "1", "--no-export"]
    command += ["--output-dir", str(tmp_path / "run"), *TINY]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "words learned from" in printed
    assert "bilstm_student from vectors of the texts" in printed
    model = keras_recbert.load(tmp_path / "run" / "preset")
    assert model.encoder.config["channels"] == "non_static"


def test_build_learns_vectors_of_texts():
    texts = ["a good film", "a dull film", "good", "a film"]
    given = {"texts": texts, "vectors": "learned", "min_frequency": 1}
    encoder = keras_recbert.build("bilstm_student", vector_dim=6, **given)
    words, table = encoder.preprocessor.tokenizer.vocabulary, encoder.embeddings.tables
    expected = learn_vectors(texts, list(words), 6, report=lambda note: None)
    rows = [words.index(word) for word in expected.words]
    assert len(rows) == 4 and len(table) == 1
    assert_close(table[0].numpy()[rows], expected.vectors)
    given["vectors"] = "random"
    drawn = keras_recbert.build("bilstm_student", vector_dim=6, **given)
    assert drawn.preprocessor.tokenizer.vocabulary == words
    with pytest.raises(ValueError, match="Vectors are learned from `texts`. Received"):
        keras_recbert.build("bilstm_student", vectors="learned")


def refused(capsys, *command):
    assert main(["finetune", "--task", "sst2", "--data-dir", "DIR", *command]) == 2
    return capsys.readouterr().err


def test_what_is_wrong_is_told_before_texts_are_read(glove, tmp_path, capsys):
    model = ["--model", "bilstm_student", "--output-dir", str(tmp_path / "run")]
    assert "no file of word vectors at nope" in refused(
        capsys, *model, "--vectors", "nope"
    )
    message = refused(capsys, "--model", "bert_tiny", "--vectors", str(glove))
    assert "`vectors` are for an encoder of words, such as bilstm_student" in message
    message = refused(capsys, "--model", "bert_tiny", "--vectors", "learned")
    assert "Received: vectors='learned', model='bert_tiny'" in message
    message = refused(capsys, "--model", "bert_tiny", "--num-oov-buckets", "5")
    assert "`num_oov_buckets` are for an encoder of words" in message
    given = ["--vectors", str(glove), "--overrides", "vector_dim", "50"]
    message = refused(capsys, *model, *given)
    assert "numbers. Received: overrides={'vector_dim': 50}. Leave it out." in message
    glove.write_text("A line of prose.\n")
    message = refused(capsys, *model, "--vectors", str(glove))
    assert "glove.txt:1: expected a word and its values" in message
    save_vocabulary(VOCABULARY, tmp_path / "vocab.txt")
    message = refused(capsys, *model, "--vocabulary", str(tmp_path / "vocab.txt"))
    assert "has no word pieces" in message
    assert not (tmp_path / "run").exists()
    with pytest.raises(ValueError, match="`max_words` must be at least 1"):
        FineTuningConfig(max_words=0)
    with pytest.raises(ValueError, match="`vectors` is an empty path"):
        FineTuningConfig(vectors="")
