"""Pictures of predictions beside labels."""

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file

MAX_CLASSES = 30  # more would be too small to read
MAX_POINTS = 5000
_LABEL_LENGTH = 24


def save_confusion_matrix(path, matrix, label_names, title):
    """Draws a confusion matrix: counts, coloured by their share of the row.

    Of more than 30 classes it shows the 30 with the most mistakes.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        matrix: int array `(num_classes, num_classes)`; rows are labels, columns are
            predictions.
        label_names: sequence of str, `num_classes` of them.
        title: str.

    Raises:
        ImportError: if matplotlib or scikit-learn is not installed.
    """
    check_installed("Drawing a confusion matrix", "train", "sklearn", "matplotlib")
    from matplotlib.figure import Figure
    from sklearn.metrics import ConfusionMatrixDisplay

    num_classes = len(matrix)
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    if num_classes > MAX_CLASSES:
        shown = _most_confused(matrix)
        title += f"\nthe {MAX_CLASSES} of {num_classes} classes with the most mistakes"
    else:
        shown = np.arange(num_classes)
    counts = matrix[np.ix_(shown, shown)]
    names = [_drawable(label_names[index], index) for index in shown]
    longest = max(map(len, names))
    # Inches: cells, then labels, the colour bar and the title.
    cells = max(2.8, min(0.48 * len(shown), 4 + 0.24 * len(shown)))
    is_tight = 0.09 * longest > cells / len(shown)
    margin = 0.085 * longest + 0.5
    figure = Figure(figsize=(cells + margin + 1.2, cells + margin + 0.7))
    figure.set_layout_engine("constrained")
    axis = figure.subplots()
    display = ConfusionMatrixDisplay(counts / totals[shown], display_labels=names)
    display.plot(
        ax=axis,
        cmap="Blues",
        xticks_rotation="vertical" if is_tight else "horizontal",
        im_kw={"vmin": 0, "vmax": 1},
        text_kw={"fontsize": 9 if counts.max() < 1000 and len(shown) <= 15 else 7},
        colorbar=False,
    )
    for (row, column), text in np.ndenumerate(display.text_):
        count = counts[row, column]
        # Zeros of a large matrix would hide what is not zero.
        text.set_text(f"{count}" if count or len(shown) <= 8 else "")
    for label in (*axis.get_xticklabels(), *axis.get_yticklabels()):
        label.set(parse_math=False, fontsize=9)
    axis.set(xlabel="prediction", ylabel="label")
    axis.set_title(title, fontsize=10, parse_math=False)
    bar = figure.colorbar(display.im_, ax=axis, shrink=0.8, aspect=30)
    bar.set_label("share of the examples with this label")
    _save(figure, path)


def save_scatter(path, labels, predictions, title, seed):
    """Draws the predictions of a regressor over the labels.

    Of more than 5000 examples it shows 5000, drawn at random.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        labels: float array `(num_examples,)`.
        predictions: float array `(num_examples,)`.
        title: str.
        seed: int. Draws the examples.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    check_installed("Drawing predictions", "train", "matplotlib")
    from matplotlib.figure import Figure

    if len(labels) > MAX_POINTS:
        title += f"\n{MAX_POINTS:,} of {len(labels):,} examples, drawn at random"
        rows = np.random.default_rng(seed).choice(len(labels), MAX_POINTS, False)
        labels, predictions = labels[rows], predictions[rows]
    figure = Figure(figsize=(5, 5), layout="constrained")
    axis = figure.subplots()
    alpha = float(np.clip(200 / len(labels), 0.15, 0.7))
    axis.scatter(labels, predictions, s=14, alpha=alpha, linewidths=0)
    low = min(labels.min(), predictions.min())
    high = max(labels.max(), predictions.max())
    margin = 0.04 * (high - low) or 1.0
    ends = (low - margin, high + margin)
    axis.plot(ends, ends, color="0.5", linewidth=1, label="prediction = label")
    axis.set(xlim=ends, ylim=ends, xlabel="label", ylabel="prediction", aspect="equal")
    axis.set_title(title, fontsize=10, parse_math=False)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, loc="upper left")
    _save(figure, path)


def _most_confused(matrix):
    """Ids, in order, of the classes that most mistakes are from or to."""
    mistakes = matrix - np.diag(np.diag(matrix))
    per_class = mistakes.sum(axis=0) + mistakes.sum(axis=1)
    return np.sort(np.argsort(-per_class, kind="stable")[:MAX_CLASSES])


def _drawable(name, index):
    """A name in a line: `3: a long...` if it is long; `class 3` without its letters."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    name = " ".join(name.split())
    font = get_font(findfont(FontProperties()))
    if not name or not all(font.get_char_index(ord(letter)) for letter in name):
        return f"class {index}"
    if len(name) <= _LABEL_LENGTH:
        return name
    return f"{index}: {name}"[: _LABEL_LENGTH - 1].rstrip() + "…"


def _save(figure, path):
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")
