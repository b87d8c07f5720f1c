"""Accuracies of probing tasks by layer, as a table and as a heat map."""

import numpy as np

from keras_recbert.core.folders import new_file
from keras_recbert.train.table_runs import markdown_table

KIND = "probing"  # of results
TABLE, PICTURE = "table.md", "heatmap.png"


def make_table(results):
    """A Markdown table: a row a task, a column a layer, test accuracies in percent.

    Args:
        results: dict in `results.json`.

    Returns:
        str.
    """
    layers = _layers(results)
    names = ["embeddings" if layer == 0 else f"block {layer}" for layer in layers]
    rows = [["task", "classes", "examples", "majority", *names]]
    for task, found in results["tasks"].items():
        scores = [found["layers"].get(str(layer)) for layer in layers]
        cells = ["" if s is None else _percent(s["test_accuracy"]) for s in scores]
        classes, number = str(found["classes"]), f"{found['examples']['train']:,}"
        rows.append([task, classes, number, _percent(found["majority"]), *cells])
    return markdown_table(rows)


def save_heatmap(path, results):
    """Draws the test accuracies: a row a task, a column a layer.

    Args:
        path: path of a PNG.
        results: dict in `results.json`.
    """
    from matplotlib.figure import Figure

    layers, tasks = _layers(results), list(results["tasks"])
    values = np.full((len(tasks), len(layers)), np.nan)
    for row, task in enumerate(tasks):
        for column, layer in enumerate(layers):
            found = results["tasks"][task]["layers"].get(str(layer))
            if found is not None:
                values[row, column] = 100 * found["test_accuracy"]
    size = (3.6 + 0.62 * len(layers), 1.6 + 0.42 * len(tasks))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(values, vmin=0, vmax=100, cmap="viridis", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "black" if value > 60 else "white"
            style = {"ha": "center", "va": "center", "color": color, "fontsize": 8}
            axis.text(column, row, f"{value:.1f}", **style)
    axis.set_yticks(range(len(tasks)), [task.replace("_", " ") for task in tasks])
    axis.set_xticks(range(len(layers)), list(map(str, layers)))
    axis.set(xlabel="block (0: the embeddings)")
    config = results["config"]
    axis.set_title(f"{config['model']}, {reads(config)}, seed {config['seed']}")
    figure.colorbar(image, label="test accuracy in percent")
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


def reads(config):
    """What the classifiers of a run read, in words."""
    # Earlier versions had no choice.
    return config["pooling"] + ", standardized" * config.get("standardize", False)


def _layers(results):
    found = results["tasks"].values()
    return sorted({int(layer) for task in found for layer in task["layers"]})


def _percent(share):
    return f"{100 * share:.1f}"
