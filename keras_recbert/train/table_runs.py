"""The runs of a table: a process each, finished ones kept, stopped ones resumed."""

import dataclasses
import pathlib
import statistics
import subprocess
import sys

import yaml

from keras_recbert.core.json_files import read_json


def check_different(**lists):
    """Raises `ValueError` for a list that is empty or names something twice."""
    for name, values in lists.items():
        if not values:
            raise ValueError(f"`{name}` is empty. Name one or more.")
        if len(set(values)) < len(values):
            raise ValueError(f"`{name}` must differ. Received: {values}.")


def run_each(command, configs, folder, report, done=()):
    """Runs what is not finished, in order.

    Args:
        command: "finetune" or "pretrain".
        configs: dict of the name of a run, a folder below `folder`, to its config.
        folder: path.
        report: function without arguments, called after each run.
        done: names of runs that are finished, though their folder is not here.

    Raises:
        RuntimeError: if a run fails; says which and where its output is.
    """
    for number, (run, config) in enumerate(configs.items(), start=1):
        if run not in done and not (folder / run / "results.json").is_file():
            print(f"[{number}/{len(configs)}] {run}", flush=True)
            _run(command, config, folder / run)
            report()


def _run(command, config, run):
    recipe = run.with_name(f"{run.name}.yaml")
    recipe.write_text(yaml.safe_dump(dataclasses.asdict(config)), encoding="utf-8")
    log = run.with_name(f"{run.name}.log")
    with log.open("a", encoding="utf-8") as output:
        code = subprocess.run(
            [sys.executable, "-m", "keras_recbert.cli", command]
            + ["--recipe", str(recipe)],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code:
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
        raise RuntimeError(
            f"{run.name} ended with status {code}: {' '.join(last)} Its output is in "
            f"{log}. Run the same command again to resume."
        )


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


def finished(configs, folder):
    """What the finished runs wrote.

    Args:
        configs: dict of the name of a run, a folder below `folder`, to its config.
        folder: path.

    Returns:
        dict of the name of a run to the dict in its `results.json`.

    Raises:
        ValueError: if a file is damaged, or a run was made with other options.
    """
    found = {}
    for run, config in configs.items():
        path = folder / run / "results.json"
        if not path.is_file():
            continue
        found[run] = read_result(path)
        changed = config.changes(found[run]["config"])
        if changed:
            refuse_other_options(path.parent, changed)
    return found


def read_result(path):
    """What a run wrote; `ValueError` if the file is damaged."""
    try:
        return read_json(path)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it.") from error


def refuse_other_options(run, changed):
    """Raises `ValueError`: a finished run is not one of this table."""
    raise ValueError(
        f"{run} holds a run with other options: {changed}. Remove it to run it anew, "
        "or choose another output_dir."
    )


def spread(values, digits):
    """Mean and range of several seeds, such as "4.85 (4.80–4.90)"."""
    mean = f"{statistics.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def markdown_table(rows):
    """A Markdown table of a list of rows of str, the header first."""
    header, *others = rows
    lines = [header, ["---"] * len(header), *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
