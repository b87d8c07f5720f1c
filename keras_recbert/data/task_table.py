"""The registered tasks as a table."""

from keras_recbert.data.task_spec import get_task

TASK_COLUMNS = ("task", "version", "fields", "head", "metrics", "source", "licence")


def task_row(name):
    """What a table says of a task: a str a column of `TASK_COLUMNS`.

    The metric that decides which epoch is kept comes first.
    """
    task = get_task(name)
    metrics = dict.fromkeys((task.main_metric, *task.metrics))
    return (
        task.name,
        str(task.version),
        ", ".join(task.fields),
        task.head,
        ", ".join(metrics),
        task.source,
        task.licence or "–",
    )


def make_task_table(names):
    """A Markdown table of tasks.

    Args:
        names: list of str.

    Returns:
        str.
    """
    rows = [TASK_COLUMNS, ["---"] * len(TASK_COLUMNS)]
    for name in names:
        task, *others = task_row(name)
        rows.append([f"`{task}`", *others])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
