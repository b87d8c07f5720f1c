"""The token table of a BERT as vectors of word pieces."""

import dataclasses
import os
from typing import ClassVar

import numpy as np

from keras_recbert.convert.checkpoint import CheckpointError
from keras_recbert.convert.open_checkpoint import open_checkpoint
from keras_recbert.core.checks import check_positive
from keras_recbert.hub.names import is_hub_name
from keras_recbert.text.word_vectors import WordVectors

TOKENS = "embeddings/token_embedding/embeddings"


@dataclasses.dataclass(frozen=True)
class TokenTable(WordVectors):
    """Word pieces of a BERT and their rows, and how it folds texts.

    Args:
        words, vectors, source: as for `WordVectors`; all pieces, in the order of ids.
        lowercase, strip_accents: as for `WordPieceTokenizer`; None where the BERT's
            files do not say.
    """

    channels: ClassVar[str] = "non_static"  # one trained table, as a BERT has
    lowercase: bool | None = None
    strip_accents: bool | None = None

    def project(self, vector_dim):
        """The table at another width: its first principal components.

        Args:
            vector_dim: int, at most the width of the table, which leaves it as it is.

        Returns:
            `TokenTable`.

        Raises:
            ValueError: for none, or more than the table has.
        """
        self.check_width(vector_dim)
        if vector_dim == self.vector_dim:
            return self
        vectors = principal_components(self.vectors, vector_dim)
        return dataclasses.replace(self, vectors=vectors)

    def check_width(self, vector_dim):
        """Raises `ValueError` for a width that the table cannot be projected to."""
        check_positive(vector_dim=vector_dim)
        if vector_dim > self.vector_dim:
            raise ValueError(
                f"`vector_dim` must be at most {self.vector_dim}, the width of the "
                f"token table of {self.source}. Received: vector_dim={vector_dim}."
            )


def is_folder(vectors):
    """Whether `vectors` are those of a BERT by its folder or hub, not of a file."""
    is_path = isinstance(vectors, (str, os.PathLike))
    return is_path and (os.path.isdir(vectors) or is_hub_name(vectors))


def read_token_table(folder):
    """Reads vocabulary and token table of a BERT.

    Args:
        folder: str or path, as for `open_checkpoint`.

    Returns:
        `TokenTable`.

    Raises:
        FileNotFoundError, CheckpointError: as `open_checkpoint`; for a BERT without a
            vocabulary.
    """
    checkpoint = open_checkpoint(folder)
    if checkpoint.vocabulary is None:
        raise CheckpointError(
            f"{folder} has no vocabulary, so its vectors have no word pieces. Put the "
            "vocab.txt that it was trained with into the folder."
        )
    words = tuple(checkpoint.vocabulary)
    return TokenTable(
        words,
        np.asarray(checkpoint.weight(TOKENS), "float32")[: len(words)],
        os.fspath(folder),
        checkpoint.lowercase,
        checkpoint.strip_accents,
    )


def principal_components(table, dim):
    """Rows on the axes along which they differ most.

    Args:
        table: float array `(num_rows, width)`.
        dim: int, at most `width`.

    Returns:
        float32 array `(num_rows, dim)`, the axis of the largest variance first.
    """
    centred = table - table.mean(axis=0, dtype="float64")
    _, axes = np.linalg.eigh(centred.T @ centred)  # by rising variance
    axes = axes[:, ::-1][:, :dim]
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(dim)])  # signs are arbitrary
    return (centred @ axes).astype("float32")
