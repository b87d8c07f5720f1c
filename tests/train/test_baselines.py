import sys

import pytest

from keras_recbert.train.baselines import bag_of_words_accuracy, majority_accuracy


def test_majority_guesses_the_commonest_training_label():
    assert majority_accuracy([2, 2, 1, 0], [2, 1, 2, 2, 0]) == 0.6
    assert (
        majority_accuracy([0, 0, 1], [1, 1]) == 0.0
    )  # of the training, not the validation


def test_bag_of_words_learns_words_and_not_their_order():
    texts = ["a fine film", "fine music", "a dull film", "dull music"] * 5
    labels = [1, 1, 0, 0] * 5
    validation = ["film fine a", "music dull", "a fine story", "a dull story"]
    assert bag_of_words_accuracy(texts, labels, validation, [1, 0, 1, 0]) == 1.0
    assert bag_of_words_accuracy(texts, labels, validation, [0, 1, 1, 0]) == 0.5
    order = ["dog bites man", "man bites dog"] * 10
    assert bag_of_words_accuracy(order, [0, 1] * 10, order[:2], [0, 1]) == 0.5


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'scikit-learn: pip install -e ".\[train\]"'):
        bag_of_words_accuracy(["a", "b"], [0, 1], ["a"], [0])
