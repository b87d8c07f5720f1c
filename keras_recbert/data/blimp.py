"""BLiMP's minimal pairs (Warstadt et al. 2020) as sentences to accept or not."""

import tarfile

from keras_recbert.core.lines import decode_line, read_lines
from keras_recbert.data.examples import Examples
from keras_recbert.data.json_values import UniqueIds, text_of
from keras_recbert.data.rows import read_object

SENTENCES = {"sentence_bad": 0, "sentence_good": 1}  # to its label, as in CoLA
HELD_OUT = "9"  # last digit of the pairs of the validation split


def read_blimp(path, split) -> Examples:
    """Reads the sentences of all paradigms.

    A pair gives two examples. Those whose number ends in 9 are the validation split,
    which BLiMP itself, a test of language models, does not have: a tenth of each
    paradigm, and no pair on both sides.

    Args:
        path: a tar archive, compressed or not, with a file of JSON lines a paradigm,
            such as `tar czf blimp.tar.gz blimp/data` makes of the published folder.
        split: str. `"train"` or `"validation"`.

    Returns:
        `Examples` of the field `text` and the target `label`: 0 for unacceptable, 1
        for acceptable. Their ids are such as `"adjunct_island-17-good"`.

    Raises:
        ValueError: for what is no such archive, a broken row, one that lacks a value,
            or a pair that stands twice; names archive, file and line.
    """
    texts, labels, ids = [], [], UniqueIds()
    for where, row in _rows(path):
        paradigm, pair = (text_of(where, row, name) for name in ("UID", "pairID"))
        for name, label in SENTENCES.items():
            text = text_of(where, row, name)
            if not text.strip():
                raise ValueError(f"{where}: {name!r} is empty.")
            ids.add(where, f"{paradigm}-{pair}-{name.removeprefix('sentence_')}")
            texts.append(text)
            labels.append(label)
    ids = ids.list()
    chosen = [
        place
        for place, id in enumerate(ids)
        if id.split("-")[-2].endswith(HELD_OUT) == (split == "validation")
    ]
    if not chosen:
        raise ValueError(f"{path} has no pair of the {split} split.")
    return Examples(
        {"text": [texts[place] for place in chosen]},
        {"label": [labels[place] for place in chosen]},
        [ids[place] for place in chosen],
    )


def _rows(path):
    """Yields the place of each row, and the row, a dict; files in their order."""
    try:
        with tarfile.open(path) as archive:
            files = [one for one in archive.getmembers() if one.isfile()]
            for member in sorted(files, key=lambda one: one.name):
                if not member.name.endswith(".jsonl"):
                    continue
                where = f"{path}, {member.name}"
                with archive.extractfile(member) as file:
                    for number, (line, _) in enumerate(read_lines(file), 1):
                        text = decode_line(line, where, number)
                        if text.strip():
                            place = f"{where}:{number}"
                            yield place, read_object(place, text)
    except tarfile.TarError as error:
        raise ValueError(
            f"{path} is no tar archive that can be read. Make it of BLiMP's "
            "folder of JSON lines: tar czf blimp.tar.gz blimp/data."
        ) from error
