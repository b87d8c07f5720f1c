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
MARKERS = {"peer": "s", "student": "o", "teacher": "^"}


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

    A grey line joins the systems that no other beats in both; a dotted one is a model
    that was only timed.
    """
    from matplotlib.figure import Figure

    panels = {
        "texts a second, one by one": lambda row: _rate(row, "1"),
        "texts a second, batches of 64": lambda row: _rate(row, "64"),
        "MB on disk": lambda row: row["bytes"] / 1e6,
    }
    shown = [row for row in rows if not row["error"]]
    figure = Figure(figsize=(15, 6), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (label, value) in zip(axes, panels.items(), strict=True):
        points = []
        for index, row in enumerate(shown):
            color = f"C{index % 10}"
            if row["accuracy"] is None:
                style = {"color": color, "linestyle": ":", "label": row["name"]}
                axis.axvline(value(row), **style)
                continue
            points.append((value(row), 100 * row["accuracy"]))
            marker = MARKERS[row["group"]] if index < 10 else "D"
            axis.plot(*points[-1], marker, color=color, label=row["name"], markersize=7)
        best = frontier_of(points, low=label == "MB on disk")
        axis.plot(*zip(*best, strict=True), color="0.7", zorder=0)
        axis.set_xscale("log")
        axis.set(xlabel=label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(f"accuracy on the validation set of {facts['task']}, percent")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(
        "Raw strings to labels in one thread. " + facts["device"][0], fontsize=10
    )
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")


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
