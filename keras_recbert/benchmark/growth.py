"""How time and memory grow over lengths and batches, beside the arithmetic."""

import dataclasses

from keras_recbert.benchmark.arithmetic import (
    sizes_of_candidate,
    step_flops,
    stored_bytes,
)


@dataclasses.dataclass
class Line:
    """One candidate over shapes that differ in one number.

    Attributes:
        label: str. The candidate.
        precision, pass_: str.
        axis: `"tokens a row"` or `"rows"`.
        fixed: str. What does not change.
        shapes: list of `Shape`, ascending.
        seconds, flops, bytes, rises: lists of float, one a shape: the median time, the
            operations of the formula, the bytes of the formula, and what memory rose
            by (None where nobody says).
    """

    label: str
    precision: str
    pass_: str
    axis: str
    fixed: str
    shapes: list
    seconds: list
    flops: list
    bytes: list
    rises: list

    @property
    def positions(self):
        if self.axis == "rows":
            return [shape.batch_size for shape in self.shapes]
        return [shape.sequence_length for shape in self.shapes]


def lines(results):
    """The lines in what was measured of comparisons whose point is growth.

    Args:
        results: list of `(Trial, list of Measurement)`.
    """
    points = {}
    for trial, measured in results:
        if not trial.comparison.growth:
            continue
        candidates = (trial.comparison.subject, *trial.comparison.references)
        sizes = {c.label: sizes_of_candidate(c) for c in candidates}
        for one in measured:
            if one.seconds:
                shape, pass_ = trial.shape, trial.pass_
                point = (
                    shape,
                    one.median,
                    step_flops(sizes[one.label], shape, pass_),
                    stored_bytes(sizes[one.label], shape, pass_),
                    one.memory_rise_bytes,
                )
                key = (one.label, trial.precision, pass_)
                points.setdefault(key, []).append(point)
    found = []
    for (label, precision, pass_), of_candidate in points.items():
        for axis, constant in (
            ("tokens a row", "batch_size"),
            ("rows", "sequence_length"),
        ):
            groups = {}
            for point in of_candidate:
                groups.setdefault(getattr(point[0], constant), []).append(point)
            for value, group in groups.items():
                if len(group) > 1:
                    columns = map(list, zip(*sorted(group), strict=True))
                    unit = "rows" if constant == "batch_size" else "tokens a row"
                    fixed = f"{value} {unit}"
                    found.append(Line(label, precision, pass_, axis, fixed, *columns))
    return found


def growth_table(results):
    """The growth as text, or an empty string if nothing was measured of it."""
    text = []
    for line in lines(results):
        first, last = line.positions[0], line.positions[-1]
        time, flops = _growth(line.seconds), _growth(line.flops)
        step, step_flops_ = _growth(line.seconds[-2:]), _growth(line.flops[-2:])
        entry = (
            f"{line.label}, {line.precision} {line.pass_}, {line.fixed}, "
            f"{first} to {last} {line.axis}: time x {time:.1f}, operations x "
            f"{flops:.1f}, quotient {time / flops:.2f}; last step x {step:.2f}, "
            f"operations x {step_flops_:.2f}, quotient {step / step_flops_:.2f}"
        )
        if None not in line.rises:
            entry += (
                f"; memory + {(line.rises[-1] - line.rises[0]) / 1e6:,.0f} MB, "
                f"arithmetic + {(line.bytes[-1] - line.bytes[0]) / 1e6:,.0f} MB"
            )
        text.append(entry)
    return "\n".join(["growth", *(f"  {entry}" for entry in text)]) if text else ""


def _growth(values):
    return values[-1] / values[0]
