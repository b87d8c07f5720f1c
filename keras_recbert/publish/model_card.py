"""The model card of a preset: a README.md as the Hugging Face Hub reads it.

It says what the preset and the results of its run record, and what they do not.
"""

import os
import pathlib

import yaml

from keras_recbert.data import get_task, list_tasks
from keras_recbert.hub.names import HUGGING_FACE, is_hub_name, parse_hub_name
from keras_recbert.models.registry import list_models

UNKNOWN = "not stated"
# Options of a run that are of its machine.
OF_THE_MACHINE = ("data_dir", "output_dir", "transfer_set", "overwrite", "strategy")
# What the Hub calls tasks; others keep their names.
HUB_TASKS = {
    "classifier": "text-classification",
    "multilabel_classifier": "text-classification",
    "token_classifier": "token-classification",
    "question_answering": "question-answering",
    "multiple_choice": "multiple-choice",
}
# What only some kinds of run have.
OF_A_KIND = {
    "learning rate": "learning_rate",
    "pooling": "pooling",
    "word pieces": "tokens",
    "epoch kept": "best_epoch",
}
HEADS = {"TextClassifier": "classifier", "TextRegressor": "regressor"}


def model_card(card, config, results, name, data_licence=None):
    """A model card, in Markdown with a front matter of YAML.

    Args:
        card: dict. `card.json` of a preset.
        config: dict. Its `config.json`.
        results: dict. `results.json` of the run that wrote it; None if there is none.
        name: str. What users load it by, such as `"hf://user/name"`.
        data_licence: optional str. Terms of the data; by default those that the tasks
            state.

    Returns:
        str.
    """
    facts = results or {"seed": None, **card["metrics"]}
    start = _start(card, results)
    title = name.rpartition("://")[2].rstrip("/").rpartition("/")[2]
    sections = [
        f"---\n{_yaml(_front_matter(card, config, results, start))}---",
        f"# {title}",
        f"A `{card['class']}` of keras_recbert with {card['num_parameters']:,} "
        f"parameters; its encoder is `{card['name']}`.",
        _table(_what_it_is(card, config, start)),
        "## How it was trained",
        *_training(facts, results, data_licence),
        "## Scores",
        *_scores(facts),
        "## How to use it",
        *_usage(card, config, name),
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(card, config, results, start):
    tags = ["keras_recbert", card["name"], config["class"]]
    matter = {"library_name": "keras", "tags": list(dict.fromkeys(tags))}
    if card["license"] is not None:
        matter["license"] = card["license"]
    if is_hub_name(start) and parse_hub_name(start).hub == HUGGING_FACE:
        matter["base_model"] = parse_hub_name(start).model
    found = [] if results is None else _index(results, _heads(config))
    if found:
        matter["model-index"] = [{"name": card["name"], "results": found}]
    return matter


def _heads(config):
    """The tasks of the heads that `config.json` describes, by their names.

    One head has the name None, and an encoder no head.
    """
    if config["encoder"] is None:
        return {}
    head = config["arguments"].get("head")
    if head is None:
        return {None: HEADS[config["class"]]}
    if isinstance(head.get("task"), str):
        return {None: head["task"]}
    return {name: one["task"] for name, one in head.items()}


def _index(results, heads):
    """The validation scores of a run as the Hub lists them."""
    tasks = results["config"].get("task")
    if isinstance(tasks, list):
        places = [(task, "validation", f"validation_{task}_") for task in tasks]
    else:
        splits = results.get("validation_examples") or {}
        places = [(results["task"], split, f"{split}_") for split in splits]
    found = {}
    for score, value in results["scores"].items():
        # `validation_matched_accuracy` is no score of `validation`.
        fitting = [place for place in places if score.startswith(place[2])]
        if not fitting or not isinstance(value, (int, float)):
            continue
        task, split, start = max(fitting, key=lambda place: len(place[2]))
        metric = score.removeprefix(start)
        if metric == "loss" or metric.startswith("teacher_"):
            continue
        one = {"type": metric, "value": value, "name": score}
        found.setdefault((task, split), []).append(one)
    return [
        {
            "task": {"type": _hub_task(heads.get(task) or heads.get(None))},
            "dataset": {"type": task, "name": task, "split": split},
            "metrics": metrics,
        }
        for (task, split), metrics in found.items()
    ]


def _hub_task(task):
    return HUB_TASKS.get(task, task)


def _start(card, results):
    """What the weights were made from."""
    if results is None or is_hub_name(card["source"]):  # which has the revision
        return card["source"] or UNKNOWN
    return without_folders(results["config"].get("weights")) or "random weights"


def _what_it_is(card, config, start):
    arguments = config["arguments"]
    sizes = {k: v for k, v in card["sizes"].items() if v is not None}
    yield "encoder", f"`{card['name']}`, {(config['encoder'] or config)['class']}"
    yield "sizes", ", ".join(f"{key} {value}" for key, value in sizes.items())
    for name, task in _heads(config).items():
        yield "head" if name is None else f"head {name}", task
    if arguments.get("fields"):
        yield "reads", ", ".join(arguments["fields"])
    if arguments.get("label_names"):
        yield "labels", ", ".join(map(str, arguments["label_names"]))
    yield "started from", start
    yield "licence of the weights", card["license"] or UNKNOWN
    yield "written", f"{card['date']} with {_versions(card['versions'])}"


def _training(facts, results, data_licence):
    """How a preset was trained: paragraphs."""
    if not facts.get("scores") and results is None:
        return [f"{UNKNOWN.capitalize()}: no results of a run are recorded with it."]
    config, data_sets = facts.get("config", {}), _data_sets(facts)
    rows = [
        ("kind of run", facts.get("kind")),
        ("learned from", _sources(data_sets)),
        ("licence of the data", data_licence or _licences(data_sets)),
        ("training examples", facts.get("train_examples")),
        ("optimizer steps", facts.get("steps")),
        ("seconds", round(facts["seconds"]) if "seconds" in facts else None),
        ("seed", _seed(facts)),
        ("precision", _precision(facts.get("precision"))),
        ("device", facts.get("device")),
        ("versions", _versions(facts["versions"]) if "versions" in facts else None),
    ]
    rows += [(shown, facts[key]) for shown, key in OF_A_KIND.items() if key in facts]
    table = _table((key, UNKNOWN if v is None else _number(v)) for key, v in rows)
    if results is None:
        return [table, "Its options are not stated."]
    chosen = {
        key: without_folders(value)
        for key, value in config.items()
        if value not in (None, False, "", [], {}) and key not in OF_THE_MACHINE
    }
    return [
        table,
        "Its options; what is off or unset is left out, and so are folders of paths:",
        f"```yaml\n{_yaml(chosen)}```",
    ]


def _seed(facts):
    """The seed of a run, or those of the runs whose weights it is the mean of."""
    if "averaged_seeds" in facts:
        return (
            f"{', '.join(map(str, facts['averaged_seeds']))}: the mean of the weights"
        )
    return facts.get("config", {}).get("seed", facts.get("seed"))


def _data_sets(facts):
    """What a run learned from: dict of names to source and licence, each may be ""."""
    config = facts.get("config", {})
    names = config.get("task") if isinstance(config.get("task"), list) else None
    names = names or [facts.get("task") or without_folders(config.get("corpus"))]
    found = dict.fromkeys((name for name in names if name is not None), ("", ""))
    if config.get("train") is None:
        for name in found.keys() & set(list_tasks()):
            task = get_task(name)
            found[name] = task.source, task.licence
    return found


def _sources(data_sets):
    """The names of data sets, and who published them; None without any."""
    named = (f"{k} ({source})" if source else k for k, (source, _) in data_sets.items())
    return "; ".join(named) or None


def _licences(data_sets):
    """The terms of data sets; None if none are known."""
    terms = {name: licence for name, (_, licence) in data_sets.items()}
    if not any(terms.values()):
        return None
    if len(terms) == 1:
        return next(iter(terms.values()))
    return "; ".join(f"{name}: {terms[name] or UNKNOWN}" for name in terms)


def _scores(facts):
    """The scores of a preset: paragraphs."""
    scores = facts.get("scores")
    if not scores:
        others = {k: v for k, v in facts.items() if k not in ("seed", "config")}
        if not others:
            return ["None are recorded."]
        return ["As the preset records them:", _table(_flat(others))]
    seed = UNKNOWN if _seed(facts) is None else _seed(facts)
    runs = "seeds" if "averaged_seeds" in facts else "one run, seed"
    examples = facts.get("validation_examples") or {}
    measured = ", ".join(f"{number:,} of {split}" for split, number in examples.items())
    paragraphs = [
        f"Of {runs} {seed}, on "
        f"{facts.get('device', f'a device that is {UNKNOWN}')}"
        + (f"; examples: {measured}." if measured else "."),
        _table(_flat(scores)),
    ]
    if facts.get("notes"):
        paragraphs.append("\n".join(f"- {note}" for note in facts["notes"]))
    return paragraphs


def _usage(card, config, name):
    """How to load a preset, from Python and the command line."""
    fields = config["arguments"].get("fields") or ["text"]
    lines = ["import keras_recbert\n", f"model = keras_recbert.load({name!r})"]
    commands = [f"recbert explain {name}"]
    if config["encoder"] is None:
        if config["preprocessor"] is not None:
            lines.append('print(model.encode(["a text"]))  # vectors')
    elif config["class"] in HEADS and config["preprocessor"] is not None:
        texts = ", ".join(f'["{name}"]' for name in fields)
        texts = f"({texts})" if len(fields) > 1 else texts
        lines.append(f"print(model.predict({texts}))  # logits")
        commands.append(f"recbert predict {name} --input FILE --output FILE")
    if card["name"] in list_models():
        commands.append(
            f"recbert finetune --train FILE --model {card['name']} --weights {name}"
        )
    return [
        "```python\n" + "\n".join(lines) + "\n```",
        "```bash\n" + "\n".join(commands) + "\n```",
    ]


def without_folders(value):
    """An option without the folders of the machine that it was given on."""
    if isinstance(value, dict):
        return {key: without_folders(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_folders(one) for one in value]
    if isinstance(value, str) and os.path.isabs(value):
        return pathlib.PurePath(value).name
    return value


def _precision(value):
    return value.get("chosen") if isinstance(value, dict) else value


def _versions(versions):
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _flat(scores, start=""):
    """Yields names and values of scores, those of nested dicts with both names."""
    for key, value in scores.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{start}{key} ")
        else:
            yield f"{start}{key}", _number(value)


def _number(value):
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if type(value) is int else str(value)


def _table(rows):
    """A Markdown table of two columns."""
    cells = [(str(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {a} | {b} |" for a, b in cells)])


def _yaml(value):
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
