"""Which columns of a table hold the texts and the labels."""

import numpy as np

from keras_recbert.data.text_labels import is_number

PAIR_NAMES = (
    ("sentence1", "sentence2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
)
TEXT_NAMES = ("text", "sentence", "review", "comment", "message", "content", "body")
LABEL_NAMES = (
    "label",
    "labels",
    "class",
    "category",
    "target",
    "sentiment",
    "stars",
    "rating",
    "score",
)
WORDS_OF_A_TEXT = 3  # mean number of words above which values look like texts
MOST_LABELS = 20  # distinct values up to which a column looks like labels
FLAGS = "Name it: text_column (--text-column), label_column (--label-column)."


def choose_columns(table, text_column=None, label_column=None):
    """Finds the columns of texts and of labels.

    What is not named is guessed: by a usual name; else the text is the only column of
    several words a value, and the label the only other column, or the only one of few
    distinct values.

    Args:
        table: `keras_recbert.data.tables.Table`.
        text_column: optional str, or list of one or two of them.
        label_column: optional str.

    Returns:
        Tuple of the tuple of text columns, the label column, and sentences that say
        what was guessed and why.

    Raises:
        ValueError: for a name that is not there, or where a guess would be between
            several columns; lists the columns.
    """
    if label_column is not None:
        check_column(table, label_column)
    named, notes = choose_text_columns(table, text_column, label_column)
    if label_column is None:
        label_column, why = _guess_label(table, named)
        notes.append(
            f"{table.path}: labels are in {label_column!r}, {why} (--label-column)."
        )
    return named, label_column, notes


def choose_text_columns(table, text_column=None, label_column=None):
    """Finds the columns of texts, as `choose_columns` does.

    Args:
        table, text_column, label_column: as for `choose_columns`.

    Returns:
        Tuple of the tuple of text columns, and a list of sentences that say what was
        guessed and why.

    Raises:
        ValueError: as `choose_columns`.
    """
    if text_column is not None:
        named = _as_list(text_column)
        for name in named:
            check_column(table, name)
        return tuple(named), []
    named, why = _guess_texts(table, label_column)
    names = " and ".join(map(repr, named))
    note = f"{table.path}: texts are in {names}, {why} (--text-column)."
    return tuple(named), [note]


def check_column(table, name):
    """Raises `ValueError`, listing the columns of a table, if it lacks this one."""
    if name not in table.columns:
        raise ValueError(
            f"{table.path} has no column {name!r}. Its columns: {_listed(table)}."
        )


def _as_list(names):
    return [names] if isinstance(names, str) else list(names)


def _listed(table):
    return ", ".join(map(repr, table.columns))


def _guess_texts(table, label_column):
    """Names of the text columns, and why these."""
    free = [name for name in table.columns if name != label_column]
    by_name = {name.casefold(): name for name in free}
    pairs = [pair for pair in PAIR_NAMES if set(pair) <= by_name.keys()]
    if len(pairs) == 1:
        return [by_name[name] for name in pairs[0]], "two texts by their names"
    found = [by_name[name] for name in TEXT_NAMES if name in by_name]
    if len(found) == 1 and not pairs:
        return found, "a text by its name"
    wordy = [name for name in free if _mean_words(table, name) >= WORDS_OF_A_TEXT]
    if len(wordy) == 1:
        return wordy, "the only column of several words a value"
    if len(free) == 1:
        return free, "the only column that is free"
    could_be = _could_be(wordy or free)
    raise ValueError(
        f"{table.path}: which column holds the texts? {could_be}. Its columns: "
        f"{_listed(table)}. {FLAGS}"
    )


def _guess_label(table, text_columns):
    """Name of the label column, and why this one."""
    free = [name for name in table.columns if name not in text_columns]
    if not free:
        raise ValueError(
            f"{table.path} has no column of labels beside the texts in "
            f"{' and '.join(map(repr, text_columns))}. Its columns: {_listed(table)}."
        )
    if len(free) == 1:
        return free[0], "the only other column"
    by_name = {name.casefold(): name for name in free}
    found = [by_name[name] for name in LABEL_NAMES if name in by_name]
    if len(found) == 1:
        return found[0], "a label by its name"
    few = [name for name in free if _looks_like_labels(table, name)]
    if len(few) == 1 and not found:
        return few[0], f"the only other column of at most {MOST_LABELS} distinct values"
    could_be = _could_be(found or few or free)
    raise ValueError(
        f"{table.path}: which column holds the labels? {could_be}. Its columns: "
        f"{_listed(table)}. {FLAGS}"
    )


def _could_be(names):
    return f"It could be {' or '.join(map(repr, names))}"


def _mean_words(table, name):
    values = table.values(name)
    if all(is_number(value) for value in values):
        return 0.0
    return float(np.mean([len(value.split()) for value in values]))


def _looks_like_labels(table, name):
    distinct = len(set(table.values(name)))
    return 2 <= distinct <= min(MOST_LABELS, len(table) // 2)
