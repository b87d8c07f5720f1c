"""The runs of a table: a process each, finished ones kept, stopped ones resumed."""

import contextlib
import dataclasses
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import yaml
from tqdm import tqdm

from keras_recbert.core.folders import new_file
from keras_recbert.core.json_files import read_json
from keras_recbert.core.machine import num_cores

RESULTS = "results.json"  # of a run, and of a table
OWN_FILES = (RESULTS, "test_scores.json")  # made anew where they are removed
RECBERT = (sys.executable, "-m", "keras_recbert.cli")
POLL_SECONDS = 0.2
STOP_SECONDS = 30.0  # for a last step and the lock of a folder


def check_different(**lists):
    """Raises `ValueError` for a list that is empty or names something twice."""
    for name, values in lists.items():
        if not values:
            raise ValueError(f"`{name}` is empty. Name one or more.")
        if len(set(values)) < len(values):
            raise ValueError(f"`{name}` must differ. Received: {values}.")


def run_each(configs, folder, report, done=(), jobs=1):
    """Runs what is not finished, in order. A run that fails does not stop the others.

    Args:
        configs: dict of the name of a run, a folder below `folder`, to its config,
            whose `command` runs it.
        folder: path.
        report: function without arguments, called after each run that went well.
        done: names of runs that are finished, though their folder is not here.
        jobs: int. Processes at a time, which share the cores of this machine.

    Returns:
        dict of the name of each run that failed to a sentence of how.
    """
    numbers = {run: number for number, run in enumerate(configs, start=1)}
    waiting = [
        run
        for run in configs
        if run not in done and not (folder / run / RESULTS).is_file()
    ]
    running, failed = {}, {}
    num_done = len(configs) - len(waiting)
    try:
        with tqdm(
            total=len(configs), initial=num_done, unit=" runs", disable=None
        ) as progress:
            while waiting or running:
                while waiting and len(running) < jobs:
                    run = waiting.pop(0)
                    progress.write(f"[{numbers[run]}/{len(configs)}] {run}")
                    sys.stdout.flush()
                    running[run] = _Process(configs[run], folder / run, jobs)
                for run in [run for run in running if running[run].has_ended()]:
                    problem = running.pop(run).problem()
                    if problem is None:
                        report()
                    else:
                        failed[run] = problem
                        progress.write(f"{run} {problem}", file=sys.stderr)
                    progress.update()
                time.sleep(POLL_SECONDS)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
    return failed


def raise_failed(failed):
    """Raises `RuntimeError` that names all runs that failed; nothing where none did.

    Args:
        failed: dict that `run_each` gave.
    """
    if failed:
        lines = "\n".join(f"{run} {problem}" for run, problem in failed.items())
        count = "1 run" if len(failed) == 1 else f"{len(failed)} runs"
        raise RuntimeError(
            f"{count} failed; the others are in the table.\n{lines}\n"
            "Run the same command again to repeat or resume them."
        )


class _Process:
    """A run as a process of its own, whose output goes to a log beside its folder."""

    def __init__(self, config, folder, jobs):
        recipe = folder.with_name(f"{folder.name}.yaml")
        with new_file(recipe) as written:
            text = yaml.safe_dump(dataclasses.asdict(config))
            written.write_text(text, encoding="utf-8")
        self.log = folder.with_name(f"{folder.name}.log")
        self._begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*RECBERT, config.command, "--recipe", str(recipe)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_shared_cores(jobs),
            )

    def has_ended(self):
        return self._process.poll() is not None

    def problem(self):
        """How the process failed: its status and the last error; None if it did not."""
        if not self._process.returncode:
            return None
        with self.log.open("rb") as log:
            log.seek(self._begin)  # past what earlier tries wrote
            lines = log.read().decode("utf-8", "replace").splitlines()
        errors = [line for line in lines if re.search(r"error\b", line, re.IGNORECASE)]
        last = (errors or [line for line in lines if line.strip()] or ["no output"])[-1]
        return (
            f"ended with status {self._process.returncode}: {last.strip()} (its output "
            f"is in {self.log})"
        )

    def terminate(self):
        """Asks the process to end, as Ctrl-C does; what it has trained is kept."""
        self._process.terminate()

    def wait(self):
        """Waits for the end; kills what takes too long, or where a user insists."""
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()


def _shared_cores(jobs):
    """Environment of a process that is one of several."""
    if jobs == 1:
        return None
    threads = max(1, num_cores() // jobs)
    return {"TF_NUM_INTRAOP_THREADS": str(threads), **os.environ}


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
            [*RECBERT, *arguments],
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
        path = folder / run / RESULTS
        if not path.is_file():
            continue
        found[run] = read_result(path)
        changed = config.changes(found[run]["config"])
        if changed:
            refuse_other_options(path.parent, changed)
    return found


def read_result(path):
    """What a run wrote; `ValueError` if the file is damaged, or not of a run."""
    try:
        return read_json(path)
    except ValueError as error:
        if pathlib.Path(path).name in OWN_FILES:
            raise ValueError(f"{path} is damaged: {error}. Remove it.") from error
        raise ValueError(
            f"{path} is no results file: {error}. Expected the {RESULTS} of a run or a "
            "table, or a copy of it."
        ) from error


def seeds_of(run):
    """The seed of a run, or those of the runs that it is the mean of, as `0+1+2`."""
    seeds = run.get("averaged_seeds", [run["config"]["seed"]])
    return "+".join(map(str, seeds))


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
