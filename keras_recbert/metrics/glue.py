"""GLUE's scores: accuracy, F1, Matthews, Pearson and Spearman correlation.

The numbers come from scikit-learn and SciPy; this module checks what goes in.
"""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from keras_recbert.core.extras import check_installed

CLASSIFICATION_METRICS = ("accuracy", "f1", "macro_f1", "matthews")
REGRESSION_METRICS = ("pearson", "spearman")
METRICS = (*CLASSIFICATION_METRICS, *REGRESSION_METRICS)


def glue_scores(
    metric_names: str | Sequence[str],
    labels: np.ndarray,
    predictions: np.ndarray,
) -> dict[str, float]:
    """Scores predictions with the named metrics.

    F1 is that of class 1 and takes two classes; macro F1 is the mean over all classes
    that labels or predictions hold. F1 and Matthews are 0 where
    their denominator is. Pearson and Spearman are undefined for constant
    predictions; they are 0 here, because such predictions tell nothing about
    the labels and because a NaN would win or lose every comparison of models.

    Args:
        metric_names: one or several of `"accuracy"`, `"f1"`, `"macro_f1"`,
            `"matthews"`, `"pearson"`, `"spearman"`.
        labels: class ids (int) or, for the correlations, numbers;
            `(num_examples,)`.
        predictions: class ids (int, not logits) or, for the correlations,
            numbers; `(num_examples,)`.

    Returns:
        Scores by metric name, in the order asked for; from 0 to 1, or -1 to 1
        for Matthews, Pearson and Spearman.

    Raises:
        ImportError: where scikit-learn is not installed.
        ValueError: for an unknown name, different or wrong shapes, no
            examples, values that are not finite, class ids that are not
            integers, or labels for which a correlation is undefined.
    """
    names = _metric_names(metric_names)
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape:
        raise ValueError(
            "`labels` and `predictions` must both have the shape "
            f"(num_examples,). Received: labels {labels.shape}, predictions "
            f"{predictions.shape}. Of logits take the argmax (classes) or "
            "squeeze the last axis (scores)."
        )
    if not len(labels):
        raise ValueError("There is nothing to score: `labels` is empty.")
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"`{name}` must be numbers. Received: dtype {values.dtype}."
            )
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(
                f"`{name}` must be finite. Received {values[bad[0]]} at position "
                f"{bad[0]} ({len(bad)} of {len(values)} are not finite)."
            )

    functions = {
        "accuracy": _accuracy,
        "f1": _f1,
        "macro_f1": _macro_f1,
        "matthews": _matthews,
        "pearson": _pearson,
        "spearman": _spearman,
    }
    for name in names:
        check = _check_classes if name in CLASSIFICATION_METRICS else _check_scores
        check(name, labels, predictions)
    return {name: float(functions[name](labels, predictions)) for name in names}


def _metric_names(wanted) -> tuple[str, ...]:
    names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(
            f"Unknown metrics: {unknown or 'none given'}. Valid: {', '.join(METRICS)}."
        )
    return names


def _check_classes(metric, labels, predictions):
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind == "f":
            raise ValueError(
                f"`{name}` must be class ids of an integer dtype for {metric!r}. "
                f"Received: dtype {values.dtype}. Of logits take the argmax."
            )
    if metric == "f1":
        ids = np.union1d(labels, predictions)
        if not np.isin(ids, (0, 1)).all():
            raise ValueError(
                "'f1' takes two classes, 0 and 1. "
                f"Received class ids: {ids[:10].tolist()}."
            )


def _check_scores(metric, labels, predictions):
    del predictions  # Constant predictions are a result, not a mistake.
    if len(labels) < 2 or np.ptp(labels) == 0:
        raise ValueError(
            f"{metric!r} is undefined unless `labels` holds two different values. "
            f"Received {len(labels)} labels, all {labels[0]}."
        )


def check_metrics():
    """Raises `ImportError`, saying the way out, without what GLUE's scores need."""
    check_installed("Scoring GLUE", "train", "sklearn", "scipy")


def _sklearn_metrics():
    check_metrics()
    import sklearn.metrics

    return sklearn.metrics


def _scipy_stats():
    check_metrics()
    import scipy.stats

    return scipy.stats


def _accuracy(labels, predictions):
    return _sklearn_metrics().accuracy_score(labels, predictions)


def _f1(labels, predictions):
    return _sklearn_metrics().f1_score(labels, predictions, zero_division=0.0)


def _macro_f1(labels, predictions):
    return _sklearn_metrics().f1_score(
        labels, predictions, average="macro", zero_division=0.0
    )


def _matthews(labels, predictions):
    return _sklearn_metrics().matthews_corrcoef(labels, predictions)


def _pearson(labels, predictions):
    return _correlation("pearsonr", labels, predictions)


def _spearman(labels, predictions):
    return _correlation("spearmanr", labels, predictions)


def _correlation(function, labels, predictions):
    stats = _scipy_stats()
    with warnings.catch_warnings():
        # Expected of a model that has learnt nothing yet.
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        warnings.simplefilter("ignore", stats.NearConstantInputWarning)
        # float64, or the rounding of float32 sums would show in the score.
        value = getattr(stats, function)(
            labels.astype(np.float64), predictions.astype(np.float64)
        ).statistic
    return 0.0 if math.isnan(value) else value
