"""Which columns of a file hold the texts that are answered."""

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
