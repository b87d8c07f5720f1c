"""The command that sums up runs on GLUE: glue."""

from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.core.folders import check_file, new_file


def glue(
    runs: Annotated[Positional[list[str]], arg(metavar="RUNS [RUNS ...]")],
    output: str | None = None,
):
    """Sums up runs on GLUE: of each task the best on validation, and the averages.

    The GLUE score is the mean of nine tasks, where a task of two metrics counts by
    their mean; beside it are that without WNLI, and the average of BERT's table 1.

    Args:
        runs: Folders of `recbert finetune` or `recbert table`, or of several; or their
            results.json.
        output: A Markdown file to write the tables into, too.
    """
    from keras_recbert.train.glue_average import make_glue_table, read_runs

    if not runs:
        raise ValueError("`runs` is empty. Name a folder of runs, such as runs.")
    if output is not None:
        check_file(output)
    table = make_glue_table(read_runs(runs))
    print(table, end="")
    if output is not None:
        with new_file(output) as written:
            written.write_text(table, encoding="utf-8")
