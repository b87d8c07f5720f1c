"""Holding part of a file out, whole groups at a time."""

from collections.abc import Hashable, Sequence

import numpy as np

from keras_recbert.data.glue_tasks import GlueTask, get_task
from keras_recbert.data.tsv import Examples


def group_examples(task: str | GlueTask, examples: Examples) -> list[int]:
    """Numbers the groups of rows that may not be parted by a split.

    Texts count as the same whatever their case and spacing.

    Args:
        task: a task or its name; its `group_by` says what makes a group.
        examples: the rows.

    Returns:
        One group number a row.
    """
    task = get_task(task)
    keys: dict[str, int] = {}
    columns = [
        [
            keys.setdefault(" ".join(text.split()).casefold(), len(keys))
            for text in texts
        ]
        for texts in examples.texts
    ]
    if task.group_by == "first" or len(columns) == 1:
        return columns[0]

    # Union-find: two texts are of one group if some row holds both.
    parent = list(range(len(keys)))

    def root(key):
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, second in zip(*columns, strict=True):
        parent[root(first)] = root(second)
    return [root(key) for key in columns[0]]


def split_examples(
    examples: Examples,
    fraction: float,
    seed: int,
    groups: Sequence[Hashable] | None = None,
) -> tuple[Examples, Examples]:
    """Holds a share of the rows out, whole groups at a time.

    The same rows, seed and groups give the same split. Both sides keep the
    order of the rows.

    Args:
        examples: the rows.
        fraction: share of the rows to hold out, between 0 and 1. The held-out
            side never gets more than that and falls short by less than the
            smallest group that stayed behind.
        seed: decides which groups are held out.
        groups: one value a row; rows of equal value stay together. None puts
            each row in a group of its own.

    Returns:
        `(rest, held_out)`.

    Raises:
        ValueError: where one side would be empty.
    """
    if not 0 < fraction < 1:
        raise ValueError(
            f"`fraction` must lie between 0 and 1. Received: fraction={fraction}."
        )
    if groups is None:
        groups = range(len(examples))
    if len(groups) != len(examples):
        raise ValueError(
            "`groups` must have one value a row. "
            f"Received: {len(groups)} values for {len(examples)} rows."
        )
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    in_order = list(members.values())
    wanted = round(fraction * len(examples))
    held: set[int] = set()
    for index in np.random.default_rng(seed).permutation(len(in_order)):
        # A group too large for what is left is passed over, not cut.
        if len(held) + len(in_order[index]) <= wanted:
            held.update(in_order[index])
    if not held or len(held) == len(examples):
        raise ValueError(
            f"Cannot hold {wanted} of {len(examples)} rows out (fraction={fraction:g}) "
            f"in whole groups, of which there are {len(members)}: one side would be "
            "empty. Give more rows or another fraction."
        )
    rest = [row for row in range(len(examples)) if row not in held]
    return examples.take(rest), examples.take(sorted(held))
