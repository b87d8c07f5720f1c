"""Files of SentEval's probing tasks: all splits in one, a sentence a line."""

from keras_recbert.core.lines import decode_line, read_lines
from keras_recbert.data.examples import Examples

# What the first column calls the splits.
PARTITIONS = {"train": "tr", "validation": "va", "test": "te"}


def read_senteval(path, split) -> Examples:
    """Reads one split of a probing task.

    A line is `tr`, `va` or `te`, a tab, the label, a tab, and the sentence; columns
    between the last two are skipped, as SentEval's README has it ("at least" three).

    Args:
        path: a file in UTF-8.
        split: str. `"train"`, `"validation"` or `"test"`.

    Returns:
        `Examples` of the field `text` and the target `label`, lists of str. Their ids
        are the numbers of their lines.

    Raises:
        ValueError: where the file is not UTF-8, a column is missing or empty, the
            first is another word, a label is on no line of the train split, or there
            is no line of the split; names file and line.
    """
    texts, labels, ids, known = [], [], [], set()
    with open(path, "rb") as file:
        for number, (line, size) in enumerate(read_lines(file), 1):
            if size > len(line):
                raise ValueError(
                    f"{path}:{number}: a line of {size:,} bytes is no sentence. Look "
                    "for a line feed that is missing."
                )
            columns = decode_line(line, path, number).split("\t")
            if columns == [""]:
                continue
            _check(path, number, columns)
            if columns[0] == PARTITIONS["train"]:
                known.add(columns[1])
            if columns[0] == PARTITIONS[split]:
                labels.append(columns[1])
                texts.append(columns[-1])
                ids.append(str(number))
    if not ids:
        raise ValueError(
            f"{path} has no line of the {split} split: none begins with "
            f"{PARTITIONS[split]!r}."
        )
    for number, label in zip(ids, labels, strict=True):
        if known and label not in known:
            raise ValueError(
                f"{path}:{number}: no line of the train split has the label {label!r}. "
                f"Valid: {', '.join(sorted(known))}."
            )
    return Examples({"text": texts}, {"label": labels}, ids)


def _check(path, number, columns):
    valid = PARTITIONS.values()
    if len(columns) < 3 or columns[0] not in valid:
        raise ValueError(
            f"{path}:{number}: expected {', '.join(valid)} in the first column, a "
            "label, and a sentence, separated by tabs. Received: "
            f"{len(columns)} columns, {columns[0]!r} in the first."
        )
    for name, value in (("label", columns[1]), ("sentence", columns[-1])):
        if not value.strip():
            raise ValueError(f"{path}:{number}: the {name} is empty.")
