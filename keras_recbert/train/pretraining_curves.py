"""Pictures of pre-training runs."""

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file
from keras_recbert.train.curve_axes import fit_axes


def save_pretraining_curves(path, runs, every, title):
    """Draws training loss, and validation perplexity by steps and by time.

    A line is the mean of the runs of one label, its band their smallest and largest
    values. Time is `training_seconds`. The perplexity is that of the first validation
    corpus in the logs; where a run has none, the loss takes its place for all.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        runs: dict of label to a list of histories: dicts of name to list of values,
            one a checkpoint, as `results.json` has them.
        every: dict of label to int. Steps between two checkpoints.
        title: str.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    check_installed("Drawing curves", "train", "matplotlib")
    from matplotlib.figure import Figure

    score = _score([history for histories in runs.values() for history in histories])
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    losses, by_step, by_time = figure.subplots(1, 3)
    for label, histories in runs.items():
        steps = every[label] * np.arange(1, 1 + min(len(h["loss"]) for h in histories))
        minutes = (
            np.mean([training_seconds(h)[: len(steps)] for h in histories], 0) / 60
        )
        for axis, x, name in (
            (losses, steps, "loss"),
            (by_step, steps, score),
            (by_time, minutes, score),
        ):
            values = _stack(histories, name, len(steps))
            (line,) = axis.plot(x, values.mean(axis=0), label=label, linewidth=1.5)
            if len(histories) > 1:
                low, high = values.min(axis=0), values.max(axis=0)
                axis.fill_between(x, low, high, alpha=0.15, color=line.get_color())
    words = score.removeprefix("val_").replace("_", " ")
    losses.set(xlabel="step", ylabel="training loss")
    by_step.set(xlabel="step", ylabel=words)
    by_time.set(xlabel="minutes of training", ylabel=words)
    scale = "log" if score.endswith("perplexity") else "linear"
    for axis, of_values in ((losses, "linear"), (by_step, scale), (by_time, scale)):
        fit_axes(axis, of_values)
        axis.grid(alpha=0.3)
    losses.legend(frameon=False, fontsize="small")
    figure.suptitle(title)
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


def training_seconds(history):
    """Seconds of training until each checkpoint, at the median pace of the run.

    So that neither compilation, nor what else the machine did for a while, counts.

    Args:
        history: dict with `seconds`, those that have passed.

    Returns:
        float64 array, one value a checkpoint.
    """
    passed = np.diff(history["seconds"], prepend=0.0)
    return np.median(passed) * np.arange(1, 1 + len(passed))


def _score(histories):
    """Name of a score that all runs have."""
    shared = [n for n in histories[0] if all(n in other for other in histories)]
    perplexities = [n for n in shared if n.startswith("val_") and "perplexity" in n]
    return (perplexities or ["loss"])[0]


def _stack(histories, name, length):
    return np.array([history[name][:length] for history in histories])
