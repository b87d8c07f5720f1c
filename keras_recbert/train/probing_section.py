"""What layers know, on the page of results: several encoders beside each other."""

import json
import pathlib
import statistics

from keras_recbert.train.probe_report import reads
from keras_recbert.train.table_runs import markdown_table, spread

HEADER = ("task", "classes", "majority", "encoder", "reads", "hidden units")
# Of a folder of a run; the name of that folder says more.
NOT_NAMES = ("preset", "model.keras")


def make_probing_section(files, setup_number):
    """Markdown of probes: a row a task and encoder, a column a layer.

    Args:
        files: list of `ResultsFile` with `probes`. Those of one encoder that differ in
            their seed alone share a row.
        setup_number: function of the dict of a file to the number of its setup.

    Returns:
        str; empty for no files.

    Raises:
        ValueError: if two files probe the same; names them.
    """
    if not files:
        return ""
    rows, depth = {}, 0
    for file in files:
        for task, found in file.probes["tasks"].items():
            key = (task, json.dumps(_facts(file.probes, found), sort_keys=True))
            rows.setdefault(key, []).append((found, file))
            depth = max(depth, *map(int, found["layers"]))
    for (task, _), probes in rows.items():
        _check_different(task, probes)
    tasks = list(dict.fromkeys(task for task, _ in rows))
    encoders = _names(rows)
    layers = ["embeddings", *(f"block {number}" for number in range(1, depth + 1))]
    table = [[*HEADER, *layers, "seeds", "setup"]]
    for key, probes in sorted(rows.items(), key=lambda row: tasks.index(row[0][0])):
        first, file = probes[0]
        config = file.probes["config"]
        table.append(
            [
                key[0].replace("_", " "),
                str(first["classes"]),
                f"{100 * first['majority']:.1f}",
                encoders[key],
                reads(config),
                _words(config["hidden_units"]),
                *_scores([found["layers"] for found, _ in probes], depth),
                _list(one.probes["config"]["seed"] for _, one in probes),
                _list(setup_number(one.probes) for _, one in probes),
            ]
        )
    return (
        "## Probing\n\nSentEval's tasks (Conneau et al. 2018; Aksoy et al. 2020, "
        "section 4.4): test accuracy in % of\na classifier that reads one layer of a "
        "frozen encoder, of several seeds of the classifier the mean\nand range. "
        f"The highest of a row is bold.\n\n{markdown_table(table)}"
    )


def _facts(probes, found):
    """What runs of one row have in common.

    The checksum tells apart what was loaded from one place. A seed decides what is
    random in an encoder that was built by its name, so such seeds have one each.
    """
    config = probes["config"]
    facts = {name: value for name, value in config.items() if name != "seed"}
    facts.setdefault("standardize", False)  # as of earlier versions
    facts["encoder"] = probes.get("encoder")
    facts["parameters"] = probes.get("num_parameters")
    if config.get("weights") is None and config.get("vocabulary") is None:
        checksum = found.get("features_sha256", probes.get("features_sha256"))
        facts["checksum"] = checksum and checksum[:8]
    return facts


def _check_different(task, probes):
    """Raises `ValueError` if a seed scored a layer twice."""
    seen = {}
    for found, file in probes:
        for layer in found["layers"]:
            seed = file.probes["config"]["seed"]
            other = seen.setdefault((seed, layer), file)
            if other is not file:
                raise ValueError(
                    f"{other.path} and {file.path} hold the same probe: {task}, layer "
                    f"{layer}, of one encoder and seed {seed}. Leave one of them out."
                )


def _names(rows):
    """dict of the key of a row to its encoder; what differs tells equal names apart."""
    alike = {}
    for task, key in rows:
        facts = json.loads(key)
        same = (task, _encoder_of(facts), reads(facts), *facts["hidden_units"])
        alike.setdefault(same, {})[task, key] = facts
    names = {}
    for (_, name, *_), found in alike.items():
        differing = [
            fact
            for fact in dict.fromkeys(
                fact for facts in found.values() for fact in facts
            )
            if len({_words(facts.get(fact)) for facts in found.values()}) > 1
        ]
        for key, facts in found.items():
            told = ", ".join(
                f"{one.replace('_', ' ')} {_words(facts.get(one))}" for one in differing
            )
            names[key] = f"{name} ({told})" if told else name
    return names


def _encoder_of(facts):
    name = _name_of(facts["model"])
    if name == facts["model"] and facts["encoder"] not in (None, name):
        name += f" of {facts['encoder']}"  # of a model in memory
    if facts.get("weights") is not None:
        return f"{name} from {_name_of(facts['weights'])}"
    return name if facts.get("vocabulary") is None else f"{name}, random"


def _name_of(place):
    """The last part of a path that says something; a name is its own."""
    parts = pathlib.PurePath(place).parts
    names = [part for part in parts if part not in NOT_NAMES] or [place]
    return names[-1].removesuffix(".yaml").removesuffix(".keras")


def _words(value):
    return _list(value) if isinstance(value, list) else str(value)


def _list(values):
    return ", ".join(dict.fromkeys(map(str, values)))


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
