"""A report on a model that gives a text any number of labels."""

import pathlib

import numpy as np

from keras_recbert.core.extras import check_installed
from keras_recbert.train.report_tables import escape, markdown_table, write_text


def write_multilabel_report(folder, split, examples, logits, label_names):
    """Writes `report_{split}.md`: scores of all labels together and of each.

    A text has the labels whose probability is at least 0.5. The baseline gives each
    text the labels that most texts of the split have not: none.

    Args:
        folder: path.
        split: str.
        examples: `Examples` whose target `label` is float32 `(num_examples,
            num_labels)` of 0 and 1.
        logits: float array of their shape.
        label_names: sequence of str.

    Returns:
        dict of `{split}_{score}` to float: `micro_f1`, `macro_f1`, and `accuracy`, the
        part of the texts all of whose labels are right; and `majority_accuracy`, that
        of no label for any text.
    """
    check_installed("A report", "train", "sklearn")
    from sklearn.metrics import (
        accuracy_score,
        f1_score,
        precision_recall_fscore_support,
    )

    labels = np.asarray(examples.targets["label"])
    found = (np.asarray(logits) >= 0).astype(int)
    scores = {
        "micro_f1": f1_score(labels, found, average="micro", zero_division=0.0),
        "macro_f1": f1_score(labels, found, average="macro", zero_division=0.0),
        "accuracy": accuracy_score(labels, found),
        "majority_accuracy": float(np.mean(~labels.astype(bool).any(axis=1))),
    }
    columns = precision_recall_fscore_support(
        labels, found, average=None, zero_division=np.nan
    )
    rows = [
        (escape(name), *map(float, (precision, recall, f1)), f"{support:,}")
        for name, precision, recall, f1, support in zip(
            label_names, *columns, strict=True
        )
    ]
    text = (
        f"# {split}: {len(labels):,} examples\n\n"
        + markdown_table(
            ("score", "value"),
            [(name.replace("_", " "), float(value)) for name, value in scores.items()],
        )
        + "\nAccuracy counts texts all of whose labels are right; majority accuracy is "
        "that of no label for any text.\n\n## Labels\n\n"
        + markdown_table(("label", "precision", "recall", "F1", "support"), rows)
    )
    write_text(pathlib.Path(folder) / f"report_{split}.md", text)
    return {f"{split}_{name}": float(value) for name, value in scores.items()}
