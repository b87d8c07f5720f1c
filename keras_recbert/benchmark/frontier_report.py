"""What `recbert benchmark frontier` writes: JSON, a table, and the picture."""

import pathlib

import numpy as np

from keras_recbert.core.folders import new_file
from keras_recbert.core.json_files import write_json
from keras_recbert.train.report_tables import escape, markdown_table, write_text

JSON, TABLE, PICTURE = "frontier.json", "frontier.md", "frontier.png"
HEADER = (
    "system",
    "accuracy",
    "texts a second, one by one",
    "texts a second, batches of 64",
    "ms a text, one by one",
    "MB",
    "parameters",
    "precision",
)
# Of the forms in which a model is served; another tool has none, and the last one.
MARKERS = {
    "SavedModel": "o",
    "SavedModel, bfloat16 weights": "D",
    "LiteRT": "^",
    "LiteRT int8": "v",
    "ONNX Runtime": "P",
    "torch": "X",
    "": "s",
}


def save_report(output_dir, facts, systems):
    """Writes frontier.json, frontier.md and frontier.png.

    Args:
        output_dir: path of a folder that is there.
        facts: dict of JSON: the task, numbers of examples, the device.
        systems: list of `frontier_systems.System`.

    Returns:
        str, the table and where the files are.
    """
    output_dir = pathlib.Path(output_dir)
    rows = [row_of(system) for system in systems]
    write_json(output_dir / JSON, {**facts, "threads": 1, "rows": rows})
    table = table_of(facts, rows)
    write_text(output_dir / TABLE, table)
    save_picture(output_dir / PICTURE, facts, rows)
    return f"\n{table}\nEverything is in {output_dir}/ ({JSON}, {TABLE}, {PICTURE})."


def row_of(system):
    """What was measured of a system, as JSON.

    `texts_per_second` and `milliseconds_per_text` have, by the size of a batch, the
    median of the rounds, the slowest and the fastest; `cores` the processor time that
    its process took in a second, where 1 is a thread that never waits.
    """
    measured = {}
    for size in system.seconds:
        rates = system.rates(size)
        if rates:
            middle = float(np.median(rates))
            measured[str(size)] = {
                "texts_per_second": _spread(middle, rates[0], rates[-1]),
                "milliseconds_per_text": _spread(
                    1000 / middle, 1000 / rates[-1], 1000 / rates[0]
                ),
                "texts": system.items[size],
                "rounds": len(rates),
                "cores": float(np.median(system.cores[size] or [np.nan])),
            }
    return {
        "name": system.name,
        "group": system.group,
        "accuracy": system.accuracy,
        "batch_size": measured,
        "bytes": system.num_bytes,
        "parameters": system.parameters,
        "precision": system.precision,
        "versions": system.versions,
        "error": system.error,
    }


def table_of(facts, rows):
    """The page of Markdown."""
    lines = []
    for row in rows:
        name = row["name"]
        if row["group"] == "speed only":
            name += " (random weights: speed only)"
        if row["error"]:
            continue
        single, batch = (row["batch_size"][size] for size in ("1", "64"))
        accuracy = row["accuracy"]
        lines.append(
            [
                escape(name),
                None if accuracy is None else f"{100 * accuracy:.1f}",
                _range(single["texts_per_second"]),
                _range(batch["texts_per_second"]),
                f"{single['milliseconds_per_text']['median']:.2f}",
                f"{row['bytes'] / 1e6:.1f}",
                f"{row['parameters']:,}",
                row["precision"],
            ]
        )
    missing = [
        f"- {escape(row['name'])}: {row['error'].splitlines()[0]}\n"
        for row in rows
        if row["error"]
    ]
    return (
        f"# {facts['task']}: accuracy, speed and size\n\n"
        "Raw strings to labels in one thread. Accuracy in percent of "
        f"{facts['validation_examples']:,} validation examples, trained on "
        f"{facts['training_examples']:,}. Speed: median of the rounds (slowest–"
        f"fastest), {facts['rounds']} rounds over {facts['timed_texts']:,} of these "
        "texts, all systems in turn. MB: all files that are needed to serve it.\n\n"
        + "".join(f"- {line}\n" for line in facts["device"])
        + "\n"
        + markdown_table(HEADER, lines)
        + ("\nNot in the table:\n\n" + "".join(missing) if missing else "")
    )


def save_picture(path, facts, rows):
    """Draws accuracy over texts a second, one by one and in batches, and over bytes.

    A colour is a model, a marker the form in which it is served. A grey line joins the
    systems that no other beats in both; a dotted one is a model that was only timed.
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    panels = {
        "texts a second, one by one": lambda row: _rate(row, "1"),
        "texts a second, batches of 64": lambda row: _rate(row, "64"),
        "MB on disk": lambda row: row["bytes"] / 1e6,
    }
    scored = [row for row in rows if not row["error"] and row["accuracy"] is not None]
    timed = [row for row in rows if not row["error"] and row["accuracy"] is None]
    models = dict.fromkeys(_model_and_form(row)[0] for row in scored)
    colors = {model: f"C{index % 10}" for index, model in enumerate(models)}
    figure = Figure(figsize=(15, 6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (label, value) in zip(axes, panels.items(), strict=True):
        points = [(value(row), 100 * row["accuracy"]) for row in scored]
        for row, point in zip(scored, points, strict=True):
            model, form = _model_and_form(row)
            axis.plot(
                *point, MARKERS[form], color=colors[model], markersize=9, alpha=0.75
            )
        for row in timed:
            axis.axvline(value(row), color="0.5", linestyle=":")
            place = (value(row), 0.03)
            model = f" {_model_and_form(row)[0]}"
            look = {"transform": axis.get_xaxis_transform(), "rotation": 90}
            axis.text(*place, model, fontsize=8, ha="right", **look)
        best = frontier_of(points, low=label == "MB on disk")
        axis.plot(*zip(*best, strict=True), color="0.7", zorder=0)
        axis.set_xscale("log")
        axis.set(xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(f"accuracy on the validation set of {facts['task']}, percent")
    dot = {"linestyle": "", "markersize": 8}
    handles = [
        Line2D([], [], marker="s", color=color, label=model, **dot)
        for model, color in colors.items()
    ]
    forms = {_model_and_form(row)[1] for row in scored} - {""}
    handles += [
        Line2D([], [], marker=marker, color="0.4", label=form, **dot)
        for form, marker in MARKERS.items()
        if form in forms
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=9)
    figure.suptitle(
        "Raw strings to labels in one thread. " + facts["device"][0], fontsize=10
    )
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


def _model_and_form(row):
    """Of `"STUDENT, LiteRT"` the model and the form; of another tool no form."""
    name = row["name"]
    form = next(form for form in MARKERS if not form or name.endswith(f", {form}"))
    return name.removesuffix(f", {form}"), form


def frontier_of(points, low=False):
    """Points that no other beats in both, in the order of the first coordinate.

    Args:
        points: list of `(x, y)`; more of y is better.
        low: bool. Whether less of x is better, as of bytes.
    """
    found = []
    for x, y in sorted(points, key=lambda p: (p[0] if low else -p[0], -p[1])):
        if not found or y > found[-1][1]:
            found.append((x, y))
    return found


def _rate(row, size):
    return row["batch_size"][size]["texts_per_second"]["median"]


def _spread(middle, least, most):
    return {"median": middle, "least": least, "most": most}


def _range(spread):
    values = (spread[key] for key in ("median", "least", "most"))
    return "{:,.0f} ({:,.0f}–{:,.0f})".format(*values)
