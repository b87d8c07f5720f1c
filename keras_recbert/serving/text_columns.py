"""Which columns of a file hold the texts that are answered, and what they hold."""

from keras_recbert.data.rows import as_text

# Names of the columns of texts, where none is named; the first that are all there.
USUAL_NAMES = (
    ("text", "text_pair"),
    ("question", "context"),
    ("text", "choices"),
    ("text",),
    ("sentence1", "sentence2"),
    ("sentence",),
    ("premise", "hypothesis"),
    ("question1", "question2"),
)
# The fewest values of a field of lists: `FEWEST_CHOICES`, whose file loads TensorFlow.
FEWEST = {"choices": 2}
_ADVICE = {
    list: "Join its parts with spaces; a tagger takes lists of words: --head words.",
    dict: "Name a column of texts: text_column (--text-column).",
    bytes: "Save the column as strings.",
}


def choose_text_columns(path, columns, wanted=()):
    """Says which columns hold the texts.

    Args:
        path: path of the file, for errors.
        columns: list of str, those of the file.
        wanted: sequence of one or two str; if it is empty, the only column, or columns
            with usual names: `text`, `text` and `text_pair`, `sentence`, ...

    Returns:
        Tuple of one or two str.

    Raises:
        ValueError: if a column is not there, or it is not clear which to take; lists
            the columns.
    """
    found = f"{path} has the columns {', '.join(map(repr, columns))}"
    wanted = tuple(wanted)
    if len(wanted) > 2:
        raise ValueError(
            "An example has one text, or two: text_column (--text-column) takes one or "
            f"two names. Received: {', '.join(wanted)}."
        )
    for name in wanted:
        if name not in columns:
            raise ValueError(f"There is no column {name!r}: {found}.")
    if wanted:
        return wanted
    if len(columns) == 1:
        return tuple(columns)
    for names in USUAL_NAMES:
        if all(name in columns for name in names):
            return names
    raise ValueError(
        f"{found}. Name the one, or the two, that hold the texts: text_column "
        "(--text-column)."
    )


def text_columns_of(predictor, text_columns, rows):
    """The texts of rows, a column for each field of a `Predictor`.

    Args:
        predictor: anything with its `fields` and `list_fields`.
        text_columns: sequence of str, the column of each field.
        rows: iterable of tuples of where a row is, such as `FILE:LINE`, and the row.

    Returns:
        List of columns: lists of str, or of lists of str.

    Raises:
        ValueError: if a row lacks a text, or it is not what its field takes.
    """
    return [
        [
            _checked_list(where, row, name, FEWEST.get(field, 0))
            if field in predictor.list_fields
            else _checked_text(where, row, name)
            for where, row in rows
        ]
        for field, name in zip(predictor.fields, text_columns, strict=True)
    ]


def _checked_text(where, row, name):
    value = _found(where, row, name)
    if value is None or value != value:  # NaN, as Parquet has it
        raise ValueError(
            f'{where}: there is no text in {name!r}: it is null. Write "" for an '
            "empty text, or leave the row out."
        )
    if type(value) in _ADVICE:
        raise ValueError(
            f"{where}: {name!r} must hold a text. Received: {value!r:.60} of type "
            f"{type(value).__name__}. {_ADVICE[type(value)]}"
        )
    return as_text(value)


def _checked_list(where, row, name, fewest):
    value = _found(where, row, name)
    are_texts = isinstance(value, list) and all(
        isinstance(one, str) and one for one in value
    )
    if not are_texts or len(value) < fewest:
        raise ValueError(
            f"{where}: {name!r} must hold a list of "
            + (f"{fewest} texts or more" if fewest else "texts")
            + f", none of them empty. Received: {value!r:.60}."
            + (" JSON lines and Parquet hold lists." if isinstance(value, str) else "")
        )
    return value


def _found(where, row, name):
    if name not in row:
        raise ValueError(
            f"{where}: there is no {name!r}, which holds the text. Found "
            f"{', '.join(map(repr, row)) or 'nothing'}."
        )
    return row[name]
