"""Commands that read text: prepare, vocabulary."""

import shlex
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from keras_recbert.core.lines import MAX_LINE_BYTES


def prepare(
    inputs: Annotated[Positional[list[str]], arg(metavar="INPUT [INPUT ...]")],
    output_dir: str,
    vocabulary: str | None = None,
    vocabulary_size: int | None = None,
    lowercase: bool = True,
    strip_accents: bool | None = None,
    format: Literal["text", "jsonl", "squad", "wikitext"] | None = None,
    documents: Literal["blocks", "files"] = "blocks",
    sentences: Literal["split", "lines"] = "split",
    text_field: str = "text",
    split: str = "train",
    tfds_data_dir: str | None = None,
    num_shards: int = 16,
    num_workers: int = 1,
    beam_options: str = "",
    overwrite: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
):
    """Cuts documents into word pieces and writes them as a corpus to pre-train on.

    Args:
        inputs: Files, folders, patterns, or tfds: and a name. Text (.txt), JSON lines
            (.jsonl), SQuAD (.json) and WikiText (.tokens), also .gz and .bz2.
        output_dir: Folder to write.
        vocabulary: A vocab.txt.
        vocabulary_size: Learn a vocabulary of so many pieces from the documents.
        lowercase: Lower-case the text and strip accents.
        strip_accents: By default as lowercase.
        format: What the files hold; by default their endings say it.
        documents: blocks, text files hold documents with blank lines between; or
            files, each is one.
        sentences: split lines into sentences, or take lines as sentences.
        text_field: Field of JSON lines or of a data set that holds the text.
        split: Split of a data set.
        tfds_data_dir: Where TensorFlow Datasets keeps its files.
        num_shards: Files to write.
        num_workers: Processes; the files are the same.
        beam_options: Options of Apache Beam, after an equals sign:
            --beam-options='--runner=FlinkRunner ...'.
        overwrite: Replace a corpus that is there.
        max_line_bytes: The most that is read of a line; longer ones are counted.
    """
    from keras_recbert.data.prepare import prepare

    options = dict(locals())
    del options["prepare"]
    written = prepare(**options)
    counts = written["counts"]
    for name, count in counts.items():
        print(f"{name.replace('_', ' '):<17}{count:>15,}")
    if counts["bad_lines"]:
        print("Bad lines hold bytes that are not UTF-8; those bytes are left out.")
    if counts["long_lines"]:
        print(
            f"Long lines have more than {max_line_bytes:,} bytes (--max-line-bytes). "
            "Of text their beginning is kept, of JSON nothing."
        )
    if vocabulary_size is not None:
        _print_size(written["vocabulary"]["size"], vocabulary_size)
    measured = written["measured"]
    print(
        f"{measured['tokens_per_second']:,} word pieces a second, "
        f"{measured['seconds']:.1f} seconds. Train on it: recbert pretrain --corpus "
        f"{shlex.quote(output_dir)}"
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
    from keras_recbert.core.folders import check_file
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
