"""What models owe to each word: their entropy when it is masked."""

import os
import pathlib

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import check_file, new_file
from keras_recbert.data.word_spans import MASK, find_words, replace_words
from keras_recbert.train.precision import Precision
from keras_recbert.train.table_runs import markdown_table
from keras_recbert.train.teacher import Teacher


def explain_words(models, text, output=None):
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

    Returns:
        dict of `words`, a list of str, and `models`, a list of dicts: `model`,
        `label` and `entropy` of the whole text, and of each word masked `labels` and
        `entropies`.

    Raises:
        FileNotFoundError: if there is no model at a path.
        ValueError: if one is no classifier of one text, or the text has no words.
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
    found = [_ask(path, [text, *masked]) for path in models]
    words = [text[begin:end] for begin, end in spans]
    result = {"words": words, "models": found}
    if output is not None:
        _save_picture(output, result)
    return result


def _ask(path, texts):
    model = Teacher(path, Precision("float32", "asked for"))
    head = model.model.head
    if head.task != "classifier" or len(model.model.fields) != 1:
        held = f"a {head.task} of {', '.join(model.model.fields)}"
        if isinstance(head.task, dict):
            held = f"a model of several tasks, {', '.join(head.task)}"
        raise ValueError(f"{path} must be a classifier of one text. Received: {held}.")
    logits = model.logits([texts]).astype(np.float64)
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
