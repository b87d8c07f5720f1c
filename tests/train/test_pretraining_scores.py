"""Scores of a pre-trained model over whole corpora."""

import math

import keras
import numpy as np
import pytest
from toy_texts import SIZES, VOCABULARY, reviews, tiny_model, write_corpus

import keras_recbert
from keras_recbert.data.corpus import load_corpus
from keras_recbert.data.prepare import prepare
from keras_recbert.data.pretraining_examples import PretrainingExamples
from keras_recbert.objectives import read_objectives
from keras_recbert.train.pretraining_scores import score_pretrained

OBJECTIVES = {"masked_lm": None, "next_sentence": {"layer": 1}}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("scores"))


@pytest.fixture(scope="module")
def saved(corpus):
    """Path of an untrained model with two objectives, saved without an optimizer."""
    keras.utils.set_random_seed(3)
    model = keras_recbert.build(
        "bert_tiny",
        task="pretrainer",
        objectives=read_objectives(OBJECTIVES),
        vocabulary=VOCABULARY,
        **SIZES,
    )
    for weight in model.trainable_weights:  # at the start all pieces are as likely
        weight.assign(8 * weight)
    path = f"{corpus}.model.keras"
    model.save(path)
    return path


@pytest.mark.slow
def test_every_prediction_of_the_corpus_counts_once(saved, corpus):
    scores = score_pretrained(saved, {"toy": corpus}, sequence_length=16, seed=7)
    model = keras_recbert.load(saved)
    examples = PretrainingExamples(load_corpus(corpus), model.objectives, 16, 7)
    losses = {"masked_lm": [], "next_sentence": []}
    right = {"masked_lm": [], "next_sentence": []}
    for index in range(examples.num_examples):
        x, y, real = examples.example(0, index)
        logits = model({name: values[None] for name, values in x.items()})
        for name in losses:
            rows = np.reshape(logits[name], (-1, logits[name].shape[-1])).astype("f8")
            for row, label, weight in zip(
                rows, np.ravel(y[name]), np.ravel(real[name]), strict=True
            ):
                if weight:
                    losses[name].append(np.log(np.exp(row).sum()) - row[label])
                    right[name].append(row.argmax() == label)
    assert len(losses["next_sentence"]) == examples.num_examples
    for name, values in losses.items():
        found = scores[f"test_toy_{name}_cross_entropy"]
        assert found == pytest.approx(np.mean(values), rel=1e-5)
        found = scores[f"test_toy_{name}_accuracy"]
        assert found == pytest.approx(np.mean(right[name]), rel=1e-5)
    perplexity = math.exp(np.mean(losses["masked_lm"]))
    assert scores["test_toy_masked_lm_perplexity"] == pytest.approx(perplexity, 1e-4)


@pytest.mark.slow
def test_the_seed_and_the_number_of_examples_are_used(saved, corpus):
    key = "test_toy_masked_lm_cross_entropy"
    one, same, other, few = (
        score_pretrained(saved, {"toy": corpus}, **options)[key]
        for options in (
            {"seed": 1},
            {"seed": 1, "batch_size": 3},
            {"seed": 2},
            {"seed": 1, "num_examples": 2},
        )
    )
    assert one == pytest.approx(same, rel=1e-5)
    assert len({one, other, few}) == 3


def test_what_cannot_be_scored_is_told(saved, corpus, tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file none.keras"):
        score_pretrained("none.keras", {"toy": corpus})
    with pytest.raises(ValueError, match="is a folder. Name the model.keras of a run"):
        score_pretrained(tmp_path, {"toy": corpus})
    tiny_model(label_names=["bad", "good"]).save(tmp_path / "classifier.keras")
    with pytest.raises(ValueError, match="classifier.keras has no heads of pre-train"):
        score_pretrained(tmp_path / "classifier.keras", {"toy": corpus})
    with pytest.raises(ValueError, match="at most 64, .* sequence_length=65"):
        score_pretrained(saved, {"toy": corpus}, sequence_length=65)
    for option in ("sequence_length", "num_examples", "batch_size"):
        with pytest.raises(ValueError, match=f"`{option}` must be a whole number.*=0"):
            score_pretrained(saved, {"toy": corpus}, **{option: 0})
    with pytest.raises(FileNotFoundError, match="No corpus at .*none"):
        score_pretrained(saved, {"toy": tmp_path / "none"})
    (tmp_path / "other.txt").write_text("\n".join(reviews(12)[0]))
    prepare([tmp_path / "other.txt"], tmp_path / "other", vocabulary=VOCABULARY[:-1])
    with pytest.raises(ValueError, match="other has other word pieces than .*model.k"):
        score_pretrained(saved, {"toy": tmp_path / "other"})
