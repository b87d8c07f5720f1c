"""How a model reads texts that have more word pieces than a row."""

import keras

from keras_recbert.heads.window_rows import WINDOW_POOLINGS, WindowPooling, WindowRows
from keras_recbert.text.window_preprocessor import WindowPreprocessor

LONG_TEXTS = ("truncate", "windows")
# The packer of the heads that may read windows.
PLAIN_PACKER = "TextPreprocessor"


def window_packer(packer, long_texts, what):
    """The class of the preprocessor of a task, by how it reads long texts.

    Args:
        packer: str. Class of the preprocessor of its heads.
        long_texts: one of `LONG_TEXTS`; None for the first.
        what: str. The task, for messages.

    Returns:
        str.

    Raises:
        ValueError: if `long_texts` is none of these, or its heads have another
            preprocessor than that of texts and pairs.
    """
    if long_texts not in (None, *LONG_TEXTS):
        raise ValueError(
            f"`long_texts` must be one of {', '.join(map(repr, LONG_TEXTS))}. "
            f"Received: long_texts={long_texts!r}."
        )
    if long_texts != "windows":
        return packer
    if packer != PLAIN_PACKER:
        raise ValueError(
            "long_texts='windows' is for heads that read a text or a pair of texts, "
            "such as task='classifier', 'regressor' or 'multilabel_classifier'. "
            f"Received: {what}, whose preprocessor is a {packer}. Leave `long_texts` "
            "out."
        )
    return WindowPreprocessor.__name__


def check_long_texts(head, preprocessor, long_texts, window_pooling):
    """Raises `ValueError` for arguments of a model that do not fit each other.

    Args:
        head: `Head` or `NamedHeads`.
        preprocessor: `Packer` or None.
        long_texts, window_pooling: as for `TextModel`.
    """
    window_packer(head.packer, long_texts, f"task={head.task!r}")
    if window_pooling not in (None, *WINDOW_POOLINGS):
        raise ValueError(
            "`window_pooling` must be one of "
            f"{', '.join(map(repr, WINDOW_POOLINGS))}. "
            f"Received: window_pooling={window_pooling!r}."
        )
    reads_windows = long_texts == "windows"
    if window_pooling is not None and not reads_windows:
        raise ValueError(
            "`window_pooling` joins the windows of a text. Received: "
            f"window_pooling={window_pooling!r}, long_texts={long_texts!r}. Add "
            "long_texts='windows', or leave it out."
        )
    tokens = [name for name, one in head.heads.items() if one.reads == "tokens"]
    if reads_windows and tokens:
        raise ValueError(
            "long_texts='windows' joins one vector of each window, and "
            f"{', '.join(tokens)} reads all tokens. Leave `long_texts` out."
        )
    makes_windows = isinstance(preprocessor, WindowPreprocessor)
    if preprocessor is not None and makes_windows is not reads_windows:
        raise ValueError(
            "A WindowPreprocessor belongs to a model with long_texts='windows', and no "
            f"other does. Received: a {type(preprocessor).__name__}, "
            f"long_texts={long_texts!r}."
        )


def read_windows(encoder, dropout, window_pooling):
    """Inputs of a model of windows, and what joins the windows.

    Args:
        encoder: `Encoder`.
        dropout: layer between what is read and the heads.
        window_pooling: `"mean"` or `"max"`.

    Returns:
        Tuple of two dicts of Keras tensors: inputs `(batch_size, num_windows,
        sequence_length)` and the rows that the encoder reads; and a function from what
        a head reads of these rows, `(num_rows, dim)`, to what it makes logits of,
        `(batch_size, dim)`.
    """
    inputs = {
        name: keras.Input((None, None), dtype=one.dtype, name=name)
        for name, one in encoder.input.items()
    }
    mask = inputs["padding_mask"]
    rows = {
        name: WindowRows(name=f"{name}_of_rows")(one, mask)
        for name, one in inputs.items()
    }
    pool = WindowPooling(window_pooling, dtype="float32", name="window_pooling")
    return inputs, rows, lambda read: dropout(pool(read, mask))
