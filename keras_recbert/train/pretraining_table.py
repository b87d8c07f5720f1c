"""Several pre-training recipes, several seeds each, in one table and one picture."""

import contextlib
import dataclasses
import fcntl
import json
import pathlib
import signal
import statistics
import subprocess
import sys

import numpy as np
import yaml

from keras_recbert.config import PretrainingConfig, read_recipe
from keras_recbert.train.pretraining_curves import (
    save_pretraining_curves,
    training_seconds,
)


def pretrain_table(recipes, seeds, output_dir, **options):
    """Runs each recipe with each seed, and writes `table.md` and `curves.png`.

    Each run is a process of its own, `recbert pretrain`, in the folder
    `RECIPE-seedSEED`. What is finished is not run again, what was stopped goes on, so
    the same command may be stopped and run again at any time. The seeds take turns:
    all recipes with the first seed, then all with the second. Table and picture are
    written anew after each run.

    Args:
        recipes: paths of YAML files with the fields of `PretrainingConfig`.
        seeds: list of int.
        output_dir: folder.
        **options: fields of `PretrainingConfig` that all runs share, such as `corpus`
            and `validation`.

    Returns:
        Path of the table.

    Raises:
        ValueError: if a recipe is wrong, or two have one name; before anything runs.
        RuntimeError: if a run fails; says which and where its output is.
    """
    recipes = [pathlib.Path(recipe) for recipe in recipes]
    configs = {}
    for recipe in recipes:
        if recipe.stem in configs:
            raise ValueError(f"Two recipes are called {recipe.stem}: {recipe}.")
        configs[recipe.stem] = dataclasses.replace(
            read_recipe(recipe, PretrainingConfig), **options
        )
    folder = pathlib.Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(name, seed) for seed in seeds for name in configs]
    # A process that is told to end takes the run that it started with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with _alone_in(folder):
        for number, (name, seed) in enumerate(jobs, start=1):
            run = folder / f"{name}-seed{seed}"
            config = dataclasses.replace(configs[name], seed=seed, output_dir=str(run))
            if not (run / "results.json").is_file():
                print(f"[{number}/{len(jobs)}] {name}, seed {seed}", flush=True)
                _run(config, run)
                _report(folder, configs, seeds)
        _report(folder, configs, seeds)
    return folder / "table.md"


def run_in_background(arguments, output_dir):
    """Starts `recbert` with these arguments and returns at once.

    Args:
        arguments: list of str, a command and its flags.
        output_dir: folder for `log.txt`, its output.

    Returns:
        Tuple of the process id and the path of the log.
    """
    folder = pathlib.Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "keras_recbert.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # the terminal may close
        )
    return process.pid, log


@contextlib.contextmanager
def _alone_in(folder):
    """Two processes must not train in one folder. The lock ends with its process."""
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"Another process is at work in {folder}; its runs are in table.md as "
                "they end. Wait for it or stop it first."
            ) from None
        yield


def _run(config, run):
    recipe = run.with_name(f"{run.name}.yaml")
    recipe.write_text(yaml.safe_dump(dataclasses.asdict(config)), encoding="utf-8")
    log = run.with_name(f"{run.name}.log")
    with log.open("a", encoding="utf-8") as output:
        code = subprocess.run(
            [sys.executable, "-m", "keras_recbert.cli", "pretrain"]
            + ["--recipe", str(recipe)],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        raise RuntimeError(
            f"{run.name} ended with status {code}: {' '.join(last)} Its output is in "
            f"{log}. Run the same command again to go on."
        )


def _report(folder, configs, seeds):
    runs = {}
    for name in configs:
        paths = [folder / f"{name}-seed{seed}" / "results.json" for seed in seeds]
        found = [json.loads(p.read_text("utf-8")) for p in paths if p.is_file()]
        if found:
            runs[name] = found
    written = folder / ".table.md"
    written.write_text(make_table(runs), encoding="utf-8")
    written.rename(folder / "table.md")
    by_interval = {}
    for name, found in runs.items():
        by_interval.setdefault(configs[name].checkpoint_every, {})[name] = [
            results["history"] for results in found
        ]
    every, histories = max(by_interval.items(), key=lambda item: len(item[1]))
    save_pretraining_curves(folder / "curves.png", histories, every, folder.name)


def make_table(runs):
    """A Markdown table: a row a recipe, mean and range over its seeds.

    The training loss is read twice: at the end, and when the quickest run ended.

    Args:
        runs: dict of name to a list of the dicts in `results.json`, one a seed.

    Returns:
        str.
    """
    # By scores that all have, first; the order is that of the first run.
    scores = list(
        dict.fromkeys(
            key
            for found in runs.values()
            for key in found[0]["scores"]
            if key.endswith(("_perplexity", "_accuracy"))
        )
    )
    times = {
        name: [training_seconds(results["history"]) for results in found]
        for name, found in runs.items()
    }
    shortest = min((one[-1] for found in times.values() for one in found), default=0)
    header = ["recipe", "encoder parameters", "s/step", "training loss"]
    header.append(f"after {shortest / 60:.1f} minutes")
    header += [key.removeprefix("val_").replace("_", " ") for key in scores]
    rows = [[*header, "seeds"], ["---"] * (len(header) + 1)]
    for name, found in runs.items():
        cells = [
            f"`{name}`",
            f"{found[0]['num_parameters']:,}",
            f"{statistics.median(r['seconds_per_step'] for r in found):.3f}",
            _spread([r["history"]["loss"][-1] for r in found], 3),
            _spread(
                [
                    np.interp(shortest, seconds, r["history"]["loss"])
                    for seconds, r in zip(times[name], found, strict=True)
                ],
                3,
            ),
        ]
        for key in scores:
            values = [r["scores"][key] for r in found if key in r["scores"]]
            is_percent = key.endswith("_accuracy")
            cells.append(
                _spread([100 * v if is_percent else v for v in values], 1)
                if values
                else "–"
            )
        rows.append([*cells, ", ".join(str(r["config"]["seed"]) for r in found)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _spread(values, digits):
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f}–{max(values):.{digits}f})"
