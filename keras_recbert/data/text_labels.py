"""Labels that are written as texts: words or numbers, classes or scores."""

import re

import numpy as np

# As `float` reads them, without its underscores, infinities and NaN.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MOST_CLASSES = 20  # distinct numbers above which they are scores
SHOWN = 20  # names of classes in a message


def is_number(text):
    """Whether a text is a finite number as a table has it: `3`, `-0.5`, `1e3`."""
    return _NUMBER.fullmatch(text) is not None and np.isfinite(float(text))


def read_labels(table, column):
    """Labels of all rows, without the spaces around them.

    Args:
        table: `keras_recbert.data.tables.Table`.
        column: str.

    Returns:
        list of str.

    Raises:
        ValueError: for a label that is empty; names file and line.
    """
    labels = [value.strip() for value in table.values(column)]
    empty = [row for row, label in enumerate(labels) if not label]
    if empty:
        more = f" ({len(empty):,} rows have none)" if len(empty) > 1 else ""
        raise ValueError(
            f"{table.where(empty[0])}: the label in column {column!r} is empty{more}. "
            "Fill it in, or remove the row."
        )
    return labels


def guess_task(labels, where):
    """Whether labels are classes or scores.

    Args:
        labels: list of str.
        where: str. File and column, which an error begins with.

    Returns:
        Tuple of `"classifier"` or `"regressor"`, and why.

    Raises:
        ValueError: if they are words that hardly repeat.
    """
    distinct = set(labels)
    if not all(map(is_number, distinct)):
        if len(distinct) > max(MOST_CLASSES, len(labels) / 2):
            raise ValueError(
                f"{where}: {len(distinct):,} different words in {len(labels):,} "
                f"rows, such as {labels[0]!r}. Expected classes that repeat, or "
                "numbers. Name another column: label_column (--label-column), or "
                "decide: task='classifier' (--task classifier)."
            )
        return "classifier", "the labels are words"
    fraction = next((label for label in labels if float(label) % 1), None)
    if fraction is not None:
        return "regressor", f"the labels are numbers with fractions, such as {fraction}"
    if len(distinct) > MOST_CLASSES:
        return "regressor", f"the labels are {len(distinct):,} different numbers"
    return "classifier", f"the labels are {len(distinct)} different whole numbers"


def class_names(labels, where):
    """Names of the classes: sorted by number where all are numbers, else by letter.

    Args:
        labels: list of str.
        where: str. File and column, which an error begins with.

    Returns:
        tuple of str.

    Raises:
        ValueError: if there are less than two.
    """
    names = sorted(set(labels))
    if all(map(is_number, names)):
        names.sort(key=float)
    if len(names) < 2:
        raise ValueError(
            f"{where}: every row has the label {names[0]!r}. Expected at least two "
            "classes."
        )
    return tuple(names)


def to_class_ids(table, column, labels, label_names):
    """Positions of labels in `label_names`.

    Args:
        table: `keras_recbert.data.tables.Table`, for errors.
        column: str.
        labels: list of str, of all rows of the table.
        label_names: tuple of str.

    Returns:
        int32 array `(num_rows,)`.

    Raises:
        ValueError: for a label that is not among them; names file and line.
    """
    ids = {name: index for index, name in enumerate(label_names)}
    for row, label in enumerate(labels):
        if label not in ids:
            shown = ", ".join(map(repr, label_names[:SHOWN]))
            more = ", ..." if len(label_names) > SHOWN else ""
            raise ValueError(
                f"{table.where(row)}: the training file has no label {label!r} in "
                f"column {column!r}. Valid: {shown}{more}."
            )
    return np.array([ids[label] for label in labels], np.int32)


def to_scores(table, column, labels):
    """Labels as numbers.

    Args:
        table, column, labels: as for `to_class_ids`.

    Returns:
        float32 array `(num_rows,)`.

    Raises:
        ValueError: for a label that is no number; names file and line.
    """
    for row, label in enumerate(labels):
        if not is_number(label) or abs(float(label)) > np.finfo(np.float32).max:
            raise ValueError(
                f"{table.where(row)}: {label!r} in column {column!r} is not a number. "
                "Valid for a regressor: finite numbers such as 3 or 0.5."
            )
    return np.array(labels, np.float64).astype(np.float32)
