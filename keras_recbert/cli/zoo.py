"""Commands that say what the zoo holds: list, explain, draw."""

from typing import Annotated

from tyro.conf import Positional, arg

import keras_recbert
from keras_recbert.cli.arguments import given
from keras_recbert.core.folders import check_file, new_file
from keras_recbert.data import list_tasks
from keras_recbert.data.task_table import TASK_COLUMNS, make_task_table, task_row
from keras_recbert.models.zoo_table import make_zoo_table


def list_models(
    pattern: Positional[str] = "*",
    params: bool = False,
    markdown: bool = False,
    tasks: bool = False,
):
    """Lists the models of the zoo, or the data sets that a model is trained on.

    Args:
        pattern: Part of a name, such as student, or a shell pattern, such as 'bert_*'.
        params: Count the parameters of each model and show them beside the paper's.
        markdown: Print all of the cards as a Markdown table, that of docs/zoo.md or
            docs/tasks.md.
        tasks: List the data sets of `recbert finetune --task` instead.
    """
    if tasks:
        if params:
            raise ValueError("A data set has no parameters. Leave out --params.")
        _list_tasks(pattern, markdown)
        return
    names = _matching(keras_recbert.list_models, pattern)
    if not names:
        raise ValueError(f"No model matches {pattern!r}. `recbert list` shows all.")
    if markdown:
        print(make_zoo_table(names), end="")
        return
    width = max(map(len, names))
    header = f"{'parameters':>11}  published  " if params else ""
    print(f"{'model':<{width}}  {header}source")
    for name in names:
        card = keras_recbert.get_card(name)
        counts = ""
        if params:
            published = card.published_parameters or ""
            counts = f"{keras_recbert.count_parameters(name):>11,}  {published:>9}  "
        paper = card.paper.partition(",")[0]
        print(f"{name:<{width}}  {counts}{paper}: {card.table}", flush=True)


def _matching(list_names, pattern):
    """Names that match a shell pattern; if none do, those that have it within."""
    return list_names(pattern) or list_names(f"*{pattern}*")


def _list_tasks(pattern, markdown):
    names = _matching(list_tasks, pattern)
    if not names:
        raise ValueError(
            f"No task matches {pattern!r}. `recbert list --tasks` shows all."
        )
    if markdown:
        print(make_task_table(names), end="")
        return
    rows = [TASK_COLUMNS, *map(task_row, names)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), flush=True)


def explain_words(
    arguments: Annotated[Positional[list[str]], arg(metavar="MODEL [MODEL ...] TEXT")],
    output: str | None = None,
    task: str | None = None,
):
    """Masks each word of a text in turn, and prints how sure classifiers still are.

    The higher the entropy, in bits, the more a model owes the word that is masked.

    Args:
        arguments: Output folders of `recbert finetune` or `recbert distill`, presets or
            files model.keras; then the text.
        output: A PNG to draw, such as words.png: a row a model, a column a word.
        task: Of a model of several tasks the one that answers.
    """
    *models, text = arguments
    if not models:
        raise ValueError(
            f"Name a model and a text. Received: {text!r} alone. Such as recbert "
            "explain-words TEACHER STUDENT 'a gripping film'."
        )
    from keras_recbert.train.masked_words import explain_words, make_word_table
    from keras_recbert.train.teacher import is_model

    if is_model(text):
        raise ValueError(
            f"The text comes last. Received: {text!r}, a model, as the last. Such as "
            "recbert explain-words TEACHER STUDENT 'a gripping film'."
        )
    print(make_word_table(explain_words(models, text, output, task)), end="")


def draw(
    models: Annotated[Positional[list[str]], arg(metavar="MODEL [MODEL ...]")],
    output: str = "blocks.svg",
):
    """Draws the blocks of encoders side by side: what runs, and what feeds what.

    Args:
        models: Names of encoders, see `recbert list`; or presets, files model.keras,
            BERTs of another tool.
        output: The SVG to write; replaced if it is there.
    """
    if not output.endswith(".svg"):
        raise ValueError(f"--output must end with .svg. Received: {output!r}.")
    check_file(output)
    picture = keras_recbert.draw(*models)
    with new_file(output) as file:
        file.write_text(picture, encoding="utf-8")
    print(f"Wrote {output}: {', '.join(models)}.")


def explain(model: Positional[str], implementation: str | None = None):
    """Says what runs in each kind of layer on this machine, and why.

    Args:
        model: Name of an encoder, see `recbert list`; or a preset, a model.keras, a
            BERT of another tool.
        implementation: auto, reference, loop or xla; by default what a model was saved
            with, and auto for a name.
    """
    print(keras_recbert.explain(model, **given(implementation=implementation)))
