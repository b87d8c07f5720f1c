"""Examples of a data set: ids, named fields and named targets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Examples:
    """What a model reads and what it learns of each example, column by column.

    Args:
        fields: dict of name to a list, one value an example, in the order in which
            the model reads them: `{"text": [...]}`, `{"question": [...], "context":
            [...]}`, `{"words": [[...], ...]}`. A value is a str, or a list of them.
        targets: dict of name to a list or an array, one value an example: `{"label":
            array}`, `{"start": [...], "end": [...]}`; None for examples without.
        ids: sequence of str, what each example is called in predictions and reports;
            by default its number in the file, from `"1"`.
        notes: tuple of sentences on what the reader did, such as rows that it left out.

    Raises:
        ValueError: if there is no field, or columns differ in length.
    """

    fields: Mapping[str, Sequence]
    targets: Mapping[str, Sequence] | None = None
    ids: Sequence[str] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.fields:
            raise ValueError("`fields` must hold at least one column. Received none.")
        lengths = {f"fields[{key!r}]": len(self.fields[key]) for key in self.fields}
        for key, column in (self.targets or {}).items():
            lengths[f"targets[{key!r}]"] = len(column)
        if self.ids is None:
            numbers = range(1, 1 + next(iter(lengths.values())))
            object.__setattr__(self, "ids", list(map(str, numbers)))
        else:
            lengths["ids"] = len(self.ids)
        if len(set(lengths.values())) != 1:
            received = ", ".join(f"{name} {n}" for name, n in lengths.items())
            raise ValueError(
                f"Columns of examples must be equally long. Received: {received}."
            )

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: Sequence[int]) -> "Examples":
        """The examples at `rows`, in that order, with their ids; notes are dropped."""
        rows = np.asarray(rows, int)

        def taken(columns):
            return {name: _take(column, rows) for name, column in columns.items()}

        targets = None if self.targets is None else taken(self.targets)
        return Examples(taken(self.fields), targets, _take(self.ids, rows))

    def texts(self) -> list[str]:
        """One text an example: all its fields, joined by spaces."""
        return [
            " ".join(text for value in values for text in texts_in(value))
            for values in zip(*self.fields.values(), strict=True)
        ]


def texts_in(value: str | Sequence) -> Iterator[str]:
    """The texts of a value of a field: a str, or a list of them, nested or not."""
    if isinstance(value, str):
        yield value
    else:
        for part in value:
            yield from texts_in(part)


def _take(column, rows):
    if isinstance(column, np.ndarray):
        return column[rows]
    return [column[row] for row in rows]
