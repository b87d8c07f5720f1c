"""What layers know, on the page of results: several encoders beside each other."""

import re
import statistics

from keras_recbert.train.table_runs import markdown_table, spread

HEADER = ("task", "classes", "majority", "encoder", "reads", "hidden units")


def make_probing_section(files, setup_number):
    """Markdown of probes: a row a task and encoder, a column a layer.

    Args:
        files: list of `ResultsFile` with `probes`. Those whose names differ in
            `-seedN` alone share a row.
        setup_number: function of the dict of a file to the number of its setup.

    Returns:
        str; empty for no files.
    """
    if not files:
        return ""
    rows, depth = {}, 0
    for file in files:
        config = file.probes["config"]
        for task, found in file.probes["tasks"].items():
            key = (task, _encoder_of(file.path), config["pooling"], _units(config))
            rows.setdefault(key, []).append((found, config["seed"], file.probes))
            depth = max(depth, *map(int, found["layers"]))
    tasks = list(dict.fromkeys(task for task, *_ in rows))
    layers = ["embeddings", *(f"block {number}" for number in range(1, depth + 1))]
    table = [[*HEADER, *layers, "seeds", "setup"]]
    for (task, encoder, reads, units), probes in sorted(
        rows.items(), key=lambda row: tasks.index(row[0][0])
    ):
        first = probes[0][0]
        table.append(
            [
                task.replace("_", " "),
                str(first["classes"]),
                f"{100 * first['majority']:.1f}",
                encoder,
                reads,
                units,
                *_scores([found["layers"] for found, *_ in probes], depth),
                ", ".join(str(seed) for _, seed, _ in probes),
                ", ".join(
                    dict.fromkeys(str(setup_number(made)) for *_, made in probes)
                ),
            ]
        )
    return (
        "## Probing\n\nSentEval's tasks (Conneau et al. 2018; Aksoy et al. 2020, "
        "section 4.4): test accuracy in % of\na classifier that reads one layer of a "
        "frozen encoder, of several seeds of the classifier the mean\nand range. "
        f"The highest of a row is bold.\n\n{markdown_table(table)}"
    )


def _encoder_of(path):
    """The name of a results file, or of its folder, without seed."""
    name = path.stem.removesuffix("results").rstrip("_-") or path.parent.name
    return re.sub(r"-seed\d+$", "", name)


def _units(config):
    return ", ".join(map(str, config["hidden_units"]))


def _scores(probes, depth):
    """A cell a layer; empty where no probe read it."""
    values = []
    for layer in map(str, range(depth + 1)):
        found = [one[layer]["test_accuracy"] for one in probes if layer in one]
        values.append([100 * accuracy for accuracy in found])
    best = max(statistics.mean(found) for found in values if found)
    cells = [spread(found, 1) if found else "" for found in values]
    return [
        f"**{cell}**" if found and statistics.mean(found) == best else cell
        for cell, found in zip(cells, values, strict=True)
    ]
