"""Cells that hold any number of labels, such as `comedy|war`."""

import numpy as np

SEPARATORS = ("|", ";", ",")  # looked for in this order


def find_separator(cells):
    """The first of `SEPARATORS` that a cell holds; a comma if none does.

    Args:
        cells: list of str.
    """
    for separator in SEPARATORS:
        if any(separator in cell for cell in cells):
            return separator
    return SEPARATORS[-1]


def split_cells(cells, separator):
    """Labels of each cell, without the spaces around them; none of an empty cell.

    Args:
        cells: list of str.
        separator: str.

    Returns:
        list of lists of str.
    """
    parts = ([part.strip() for part in cell.split(separator)] for cell in cells)
    return [[part for part in row if part] for row in parts]


def names_of(labels, where):
    """Names of all labels, sorted.

    Args:
        labels: list of lists of str.
        where: str. File and column, which an error begins with.

    Returns:
        tuple of str.

    Raises:
        ValueError: if no row has a label.
    """
    names = sorted({name for row in labels for name in row})
    if not names:
        raise ValueError(f"{where}: no row has a label. Expected at least one label.")
    return tuple(names)


def to_label_rows(table, column, labels, label_names):
    """Rows of 0 and 1.

    Args:
        table: `keras_recbert.data.tables.Table`, for errors.
        column: str.
        labels: list of lists of str, of all rows of the table.
        label_names: tuple of str.

    Returns:
        float32 array `(num_rows, num_labels)`.

    Raises:
        ValueError: for a label that is not among them; names file and line.
    """
    places = {name: place for place, name in enumerate(label_names)}
    rows = np.zeros((len(labels), len(places)), np.float32)
    for row, names in enumerate(labels):
        for name in names:
            if name not in places:
                raise ValueError(
                    f"{table.where(row)}: the training file has no label {name!r} in "
                    f"column {column!r}. Valid: "
                    f"{', '.join(map(repr, label_names[:20]))}"
                    f"{', ...' if len(label_names) > 20 else ''}."
                )
            rows[row, places[name]] = 1.0
    return rows
