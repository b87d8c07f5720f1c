"""Examples from tables: CSV, TSV, JSON lines and Parquet."""

import dataclasses
import os
from collections.abc import Mapping

from keras_recbert.data.examples import Examples
from keras_recbert.data.rows import TableRows, as_text


@dataclasses.dataclass(frozen=True)
class TableReader:
    """Reads tables with a header, or JSON lines; the `read` of a `TaskSpec`.

    What kind of table it is says the ending of its name, see `TableRows`.

    Args:
        fields: dict of field to its column.
        label: the column of the label; a test split may lack it. Values are texts:
            `true` of JSON is `"true"`, 1 is `"1"`.
        id_column: the column of ids; None numbers the rows.
        encoding: of text files.

    Call arguments:
        path: the file.
        split: the split that it has.

    Returns:
        `Examples` with the target `label`, a list of str; without targets for a test
        split that lacks the column.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for a broken row, or one that lacks a column; names file and line.
    """

    fields: Mapping[str, str]
    label: str | None = None
    _: dataclasses.KW_ONLY
    id_column: str | None = None
    encoding: str = "utf-8"

    def __call__(self, path: str | os.PathLike, split: str = "train") -> Examples:
        rows = TableRows(path, self.encoding)
        has_label = self.label is not None
        if has_label and split.startswith("test"):
            has_label = self.label in rows.columns()
        names = {("fields", name): column for name, column in self.fields.items()}
        if has_label:
            names["targets", "label"] = self.label
        if self.id_column is not None:
            names["ids", ""] = self.id_column
        found = {name: [] for name in names}
        for where, row in rows.rows():
            for name, column in names.items():
                found[name].append(_value(where, row, column))
        return Examples(
            {name: found["fields", name] for name in self.fields},
            {"label": found["targets", "label"]} if has_label else None,
            found.get(("ids", "")),
        )


def _value(where, row, name):
    if name not in row:
        raise ValueError(
            f"{where}: there is no column {name!r}. Found "
            f"{', '.join(map(repr, row)) or 'nothing'}."
        )
    return as_text(row[name])
