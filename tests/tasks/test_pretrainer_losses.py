"""Losses and metrics of pre-training beside those computed from logits."""

import numpy as np
import pytest
import tensorflow as tf
from toy_pretrainers import LOW_SENTENCE, examples, make

from keras_recbert.tasks.optimizers import AdamW


def dataset(*batches):
    stacked = tf.nest.map_structure(lambda *arrays: np.stack(arrays), *batches)
    return tf.data.Dataset.from_tensor_slices(stacked)


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def expected_numbers(model, batches):
    """Mean losses over all real elements, from logits, in float64."""
    terms, right = {}, {}
    for x, y, weights in batches:
        for name, logits in model(x).items():
            logits, labels = logits.numpy().astype("float64"), y[name]
            real = weights[name] > 0
            if name == "bigram_shift":
                term = np.log1p(np.exp(np.where(labels == 1, -logits, logits)))
                hit = (logits > 0) == (labels == 1)
            else:
                term = -np.take_along_axis(log_softmax(logits), labels[..., None], -1)
                term, hit = term[..., 0], logits.argmax(-1) == labels
            terms.setdefault(name, []).append(term[real])
            right.setdefault(name, []).append(hit[real])
    return terms, {name: np.concatenate(hits).mean() for name, hits in right.items()}


def test_losses_and_metrics_are_means_over_real_elements():
    entries = {**LOW_SENTENCE, "next_sentence": {"layer": 1, "loss_weight": 0.5}}
    model = make(entries)
    model.compile_for_pretraining(AdamW(0.001))
    first, second = examples(model), examples(model, seed=1, lengths=(4, 11, 2))
    # One guess less: batches of unlike numbers of real elements.
    weight = second[2]["masked_lm"] > 0
    weight[0, 2] = False
    second[2]["masked_lm"] = (weight * 9 / weight.sum()).astype("float32")
    found = model.evaluate(dataset(first, second), verbose=0, return_dict=True)
    terms, accuracies = expected_numbers(model, [first, second])
    assert set(found) == {
        "loss",
        *(f"{name}_loss" for name in terms),
        *(f"{name}_accuracy" for name in terms),
        *(f"{name}_cross_entropy" for name in terms),
        "bigram_shift_auc",
    }
    for name, accuracy in accuracies.items():
        assert found[f"{name}_accuracy"] == pytest.approx(accuracy, abs=1e-6)
        means = [one.mean() for one in terms[name]]  # of each batch
        assert found[f"{name}_loss"] == pytest.approx(np.mean(means), abs=1e-5)
    total = sum(
        (0.5 if name == "next_sentence" else 1.0) * found[f"{name}_loss"]
        for name in terms
    )
    assert found["loss"] == pytest.approx(total, abs=1e-5)
    # Over all guesses of both batches, each counted once.
    assert len(np.concatenate(terms["masked_lm"])) == 11
    for name, guesses in terms.items():
        mean = np.concatenate([one.ravel() for one in guesses]).mean()
        assert found[f"{name}_cross_entropy"] == pytest.approx(mean, rel=1e-5)


def test_area_under_the_curve_is_that_of_scikit_learn():
    from sklearn.metrics import roc_auc_score

    model = make({"bigram_shift": None})
    model.compile_for_pretraining(AdamW(0.001))
    x, y, weights = examples(model)
    found = model.evaluate(dataset((x, y, weights)), verbose=0, return_dict=True)
    real = weights["bigram_shift"] > 0
    logits = model(x)["bigram_shift"].numpy()
    expected = roc_auc_score(y["bigram_shift"][real], logits[real])
    assert found["bigram_shift_auc"] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("name", ["masked_lm", "next_sentence", "bigram_shift"])
def test_logs_of_one_objective_have_the_names_they_have_beside_others(name):
    model = make({name: None}, num_layers=1)
    model.compile_for_pretraining(AdamW(0.001))
    found = model.evaluate(dataset(examples(model)), verbose=0, return_dict=True)
    names = {"loss", f"{name}_accuracy", f"{name}_cross_entropy"}
    if name == "bigram_shift":
        names.add("bigram_shift_auc")
    assert set(found) == names
    assert found[f"{name}_cross_entropy"] == pytest.approx(found["loss"], rel=1e-5)
