"""Splits of one file in two, whole groups at a time."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.data.examples import Examples, texts_in


def group_fields(
    fields: Mapping[str, Sequence], group_by: str | None = None
) -> list[int]:
    """Numbers the groups of examples that may not be parted by a split.

    Args:
        fields: dict of name to values, as `Examples` has them.
        group_by: field whose equal values make a group; None groups examples that
            share a value of any field, directly or through others. Values are equal
            whatever their case and spacing.

    Returns:
        One group number an example.
    """
    keys: dict[str, int] = {}
    wanted = fields.values() if group_by is None else [fields[group_by]]
    columns = [
        [keys.setdefault(same_text(value), len(keys)) for value in column]
        for column in wanted
    ]
    if len(columns) == 1:
        return columns[0]

    # Union-find: two values are of one group if some example holds both.
    parent = list(range(len(keys)))

    def root(key):
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for first, *others in zip(*columns, strict=True):
        for other in others:
            parent[root(first)] = root(other)
    return [root(key) for key in columns[0]]


def same_text(value: str | Sequence) -> str:
    """What values of a field have in common that differ in case and spacing alone."""
    return " ".join(" ".join(texts_in(value)).split()).casefold()


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
        examples: the rows, with the target `label`; labels that are scores, or
            several a row, count as one.
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
    labels = examples.targets["label"][first]
    if labels.ndim > 1 or labels.dtype.kind not in "iu":
        labels = np.zeros(len(first), int)
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
