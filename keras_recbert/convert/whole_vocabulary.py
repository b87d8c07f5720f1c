"""Tells a vocabulary file that was cut from one with fewer pieces than embeddings."""

import itertools

from keras_recbert.convert.checkpoint import CheckpointError

# Tables of embeddings are padded to a multiple of one of these: 8 for tensor cores, up
# to 1024 for Megatron's 128 on each of 8 devices.
PADDINGS = tuple(2**power for power in range(3, 11))


def check_whole(vocabulary, rows, file, sizes_from, num_added=0):
    """Checks that a vocabulary has as many pieces as there are embeddings.

    Args:
        vocabulary: sequence of str.
        rows: int. Rows of the table of embeddings.
        file: path of the `vocab.txt`.
        sizes_from: str. File that says how many rows there are.
        num_added: int. Pieces that stand elsewhere in the checkpoint.

    Raises:
        CheckpointError: if there are fewer, and the rest is no padding.
    """
    found = len(vocabulary) + num_added
    padded = any(rows % size == 0 and rows - found < size for size in PADDINGS)
    if found >= rows or padded:  # more is an error of the checkpoint as a whole
        return
    raise CheckpointError(
        f"{file} holds {len(vocabulary):,} word pieces, and there are embeddings for "
        f"{rows:,} ({sizes_from}). Was the file cut short? Get it again. If it is "
        "whole, append a line of its own, such as [unused1], for each of the "
        f"{rows - found:,} others: the ids stay the same."
    )


def check_equal(vocabulary, other, file, other_file):
    """Checks that two files hold the same vocabulary.

    Args:
        vocabulary, other: sequences of str.
        file, other_file: paths, for the message.

    Raises:
        CheckpointError: if they differ.
    """
    pairs = enumerate(itertools.zip_longest(vocabulary, other))
    different = next(((i, a, b) for i, (a, b) in pairs if a != b), None)
    if different is None:
        return
    index, piece, other_piece = different
    raise CheckpointError(
        f"{file} and {other_file} hold different word pieces: {len(vocabulary):,} and "
        f"{len(other):,}, and number {index} is {piece!r} in the first and "
        f"{other_piece!r} in the second. Get the wrong one again, or move it away: one "
        "of them is enough."
    )
