"""Options of a run on a user's own data, checked. Imports no TensorFlow."""

import pathlib

TASKS = ("classifier", "multilabel_classifier", "regressor")
# Tasks whose files are no tables, and how the names of these end, or with `.gz`.
FILE_TASKS = {
    "token_classifier": (".conll", ".conllu"),
    "question_answering": (".json",),
}
OWN_TASKS = (*TASKS, *FILE_TASKS)
# What says how a table is read, and is nothing without one.
TABLE_OPTIONS = (
    "validation",
    "test",
    "text_column",
    "label_column",
    "label_separator",
    "encoding",
)


def file_task(config):
    """The task of a file of one's own that is no table; None for a table.

    Args:
        config: `keras_recbert.config.FineTuningConfig` with `train`.
    """
    if config.task is not None:
        return config.task if config.task in FILE_TASKS else None
    name = str(config.train).removesuffix(".gz")
    endings = FILE_TASKS.items()
    return next((task for task, ends in endings if name.endswith(ends)), None)


def table_name(path):
    """Name of a table: that of its file up to the first dot."""
    return pathlib.Path(path).name.partition(".")[0] or "table"


def check_own_data(config):
    """Checks the options of a table of one's own against each other and a task's.

    Args:
        config: `keras_recbert.config.FineTuningConfig`.

    Raises:
        ValueError: if they do not go together; says what to change.
    """
    for name in ("validation_fraction", "tuning_fraction"):
        fraction = getattr(config, name)
        if fraction is not None and not 0 < fraction < 1:
            raise ValueError(
                f"`{name}` must be above 0 and below 1. Received: {name}={fraction!r}."
            )
    if config.train is None:
        _check_without_table(config)
        return
    if config.tuning_fraction is not None:
        raise ValueError(
            "`tuning_fraction` is of a data set. Received: tuning_fraction="
            f"{config.tuning_fraction}, train={config.train!r}. Of a table of your own "
            "leave validation out and name validation_fraction (--validation-fraction)."
        )
    for name in ("data_dir", "tfds"):
        if getattr(config, name):
            raise ValueError(
                "The examples come from one place. Received: both train="
                f"{config.train!r} and {name}={getattr(config, name)!r}. Leave one out."
            )
    if config.task not in (None, *OWN_TASKS):
        raise ValueError(
            "`task` of a table of your own must be classifier, multilabel_classifier "
            "or regressor; of a file in columns token_classifier, of SQuAD's JSON "
            f"question_answering. Received: task={config.task!r}, "
            f"train={config.train!r}. Leave task out to go by the file, or train out "
            "for a data set of `recbert list --tasks`."
        )
    if file_task(config) is not None:
        _check_no_table(config)
    if config.task not in (None, "classifier") and config.class_weights:
        raise ValueError(
            "`class_weights` are for a classifier. Received: class_weights="
            f"{config.class_weights!r}, task={config.task!r}. Leave one out."
        )
    if config.label_separator is not None and config.task != "multilabel_classifier":
        raise ValueError(
            "`label_separator` needs task='multilabel_classifier'. Received: "
            f"label_separator={config.label_separator!r}, task={config.task!r}."
        )
    _check_columns(config)
    fraction = config.validation_fraction
    if fraction is not None and config.validation is not None:
        raise ValueError(
            "There is one set to validate on. Received: both validation="
            f"{config.validation!r} and validation_fraction={fraction}. Leave one out."
        )
    _check_encoding(config.encoding)


def _check_without_table(config):
    given = [name for name in TABLE_OPTIONS if getattr(config, name) is not None]
    if getattr(config, "unlabelled", None) is not None:  # which is a table, too
        given = [name for name in given if name not in ("text_column", "encoding")]
        _check_columns(config)
        _check_encoding(config.encoding)
    if config.task in OWN_TASKS:
        given.append("task")
    if given:
        raise ValueError(
            f"`{given[0]}` needs a table of your own. Received: {given[0]}="
            f"{getattr(config, given[0])!r} without train. Name one: train "
            "(--train FILE)."
        )


def _check_no_table(config):
    """Raises `ValueError` for what says how a table is read."""
    for name in TABLE_OPTIONS:
        value = getattr(config, name)
        if name != "validation" and value is not None:
            raise ValueError(
                f"`{name}` is of tables, .csv, .tsv, .jsonl or .parquet. Received: "
                f"{name}={value!r}, train={config.train!r}, which is read as files of "
                f"{file_task(config)} are. Leave {name} out."
            )


def _check_columns(config):
    texts = config.text_column
    texts = [] if texts is None else [texts] if isinstance(texts, str) else texts
    if config.text_column is not None and len(texts) not in (1, 2):
        raise ValueError(
            "`text_column` must name one column, or two of pairs. Received: "
            f"text_column={config.text_column!r}."
        )
    names = [*texts, *([config.label_column] if config.label_column else [])]
    if len(set(names)) < len(names):
        raise ValueError(
            "Each column is one thing. Received: text_column="
            f"{config.text_column!r}, label_column={config.label_column!r}."
        )


def _check_encoding(encoding):
    if encoding is None:
        return
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        raise ValueError(
            f"`encoding` must be one that Python knows. Received: encoding={encoding!r}"
            f" ({error}). Such as utf-8, cp1252, latin-1 or shift_jis."
        ) from error
