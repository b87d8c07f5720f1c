"""What became of each tensor of a checkpoint and of each weight of an encoder."""

import dataclasses
import os
import re
import warnings

# What checkpoints hold beside an encoder: heads of its pre-training or of a task, and
# what an optimizer keeps.
BESIDE = re.compile(
    r"(^|[./])(cls|classifier|head|next_sentence|masked_lm)[./]|position_ids$"
    r"|adam_[mv]$|^[mv]/|^AdamWeightDecay/|^optimizer|^global_step$|^save_counter$"
)


@dataclasses.dataclass(frozen=True)
class WeightsReport:
    """Account of weights that were loaded; `print` it.

    Args:
        path: str. The checkpoint.
        format: str. Its format.
        copied: dict of weight path to the tuple of names of the tensors it equals.
        adapted: dict of weight path to a tuple of names of the tensors it was made
            of, and how, in words.
        new: dict of weight path to how it starts, in words.
        unused: tuple of names of tensors that nothing was made of.
        note: str. What one should know of how these weights are computed with here.
    """

    path: str
    format: str
    copied: dict
    adapted: dict
    new: dict
    unused: tuple
    note: str = ""

    @property
    def used(self):
        """Names of all tensors that a weight was made of, in order."""
        names = [*self.copied.values(), *(names for names, _ in self.adapted.values())]
        return tuple(dict.fromkeys(name for group in names for name in group))

    def __str__(self):
        lines = [
            f"{self.format} checkpoint {self.path}: {len(self.used)} tensors used, "
            f"{len(self.unused)} unused; {len(self.copied)} weights copied, "
            f"{len(self.adapted)} adapted, {len(self.new)} new."
        ]
        copied = [f"{path} <- {_joined(names)}" for path, names in self.copied.items()]
        adapted = [
            f"{path} <- {_joined(names)}: {how}"
            for path, (names, how) in self.adapted.items()
        ]
        new = [f"{path}: {how}" for path, how in self.new.items()]
        for title, entries in (
            ("copied", copied),
            ("adapted", adapted),
            ("new", new),
            ("unused", sorted(self.unused)),
        ):
            for entry, count in _fold(entries).items():
                lines.append(f"  {title:<7} {count:>3} x {entry}")
        if self.note:
            lines.append(f"  note: {self.note}")
        return "\n".join(map(_printable, lines))


def warn_of_unused(report, checkpoint):
    """Warns of tensors that an encoder of this kind has no place for.

    Not of those that it leaves because of sizes that its builder chose, nor of heads.

    Args:
        report: `WeightsReport`.
        checkpoint: `Checkpoint` that it is of.
    """
    placed = {name for origin in checkpoint.origins.values() for name in origin.names}
    unused = [
        name for name in report.unused if name not in placed and not BESIDE.search(name)
    ]
    if unused:
        named = ", ".join(map(repr, unused[:3]))
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        warnings.warn(
            _printable(
                f"{report.path}: nothing was made of the tensors {named}{more}. "
                "`print(encoder.weights_report)` says what became of each tensor."
            ),
            stacklevel=4,
        )


def _printable(line):
    """A line without the codes that names in a file could send to a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _joined(names):
    """`a.{query,key}.b` for `a.query.b` and `a.key.b`."""
    if len(names) < 2:
        return ", ".join(names)
    before = os.path.commonprefix(names)
    rest = [name[len(before) :] for name in names]
    after = os.path.commonprefix([name[::-1] for name in rest])[::-1]
    parts = ",".join(name.removesuffix(after) for name in rest)
    return f"{before}{{{parts}}}{after}"


def _fold(entries):
    """Counts entries that differ in the number of the layer, or are Adam's slots."""
    counts = {}
    for entry in entries:
        entry = re.sub(r"^\S*/(adam_[mv])$", r".../\1", entry)
        entry = re.sub(r"\b(block_|layer[._])\d+", r"\1*", entry)
        counts[entry] = counts.get(entry, 0) + 1
    return counts
