"""Draws the losses and scores of a fine-tuning run."""

from keras_recbert.core.extras import check_installed
from keras_recbert.core.folders import new_file
from keras_recbert.train.curve_axes import fit_axes


def save_learning_curve(path, training_loss, history, main_metric, title):
    """Draws training loss, validation loss and validation scores over the steps.

    Args:
        path: str or path of the PNG; written under a temporary name, then renamed.
        training_loss: dict, `state` of the `TrainingLoss` of the run.
        history: dict of name to list of values, one an epoch, from `model.fit`.
        main_metric: str. Name in `history` that is drawn boldly.
        title: str.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    check_installed("Drawing curves", "train", "matplotlib")
    from matplotlib.figure import Figure

    epochs = len(history["loss"])
    total_steps = training_loss["step"]
    ends = [total_steps * (epoch + 1) / epochs for epoch in range(epochs)]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    losses, scores = figure.subplots(1, 2)
    losses.plot(
        training_loss["steps"], training_loss["losses"], color="0.6", label="training"
    )
    for name, values in history.items():
        if name.endswith("_loss"):
            split = name.removesuffix("_loss")
            losses.plot(ends[: len(values)], values, marker="o", label=split)
        elif name.partition("_")[0] == "validation":
            scores.plot(
                ends[: len(values)],
                [100 * value for value in values],
                marker="o",
                linewidth=2.5 if name == main_metric else 1,
                label=name.replace("_", " "),
            )
    for axis, label in ((losses, "loss"), (scores, "validation score, %")):
        axis.set(xlabel="step", ylabel=label)
        fit_axes(axis)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.suptitle(title)
    with new_file(path) as written:
        figure.savefig(written, dpi=120, format="png")
