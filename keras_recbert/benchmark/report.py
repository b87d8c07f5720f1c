"""The header, the table and the CSV of a run of `recbert benchmark`."""

import csv
import io
import os
import pathlib
import platform

import numpy as np

from keras_recbert.benchmark.environments import PEERS, installed
from keras_recbert.core.folders import new_file
from keras_recbert.core.machine import num_cores

MEGABYTE = 1e6
# What others may take of the processors before it is worth a word. Frameworks that
# wait for each other's threads in a loop, as OpenMP does, lose far more than that.
QUIET = 0.10
COLUMNS = (
    "comparison",
    "precision",
    "pass",
    "batch_size",
    "sequence_length",
    "candidate",
    "is_subject",
    "median_seconds",
    "fastest_round_seconds",
    "slowest_round_seconds",
    "rounds",
    "steps_per_round",
    "unit",
    "units_per_second",
    "parameters",
    "peak_memory_bytes",
    "memory_rise_bytes",
    "ratio",
    "ratio_first_quartile",
    "ratio_third_quartile",
    "memory_rise_ratio",
    "goal",
    "goal_met",
    "largest_difference_of_logits",
    "versions",
    "others_processor_share",
    "error",
)


def describe_device():
    """Lines that say what machine this is."""
    return [
        f"processor: {_processor()}, {num_cores()} cores",
        f"memory: {_memory()}",
        f"system: {platform.system()} {platform.machine()}, GPUs are not used",
    ]


def describe_versions(pythons):
    """Lines with the versions in every environment.

    Args:
        pythons: dict of key of `PEERS` to interpreter.
    """
    lines = []
    for key, python in pythons.items():
        found = installed(python, PEERS[key].distributions)
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        lines.append(f"{PEERS[key].name}: {listed}")
    return lines


def describe_trial(trial, measured):
    """A table of one trial, as text.

    Args:
        trial: `measuring.Trial`.
        measured: list of `measuring.Measurement`, the subject first.
    """
    subject, *references = measured
    width = max(len(one.label) for one in measured)
    unit = trial.comparison.unit
    lines = [str(trial)]
    for one in measured:
        line = f"  {one.label:<{width}}  "
        if not one.seconds:
            why = one.error or "not measured"
            lines.append(line + why.replace("\n", "\n    "))
            continue
        line += f"{_time(one.median):>9}  {one.rate:>9,.0f} {unit}/s"
        if one.memory_rise_bytes is not None:
            line += (
                f"  {one.peak_bytes / MEGABYTE:>6,.0f} MB"
                f" (+{one.memory_rise_bytes / MEGABYTE:,.0f})"
            )
        lines.append(line + f"  {one.parameters / 1e6:.1f} M parameters")
    others = [share for one in measured for share in one.others]
    if others and max(others) > QUIET:
        lines.append(
            f"  Other processes took {100 * sum(others) / len(others):.0f} % of the "
            f"processors, {100 * max(others):.0f} % in the worst turn: measure again "
            "when the machine is quiet."
        )
    for one in references:
        if not one.ratios:
            continue
        middle, low, high = one.ratio
        line = f"  {subject.label} : {one.label} = {middle:.2f} ({low:.2f}-{high:.2f})"
        line += f", {1 / middle:.2f} times its {unit}/s"
        goal = trial.goal(one.label)
        if goal is not None:
            met = "met" if middle <= goal else f"missed by {middle - goal:.2f}"
            line += f", goal at most {goal:.2f}: {met}"
        memory = memory_ratio(subject, one)
        if memory is not None:
            line += f"; memory {memory:.2f}"
        difference = logits_difference(subject, one)
        if difference is not None:
            line += f"; logits differ by {difference:.2g} at most"
        lines.append(line)
    return "\n".join(lines)


def memory_ratio(subject, reference):
    """What the subject's memory rose by, divided by the reference's; or None."""
    if not subject.memory_rise_bytes or not reference.memory_rise_bytes:
        return None
    return subject.memory_rise_bytes / reference.memory_rise_bytes


def logits_difference(subject, reference):
    """The largest difference of what both answered, or None."""
    if subject.logits is None or reference.logits is None:
        return None
    return float(np.abs(subject.logits - reference.logits).max())


def rows(results):
    """One dict of `COLUMNS` for each measurement."""
    for trial, measured in results:
        for one in measured:
            row = dict.fromkeys(COLUMNS, "")
            row.update(
                {
                    "comparison": trial.comparison.name,
                    "precision": trial.precision,
                    "pass": trial.pass_,
                    "batch_size": trial.shape.batch_size,
                    "sequence_length": trial.shape.sequence_length or "",
                    "candidate": one.label,
                    "is_subject": one is measured[0],
                    "unit": trial.comparison.unit,
                    "versions": " ".join(f"{k}={v}" for k, v in one.versions.items()),
                    "error": one.error.partition("\n")[0],
                }
            )
            if one.seconds:
                row.update(
                    {
                        "median_seconds": f"{one.median:.6g}",
                        "fastest_round_seconds": f"{min(one.seconds):.6g}",
                        "slowest_round_seconds": f"{max(one.seconds):.6g}",
                        "rounds": len(one.seconds),
                        "steps_per_round": one.iterations,
                        "units_per_second": f"{one.rate:.6g}",
                        "parameters": one.parameters,
                        "peak_memory_bytes": one.peak_bytes or "",
                        "memory_rise_bytes": one.memory_rise_bytes or "",
                        "others_processor_share": _mean(one.others),
                    }
                )
            if one.ratios:
                middle, low, high = one.ratio
                goal = trial.goal(one.label)
                memory = memory_ratio(measured[0], one)
                apart = logits_difference(measured[0], one)
                row.update(
                    {
                        "ratio": f"{middle:.4f}",
                        "ratio_first_quartile": f"{low:.4f}",
                        "ratio_third_quartile": f"{high:.4f}",
                        "memory_rise_ratio": "" if memory is None else f"{memory:.4f}",
                        "goal": "" if goal is None else f"{goal:.4f}",
                        "goal_met": "" if goal is None else middle <= goal,
                        "largest_difference_of_logits": (
                            "" if apart is None else f"{apart:.3g}"
                        ),
                    }
                )
            yield row


def save_csv(path, header, results):
    """Writes the CSV. Its first lines start with `# `: device and versions."""
    text = io.StringIO(newline="")
    for line in header:
        text.write(f"# {line}\n")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(results))
    _replace(path, text.getvalue())


def save_text(path, header, results, end=""):
    """Writes what the terminal showed."""
    tables = [describe_trial(trial, measured) for trial, measured in results]
    parts = ["\n".join(header), *tables, *([end] if end else [])]
    _replace(path, "\n\n".join(parts) + "\n")


def _replace(path, text):
    with new_file(path) as written:
        written.write_text(text, encoding="utf-8", newline="")


def _mean(values):
    return f"{sum(values) / len(values):.3f}" if values else ""


def _time(seconds):
    return f"{1000 * seconds:,.1f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def _processor():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except FileNotFoundError:  # not Linux
        pass
    return platform.processor() or platform.machine()


def _memory():
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, AttributeError, OSError):  # not POSIX
        return "unknown"
    return f"{pages * size / 2**30:.0f} GiB"
