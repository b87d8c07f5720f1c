"""Draws scores against learning rates: how much care an encoder needs."""

import statistics

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file
from keras_recbert.train.fine_tuning_plan import FINAL

RATE = "learning_rate"


def has_learning_rates(results):
    """Whether results are those of several learning rates of one recipe and options."""
    panels = _panels(results).values()
    return any(len(points) > 1 for lines in panels for points in lines.values())


def save_sweep_figure(path, results):
    """Draws the main score against the learning rate, as Lei et al. 2022, figure 3.

    A panel a recipe, and one of their mean; a line an encoder (and what else the grid
    varies). A line is the mean over the seeds, its band their lowest and highest
    scores. A point with fewer seeds than others, of which some runs failed or are still
    to come, is hollow.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        results: list of the dicts in the `results.json` of a sweep. Those of chosen
            options, which have one learning rate, are left out.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    check_installed("Drawing curves", "train", "matplotlib")
    from matplotlib.figure import Figure

    panels = _panels(results)
    if len(panels) > 1 and (means := _mean_of(panels)):
        panels["mean of all", "score, %"] = means
    size = (4.5 * len(panels) + 0.5, 3.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, ((title, score), lines) in zip(axes, panels.items(), strict=True):
        num_seeds = max(len(s) for points in lines.values() for s in points.values())
        for label, points in lines.items():
            _draw(axis, label, points, num_seeds)
        rates = _rates(lines)
        axis.set_xscale("log")
        axis.set_xticks(rates, [f"{rate:g}" for rate in rates], rotation=30)
        axis.minorticks_off()
        axis.set(title=title, xlabel="learning rate", ylabel=score)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize="small")
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


def _draw(axis, label, points, num_seeds):
    rates = sorted(points)
    scores = [list(points[rate].values()) for rate in rates]
    means = [statistics.mean(values) for values in scores]
    (line,) = axis.plot(rates, means, label=label, linewidth=1.5)
    color = line.get_color()
    lows, highs = [min(values) for values in scores], [max(values) for values in scores]
    axis.fill_between(rates, lows, highs, alpha=0.15, color=color)
    for rate, mean, values in zip(rates, means, scores, strict=True):
        fill = color if len(values) == num_seeds else "white"
        axis.plot(rate, mean, marker="o", color=color, markerfacecolor=fill)


def _panels(results):
    """Scores in percent, by recipe and name of the score, line, learning rate, seed."""
    panels = {}
    for one in results:
        if "recipe" not in one or one.get("stage") == FINAL:
            continue
        others = [f"{k} {v}" for k, v in one["point"].items() if k != RATE]
        label = ", ".join([one["model"], *others])
        lines = panels.setdefault((one["recipe"], _score_name(one)), {})
        seeds = lines.setdefault(label, {}).setdefault(one[RATE], {})
        seeds[one["config"]["seed"]] = 100 * one["scores"][one["main_score"]]
    return panels


def _mean_of(panels):
    """The mean of all panels, of what all have: line, learning rate and seed."""
    first, *others = panels.values()
    means = {}
    for label, points in first.items():
        for rate, seeds in points.items():
            for seed, score in seeds.items():
                found = [p.get(label, {}).get(rate, {}).get(seed) for p in others]
                if None not in found:
                    mean = statistics.mean([score, *found])
                    means.setdefault(label, {}).setdefault(rate, {})[seed] = mean
    return means


def _rates(lines):
    return sorted({rate for points in lines.values() for rate in points})


def _score_name(results):
    metric = results["main_score"].removeprefix("validation_").replace("_", " ")
    where = "validation" if "stage" not in results else "held out of train"
    return f"{metric}, % ({where})"
