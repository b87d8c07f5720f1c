"""Draws scores against an option: how much of it, or how much care, a model needs."""

import statistics

from keras_recbert.config.grid import OVERRIDE
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file
from keras_recbert.train.fine_tuning_plan import FINAL

RATE = "learning_rate"


def swept_option(results):
    """The option on the x axis: of those with several numbers the learning rate, or
    the first in the grid.

    Args:
        results: list of the dicts in the `results.json` of a sweep.

    Returns:
        str, or None where no option has several numbers in one recipe and with the same
        other options.
    """
    options = [RATE, *(name for one in results for name in one.get("point", ()))]
    for option in dict.fromkeys(options):
        panels = _panels(results, option).values()
        if any(len(points) > 1 for lines in panels for points in lines.values()):
            return option
    return None


def save_sweep_figure(path, results):
    """Draws the main score against an option, as Lei et al. 2022, figure 3.

    A panel a task, and one of their mean; a line an encoder (and a recipe of several of
    a task, and what else the grid varies). A line is the mean over the seeds, its band
    their lowest and highest scores. A point with fewer seeds than others, of which some
    runs failed or are still to come, is hollow.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        results: list of the dicts in the `results.json` of a sweep that has a
            `swept_option`. Those of chosen options, which have one point, are left out.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    check_installed("Drawing curves", "train", "matplotlib")
    from matplotlib.figure import Figure

    option = swept_option(results)
    panels = _panels(results, option)
    if len(panels) > 1 and (means := _mean_of(panels)):
        panels["mean of all", "score, %"] = means
    size = (4.5 * len(panels) + 0.5, 3.6)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, ((title, score), lines) in zip(axes, panels.items(), strict=True):
        num_seeds = max(len(s) for points in lines.values() for s in points.values())
        for label, points in lines.items():
            _draw(axis, label, points, num_seeds)
        values = _values(lines)
        if values[0] > 0:
            axis.set_xscale("log")
        axis.set_xticks(values, [f"{value:g}" for value in values], rotation=30)
        axis.minorticks_off()
        axis.set(title=title, xlabel=_words(option), ylabel=score)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize="small")
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


def _words(option):
    return option.removeprefix(OVERRIDE).replace("_", " ")


def _draw(axis, label, points, num_seeds):
    places = sorted(points)
    scores = [list(points[place].values()) for place in places]
    means = [statistics.mean(values) for values in scores]
    (line,) = axis.plot(places, means, label=label, linewidth=1.5)
    color = line.get_color()
    lows, highs = [min(values) for values in scores], [max(values) for values in scores]
    axis.fill_between(places, lows, highs, alpha=0.15, color=color)
    for place, mean, values in zip(places, means, scores, strict=True):
        fill = color if len(values) == num_seeds else "white"
        axis.plot(place, mean, marker="o", color=color, markerfacecolor=fill)


def _panels(results, option):
    """Scores in percent, by title and name of the score, line, value, seed."""
    drawn = [one for one in results if "recipe" in one and one.get("stage") != FINAL]
    recipes, varied = {}, {}
    for one in drawn:
        recipes.setdefault(one["task"], {})[one["recipe"]] = None
        for name in one["point"]:
            varied[name] = {repr(other["point"].get(name)) for other in drawn}
    panels = {}
    for one in drawn:
        value = _value_of(one, option)
        if value is None:
            continue
        own = recipes[one["task"]]
        title = one["task"] if len(own) > 1 else one["recipe"]
        others = [one["recipe"]] if len(own) > 1 else []
        others += [
            f"{_words(name)} {setting}"
            for name, setting in one["point"].items()
            if name != option and len(varied[name]) > 1
        ]
        label = ", ".join([one["model"], *others])
        lines = panels.setdefault((title, _score_name(one)), {})
        seeds = lines.setdefault(label, {}).setdefault(value, {})
        seeds[one["config"]["seed"]] = 100 * one["scores"][one["main_score"]]
    return panels


def _value_of(result, option):
    """The number of an option in a run, or None."""
    value = result[RATE] if option == RATE else result["point"].get(option)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None


def _mean_of(panels):
    """The mean of all panels, of what all have: line, value and seed."""
    first, *others = panels.values()
    means = {}
    for label, points in first.items():
        for value, seeds in points.items():
            for seed, score in seeds.items():
                found = [p.get(label, {}).get(value, {}).get(seed) for p in others]
                if None not in found:
                    mean = statistics.mean([score, *found])
                    means.setdefault(label, {}).setdefault(value, {})[seed] = mean
    return means


def _values(lines):
    return sorted({value for points in lines.values() for value in points})


def _score_name(results):
    metric = results["main_score"].removeprefix("validation_").replace("_", " ")
    where = "validation" if "stage" not in results else "held out of train"
    return f"{metric}, % ({where})"
