"""Scores that a model should beat."""

import re

import numpy as np

from keras_recbert.core.extras import check_installed

# Two word characters in a row: what scikit-learn counts as a word.
_WORD = re.compile(r"\w\w")


def majority_accuracy(train_labels, validation_labels):
    """Accuracy of always guessing the commonest training label.

    Args:
        train_labels: int array `(num_train,)`.
        validation_labels: int array `(num_validation,)`.

    Returns:
        float in [0, 1].
    """
    commonest = np.bincount(train_labels).argmax()
    return float(np.mean(np.asarray(validation_labels) == commonest))


def bag_of_words_accuracy(
    train_texts, train_labels, validation_texts, validation_labels
):
    """Accuracy of logistic regression on TF-IDF weights of single words.

    Args:
        train_texts: list of str.
        train_labels: int array `(num_train,)`.
        validation_texts: list of str.
        validation_labels: int array `(num_validation,)`.

    Returns:
        float in [0, 1].

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    predictions = bag_of_words_classes(train_texts, train_labels, validation_texts)
    return float(np.mean(predictions == np.asarray(validation_labels)))


def bag_of_words_classes(train_texts, train_labels, texts):
    """Classes that logistic regression on TF-IDF weights of single words predicts.

    Args:
        train_texts: list of str.
        train_labels: int array `(num_train,)`.
        texts: list of str.

    Returns:
        int array, one an example of `texts`.

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    tfidf, models = _sklearn()
    return _fit(
        tfidf, models.LogisticRegression(max_iter=1000), train_texts, train_labels
    ).predict(texts)


def bag_of_words_numbers(train_texts, train_labels, texts):
    """Numbers that ridge regression on TF-IDF weights of single words predicts.

    Args:
        train_texts: list of str.
        train_labels: float array `(num_train,)`.
        texts: list of str.

    Returns:
        float array, one an example of `texts`.

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    tfidf, models = _sklearn()
    return _fit(tfidf, models.Ridge(), train_texts, train_labels).predict(texts)


def why_no_bag_of_words(train_texts, train_labels):
    """Says why a bag of words cannot be trained.

    Args:
        train_texts: list of str.
        train_labels: array `(num_train,)`.

    Returns:
        str, or None if it can be trained.
    """
    if len(np.unique(train_labels)) < 2:
        return "all training examples have one label"
    if not any(map(_WORD.search, train_texts)):
        return "the training texts hold no word of two letters"
    return None


def _sklearn():
    check_installed("The bag-of-words baseline", "train", "sklearn")
    from sklearn import linear_model
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True), linear_model


def _fit(tfidf, model, texts, labels):
    from sklearn.pipeline import make_pipeline

    return make_pipeline(tfidf, model).fit(texts, labels)
