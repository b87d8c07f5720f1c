"""Scores that a model should beat."""

import numpy as np

from keras_recbert.extras import check_installed


def majority_accuracy(train_labels, dev_labels):
    """Accuracy of always guessing the commonest training label.

    Args:
        train_labels: int array `(num_train,)`.
        dev_labels: int array `(num_dev,)`.

    Returns:
        float in [0, 1].
    """
    commonest = np.bincount(train_labels).argmax()
    return float(np.mean(np.asarray(dev_labels) == commonest))


def bag_of_words_accuracy(train_texts, train_labels, dev_texts, dev_labels):
    """Accuracy of logistic regression on TF-IDF weights of single words.

    Args:
        train_texts: list of str.
        train_labels: int array `(num_train,)`.
        dev_texts: list of str.
        dev_labels: int array `(num_dev,)`.

    Returns:
        float in [0, 1].

    Raises:
        ImportError: if scikit-learn is not installed.
    """
    check_installed("The bag-of-words baseline", "train", "sklearn")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    baseline = make_pipeline(
        TfidfVectorizer(sublinear_tf=True), LogisticRegression(max_iter=1000)
    )
    baseline.fit(train_texts, train_labels)
    return float(baseline.score(dev_texts, dev_labels))
