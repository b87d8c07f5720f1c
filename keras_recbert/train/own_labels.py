"""The labels of a user's own table: what they are, and how they are read."""

import math
from dataclasses import dataclass

from keras_recbert.data import multilabels
from keras_recbert.data.text_labels import (
    class_names,
    guess_task,
    is_number,
    read_labels,
    to_class_ids,
    to_scores,
)

METRICS = {  # the first decides which epoch is kept
    "classifier": ("accuracy", "macro_f1"),
    "multilabel_classifier": ("micro_f1", "macro_f1", "accuracy"),
    "regressor": ("pearson", "spearman"),
}


@dataclass(frozen=True)
class OwnLabels:
    """How the labels of one column are read.

    Args:
        kind: `"classifier"`, `"multilabel_classifier"` or `"regressor"`.
        column: str.
        names: tuple of str, or None for scores.
        separator: str, of labels in a cell of a multilabel classifier.
    """

    kind: str
    column: str
    names: tuple | None
    separator: str | None = None

    @classmethod
    def choose(cls, table, column, config):
        """Those of the training table, and notes for the user.

        Args:
            table: `keras_recbert.data.tables.Table`.
            column: str.
            config: `FineTuningConfig`.

        Raises:
            ValueError: if labels do not fit the task; names file and column.
        """
        where = f"{table.path}, column {column!r}"
        kind, notes = config.task, []
        _check_finite(table, column)
        if kind == "multilabel_classifier":
            cells = table.values(column)
            separator = config.label_separator or multilabels.find_separator(cells)
            labels = multilabels.split_cells(cells, separator)
            names = multilabels.names_of(labels, where)
            notes.append(
                f"{where}: {len(names):,} labels, with {separator!r} between those of "
                "a text (--label-separator)."
            )
            return cls(kind, column, names, separator), notes
        labels = read_labels(table, column)
        if kind is None:
            kind, why = guess_task(labels, where)
            notes.append(f"A {kind}, because {why} (--task).")
        if kind == "regressor" and config.class_weights is not None:
            raise ValueError(
                f"{where}: `class_weights` are for a classifier, and this is a {kind}. "
                "Leave class_weights (--class-weights) out, or pass task='classifier' "
                "(--task classifier)."
            )
        names = class_names(labels, where) if kind == "classifier" else None
        return cls(kind, column, names), notes

    def read(self, table):
        """Labels of a table as an array, as `Examples` takes them."""
        if self.kind == "multilabel_classifier":
            labels = multilabels.split_cells(table.values(self.column), self.separator)
            return multilabels.to_label_rows(table, self.column, labels, self.names)
        labels = read_labels(table, self.column)
        if self.names is None:
            return to_scores(table, self.column, labels)
        return to_class_ids(table, self.column, labels, self.names)


def _check_finite(table, column):
    """Raises `ValueError` for NaN, and for infinity if all other labels are numbers."""
    cells = [value.strip() for value in table.values(column)]
    words = {cell for cell in cells if not is_number(cell)}
    wrong = {word for word in words if not _is_finite(word)}
    if wrong < words:  # classes, such as "inf" and "fin"
        wrong = {word for word in wrong if "nan" in word.casefold()}
    for row, cell in enumerate(cells):
        if cell in wrong:
            raise ValueError(
                f"{table.where(row)}: the label in column {column!r} is {cell!r}. "
                "Expected a finite number, or a class whose name is not NaN, which "
                "pandas writes for a missing label. Fill it in, or remove the row."
            )


def _is_finite(word):
    """False for what `float` reads as NaN or infinity."""
    try:
        return math.isfinite(float(word))
    except ValueError:
        return True
