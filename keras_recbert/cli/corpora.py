"""Commands that read text: prepare, vocabulary."""

import dataclasses
import shlex
from typing import Annotated

from tyro.conf import Positional, arg

from keras_recbert.config import PrepareConfig
from keras_recbert.core.folders import check_file
from keras_recbert.core.lines import MAX_LINE_BYTES


def prepare(config: Annotated[PrepareConfig, arg(name="")]):
    """Cuts documents into word pieces and writes them as a corpus to pre-train on.

    `--recipe FILE` takes the options from a YAML file; options beside it replace
    the file's.
    """
    from keras_recbert.data.prepare import prepare

    written = prepare(**dataclasses.asdict(config))
    counts = written["counts"]
    for name, count in counts.items():
        print(f"{name.replace('_', ' '):<17}{count:>15,}")
    if counts["bad_lines"]:
        print("Bad lines hold bytes that are not UTF-8; those bytes are left out.")
    if counts["long_lines"]:
        print(
            f"Long lines have more than {config.max_line_bytes:,} bytes "
            "(--max-line-bytes). Of text their beginning is kept, of JSON nothing."
        )
    if config.vocabulary_size is not None:
        _print_size(written["vocabulary"]["size"], config.vocabulary_size)
    measured = written["measured"]
    print(
        f"{measured['tokens_per_second']:,} word pieces a second, "
        f"{measured['seconds']:.1f} seconds. Train on it: recbert pretrain --corpus "
        f"{shlex.quote(config.output_dir)}"
    )


def vocabulary(
    corpus: Annotated[Positional[list[str]], arg(metavar="FILE [FILE ...]")],
    output: str = "vocab.txt",
    size: int = 8000,
    lowercase: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
):
    """Learns a WordPiece vocabulary from text files.

    Args:
        corpus: Text files in UTF-8, one text a line.
        output: The vocab.txt to write.
        size: Number of word pieces.
        lowercase: Lower-case the text and strip accents.
        max_line_bytes: The most that is read of a line; longer ones are counted.
    """
    from keras_recbert.text.vocabulary import (
        learn_vocabulary_from_files,
        save_vocabulary,
    )

    check_file(output)
    learned = learn_vocabulary_from_files(
        corpus, size, max_line_bytes=max_line_bytes, lowercase=lowercase
    )
    save_vocabulary(learned, output)
    print(f"Wrote {len(learned):,} word pieces to {output}.")
    _print_size(len(learned), size)


def _print_size(learned, asked):
    """Says that a vocabulary is smaller than asked, and why."""
    if learned < asked:
        print(
            f"Learned {learned:,} of {asked:,} word pieces: the learner stops within "
            "5 % below, or where no other piece occurs twice in the text."
        )
