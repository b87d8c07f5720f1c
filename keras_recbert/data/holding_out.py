"""Holding part of a file out, whole groups at a time."""

from collections.abc import Hashable, Sequence

import numpy as np

from keras_recbert.data.glue_tasks import GlueTask, get_task
from keras_recbert.data.tsv import Examples
from keras_recbert.extras import check_installed


def group_examples(task: str | GlueTask, examples: Examples) -> list[int]:
    """Numbers the groups of rows that may not be parted by a split.

    Texts count as the same whatever their case and spacing.

    Args:
        task: a task or its name; its `group_by` says what makes a group.
        examples: the rows.

    Returns:
        One group number a row.
    """
    return group_texts(examples.texts, get_task(task).group_by)


def group_texts(texts: Sequence[list[str]], group_by: str = "any") -> list[int]:
    """Numbers the groups of rows that share a text, whatever its case and spacing.

    Args:
        texts: one or two equally long lists of str.
        group_by: `"first"`: rows with the same first text; `"any"`: rows that share
            either text, directly or through other rows.

    Returns:
        One group number a row.
    """
    keys: dict[str, int] = {}
    columns = [
        [keys.setdefault(same_text(text), len(keys)) for text in column]
        for column in texts
    ]
    if group_by == "first" or len(columns) == 1:
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


def same_text(text: str) -> str:
    """What texts have in common that differ in case and spacing alone."""
    return " ".join(text.split()).casefold()


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


def split_by_label(
    examples: Examples, fraction: float, seed: int, groups: Sequence[Hashable]
) -> tuple[Examples, Examples]:
    """Holds a share of the groups out, of each label alike.

    The same rows, seed and groups give the same split. Both sides keep the order of
    the rows. A group has the label of its first row. A label of one group stays in the
    rest, and so does a group of more rows than are to be held out.

    Args:
        examples: the rows; labels that are scores, or several a row, count as one.
        fraction: share of the groups to hold out, between 0 and 1.
        seed: decides which groups are held out.
        groups: one value a row; rows of equal value stay together.

    Returns:
        `(rest, held_out)`.

    Raises:
        ValueError: where there are too few rows for a share of each label.
        ImportError: without scikit-learn.
    """
    check_installed("Splitting by label", "train", "sklearn")
    from sklearn.model_selection import train_test_split

    wanted = max(1, round(fraction * len(examples)))
    _, first, members, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    is_class = examples.label_names is not None and examples.labels.ndim == 1
    labels = examples.labels[first] if is_class else np.zeros(len(first), int)
    counts = np.bincount(labels)
    free = np.flatnonzero((counts[labels] > 1) & (sizes <= wanted))
    # Large groups that stay behind may leave one group of a label.
    counts = np.bincount(labels[free], minlength=len(counts))
    free = free[counts[labels[free]] > 1]
    num_held, num_labels = round(fraction * len(free)), np.count_nonzero(counts > 1)
    if num_held < max(1, num_labels) or len(free) - num_held < max(1, num_labels):
        raise ValueError(
            f"{len(examples):,} rows are too few to hold {fraction:g} of them out for "
            f"validation: {num_held} of {len(free):,} different texts, for {num_labels}"
            " labels. Name a validation file, validation (--validation FILE), or "
            "another validation_fraction (--validation-fraction)."
        )
    _, held = train_test_split(
        free, test_size=num_held, stratify=labels[free], random_state=seed
    )
    is_held = np.isin(members, held)
    return (
        examples.take(np.flatnonzero(~is_held)),
        examples.take(np.flatnonzero(is_held)),
    )
