"""The bi-attentive student of Liu 2020, section 4.1.2, in float64 loops."""

import numpy as np
from reference.trans_blstm import blstm


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def read(text, weights):
    """Both directions of an LSTM over one text `(length, dim)`."""
    return blstm(text[np.newaxis], weights, np.ones((1, len(text))))[0]


def context(texts, scores):
    """`softmax(A)^T X`: of each column of `A` a weighted sum of the rows of `X`."""
    columns = []
    for column in range(scores.shape[1]):
        weights = softmax(scores[:, column])
        columns.append(sum(w * row for w, row in zip(weights, texts, strict=True)))
    return np.array(columns)


def pool(states, vector):
    """Equations 4.10 to 4.12."""
    weights = softmax(np.array([state @ vector for state in states]))
    attended = sum(w * state for w, state in zip(weights, states, strict=True))
    return np.concatenate([states.max(0), states.mean(0), attended])


def bi_attentive_student(first, second, weights):
    """One pair of texts, `(n, dim)` and `(m, dim)`: the vector and `X`, `Y`."""
    projected = [
        np.maximum(text @ weights["kernel"] + weights["bias"], 0.0)
        for text in (first, second)
    ]
    x, y = (read(text, weights["reader"]) for text in projected)
    scores = np.array([[a @ b for b in y] for a in x])
    context_x = context(x, scores)
    context_y = context(y, scores.T)
    x_y = np.concatenate([x, x - context_y, x * context_y], axis=1)
    y_x = np.concatenate([y, y - context_x, y * context_x], axis=1)
    x_y = read(x_y, weights["first_reader"])
    y_x = read(y_x, weights["second_reader"])
    pooled = [pool(x_y, weights["first_scores"]), pool(y_x, weights["second_scores"])]
    return np.concatenate(pooled), x, y
