"""The pictures of a run of `recbert benchmark`."""

import pathlib

from keras_recbert.benchmark.growth import lines
from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file


def check_matplotlib():
    """Raises `ImportError`, saying the way out, if matplotlib is not installed."""
    check_installed("Drawing what was measured", "benchmark", "matplotlib")


def save_pictures(output_dir, header, results):
    """Draws what was measured; returns the names of the files."""
    output_dir = pathlib.Path(output_dir)
    names = [save_ratios(output_dir / "benchmark.png", header, results)]
    grown = lines(results)
    if grown:
        names.append(save_growth(output_dir / "scaling.png", header, grown))
    return names


def save_ratios(path, header, results):
    """A bar for each ratio, with its quartiles, and a mark at its goal."""
    from matplotlib.figure import Figure

    bars = []
    for trial, measured in results:
        for one in measured[1:]:
            if one.ratios:
                goal = trial.goal(one.label)
                name = f"{measured[0].label} : {one.label}, {trial.shape}, "
                name += f"{trial.precision}, {trial.pass_}"
                bars.append((name, *one.ratio, goal))
    bars.reverse()  # the first on top
    figure = Figure(figsize=(10, 1.6 + 0.28 * len(bars)), layout="constrained")
    axis = figure.subplots()
    for index, (_, middle, low, high, goal) in enumerate(bars):
        color = "0.6" if goal is None else "tab:green" if middle <= goal else "tab:red"
        axis.barh(index, middle, color=color, height=0.7)
        axis.plot([low, high], [index, index], color="black", linewidth=1)
        axis.text(high, index, f" {middle:.2f}", va="center", fontsize=8)
        if goal is not None:
            axis.plot([goal, goal], [index - 0.45, index + 0.45], color="black")
    axis.axvline(1, color="0.3", linestyle=":")
    axis.set_yticks(range(len(bars)), [name for name, *_ in bars], fontsize=8)
    axis.set(xlabel="time of the first, divided by the time of the second")
    axis.grid(axis="x", alpha=0.3)
    axis.margins(x=0.08, y=0.02)
    figure.suptitle(
        "Green: at most the goal (the mark). Red: above it. Grey: no goal.\n"
        + header[0],
        fontsize=9,
    )
    _save(figure, path)
    return path.name


def save_growth(path, header, grown):
    """Time and memory over lengths and batches, and dotted what the formulas say."""
    from matplotlib.figure import Figure

    panels = dict.fromkeys(
        (line.axis, line.fixed, line.precision, line.pass_) for line in grown
    )
    figure = Figure(figsize=(3.6 * len(panels), 6.5), layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False)
    for column, panel in enumerate(panels):
        of_panel = [
            line
            for line in grown
            if (line.axis, line.fixed, line.precision, line.pass_) == panel
        ]
        for index, line in enumerate(of_panel):
            color = f"C{index}"
            for axis, measured, formula in (
                (axes[0, column], line.seconds, line.flops),
                (axes[1, column], line.rises, line.bytes),
            ):
                if None in measured:
                    continue
                axis.plot(
                    line.positions, measured, marker="o", color=color, label=line.label
                )
                # Through the last point: what it would be if all grew like that.
                scale = measured[-1] / formula[-1]
                dotted = [scale * value for value in formula]
                axis.plot(line.positions, dotted, linestyle=":", color=color)
        name, fixed, precision, pass_ = panel
        axes[0, column].set_title(f"{pass_}, {fixed}, {precision}", fontsize=9)
        for axis, unit in ((axes[0, column], "seconds"), (axes[1, column], "bytes")):
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set(xlabel=name, ylabel=unit if column == 0 else None)
            axis.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle(
        "Time of a step and rise of memory; dotted: growth of the arithmetic.\n"
        + header[0],
        fontsize=9,
    )
    _save(figure, path)
    return path.name


def _save(figure, path):
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")
