"""What models owe to each word: their entropy when it is masked."""

import os
import pathlib

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_file, new_file
from keras_recbert.data.word_spans import MASK, find_words, replace_words
from keras_recbert.heads import NamedHeads
from keras_recbert.train.precision import Precision
from keras_recbert.train.table_runs import markdown_table
from keras_recbert.train.teacher import Teacher


def explain_words(models, text, output=None, task=None):
    """Masks each word of a text in turn and asks classifiers how sure they still are.

    Liu 2020, section 3.5.4 and figure 3.4: the entropy of the predicted probabilities
    is high where the word that is masked carried the answer. In bits: 0 is sure, 1 a
    choice between two classes, log2 of their number at most.

    Args:
        models: str or path, or a list of them, each the output folder of `recbert
            finetune` or `recbert distill`, a preset or a model.keras of a classifier of
            one text.
        text: str.
        output: optional path of a PNG: a row a model, a column a word.
        task: optional str. Of a model of several tasks the one that answers; it may be
            left out where one alone is a classifier of one text.

    Returns:
        dict of `words`, a list of str, and `models`, a list of dicts: `model`,
        `label` and `entropy` of the whole text, and of each word masked `labels` and
        `entropies`.

    Raises:
        FileNotFoundError: if there is no model at a path.
        ValueError: if one is no classifier of one text, or has several and `task` names
            none of them; if the text has no words.
        OSError: if the picture cannot be written; before any work.
    """
    models = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    if not models:
        raise ValueError("Name one model or more. Received: models=[].")
    spans = find_words(text)
    if not spans:
        raise ValueError(f"There is no word in the text. Received: {text!r}.")
    if output is not None:
        check_installed("A picture of words", "train", "matplotlib")
        if pathlib.Path(output).suffix.lower() != ".png":
            raise ValueError(f"A picture is a .png. Received: output={str(output)!r}.")
        check_file(output)
    masked = [replace_words(text, spans, {word: MASK}) for word in range(len(spans))]
    found = [_ask(path, [text, *masked], task) for path in models]
    words = [text[begin:end] for begin, end in spans]
    result = {"words": words, "models": found}
    if output is not None:
        _save_picture(output, result)
    return result


def _ask(path, texts, task):
    teacher = Teacher(path, Precision("float32", "asked for"))
    model = _classifier(teacher.model, path, task)
    head = model.head
    logits = teacher.logits([texts], model).astype(np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_shares = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    entropies = -(np.exp(log_shares) * log_shares).sum(axis=1) / np.log(2)
    labels = [head.label_names[index] for index in logits.argmax(axis=1)]
    return {
        "model": str(path),
        "label": labels[0],
        "entropy": float(entropies[0]),
        "labels": labels[1:],
        "entropies": entropies[1:].tolist(),
        "num_classes": logits.shape[1],
    }


def _classifier(model, path, task):
    """The model, or the view of one of its heads, that classifies one text."""
    views = {None: model}
    if isinstance(model.head, NamedHeads):
        names = model.heads if task is None else [task]
        views = {name: model.head_view(name) for name in names}
    fit = {name: view for name, view in views.items() if _classifies_one_text(view)}
    if not fit:
        held = ", ".join(
            f"{'' if name is None else name + ', '}a {view.head.task} of "
            f"{' and '.join(view.fields)}"
            for name, view in views.items()
        )
        raise ValueError(f"{path} must be a classifier of one text. Received: {held}.")
    if len(fit) > 1:
        raise ValueError(
            f"{path} has several classifiers of one text, {', '.join(fit)}. Name one: "
            "task (--task NAME)."
        )
    return next(iter(fit.values()))


def _classifies_one_text(model):
    return model.head.task == "classifier" and len(model.fields) == 1


def make_word_table(result):
    """A Markdown table: a row a word, a column a model; entropies in bits.

    Args:
        result: dict that `explain_words` gave.
    """
    models = result["models"]
    rows = [["masked", *(one["model"] for one in models)]]
    rows.append(["nothing", *(_cell(one["entropy"], one["label"]) for one in models)])
    for place, word in enumerate(result["words"]):
        pairs = ((one["entropies"][place], one["labels"][place]) for one in models)
        word = word.replace("|", "\\|")  # which would end a cell
        rows.append([word, *(_cell(*pair) for pair in pairs)])
    return markdown_table(rows)


def _cell(entropy, label):
    return f"{entropy:.2f} {label}"


def _save_picture(path, result):
    from matplotlib.figure import Figure

    words, models = result["words"], result["models"]
    values = np.array([one["entropies"] for one in models])
    most = np.log2(max(one["num_classes"] for one in models))
    names = [f"{one['model']}\n{one['label']}" for one in models]
    longest = max(len(line) for name in names for line in name.split("\n"))
    size = (1.6 + 0.09 * longest + 0.62 * len(words), 1.6 + 0.6 * len(models))
    figure = Figure(figsize=size, layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(values, vmin=0, vmax=most, cmap="Blues", aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        color = "white" if value > 0.6 * most else "black"
        style = {"ha": "center", "va": "center", "color": color, "fontsize": 8}
        axis.text(column, row, f"{value:.2f}", **style)
    axis.set_yticks(range(len(models)), names)
    axis.set_xticks(range(len(words)), words, rotation=45, ha="right")
    axis.set(xlabel="masked word")
    figure.colorbar(image, label="entropy in bits")
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")
