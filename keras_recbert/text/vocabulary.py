"""WordPiece vocabularies: read, check, learn from text, write."""

import collections
import functools
import os

from keras_recbert.core.checks import check_integer
from keras_recbert.core.folders import new_file
from keras_recbert.core.lines import (
    MAX_LINE_BYTES,
    decode_line,
    read_lines,
)

REQUIRED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
SPECIAL_TOKENS = (*REQUIRED_TOKENS, "[MASK]")
_SMALLEST = len(SPECIAL_TOKENS) + 2  # and two pieces for one character
_MAX_PIECE_BYTES = 256  # limit of TF Text's FastWordpieceTokenizer


def load_vocabulary(path):
    """Reads a `vocab.txt`: UTF-8, one word piece a line, the id is the line's index.

    A piece is the whole line: spaces such as U+00A0 or U+2028 are part of it.

    Args:
        path: str or path.

    Returns:
        list of str.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is a directory, is empty, is not UTF-8, has an empty line or
            a duplicate, or lacks a token in `REQUIRED_TOKENS`.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        raise ValueError(
            f"`path` must be a vocabulary file. {path} is a directory. "
            f"Try {os.path.join(path, 'vocab.txt')}."
        )
    if not os.path.isfile(path):
        raise FileNotFoundError(f"No vocabulary file at {path}.")
    with open(path, "rb") as file:
        content = file.read()
    if not content.strip():
        raise ValueError(f"{path} is empty. It must hold one word piece a line.")
    content = content.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    vocabulary = []
    for number, line in enumerate(lines, start=1):
        try:
            vocabulary.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 ({error}).") from None
    return check_vocabulary(vocabulary, source=path, first=1, unit="line")


def check_vocabulary(vocabulary, source="`vocabulary`", first=0, unit="index"):
    """Checks that a list of word pieces can serve as a vocabulary.

    Args:
        vocabulary: list of str.
        source: str. What error messages call it.
        first: int. Number of the first piece in error messages.
        unit: str. What error messages call the number.

    Returns:
        list of str, the same pieces.

    Raises:
        TypeError: if a piece is not a str.
        ValueError: if it is empty, has an empty, repeated or unusable piece, or lacks
            a token in `REQUIRED_TOKENS`.
    """
    vocabulary = list(vocabulary)
    if not vocabulary:
        raise ValueError(f"{source} is empty. It must hold the word pieces.")
    seen = {}
    for number, piece in enumerate(vocabulary, start=first):
        if not isinstance(piece, str):
            raise TypeError(
                f"{source}, {unit} {number}: word pieces must be str. "
                f"Received: {piece!r} of type {type(piece).__name__}."
            )
        if not piece:
            raise ValueError(
                f"{source}, {unit} {number}: empty word piece. Remove it; mind that "
                "the ids of all later pieces then change."
            )
        if not _is_usable(piece):
            raise ValueError(
                f"{source}, {unit} {number}: a word piece must be at most "
                f"{_MAX_PIECE_BYTES} bytes of UTF-8 without NUL. Received: "
                f"{piece[:40]!r}, {len(piece)} characters. Is this a vocabulary?"
            )
        if piece in seen:
            raise ValueError(
                f"{source}, {unit} {number}: {piece!r} is there already, at {unit} "
                f"{seen[piece]}. Each word piece must occur once."
            )
        seen[piece] = number
    missing = [token for token in REQUIRED_TOKENS if token not in seen]
    if missing:
        raise ValueError(
            f"{source} lacks {', '.join(missing)}. A vocabulary needs "
            f"{', '.join(REQUIRED_TOKENS)}."
        )
    return vocabulary


def _is_usable(piece):
    try:
        size = len(piece.encode("utf-8"))
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return size <= _MAX_PIECE_BYTES and "\0" not in piece


def save_vocabulary(vocabulary, path):
    """Writes a `vocab.txt`; the file appears whole or not at all.

    Args:
        vocabulary: list of str.
        path: str or path. Its directory must exist.

    Raises:
        ValueError: if `vocabulary` is unusable or a piece holds a line feed.
        OSError: if the file cannot be written.
    """
    vocabulary = check_vocabulary(vocabulary)
    for index, piece in enumerate(vocabulary):
        if "\n" in piece or piece.endswith("\r"):
            raise ValueError(
                f"`vocabulary`, index {index}: {piece!r} holds a line end, which a "
                "vocabulary file cannot express."
            )
    with (
        new_file(path) as written,
        written.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(piece + "\n" for piece in vocabulary)


def learn_vocabulary(
    texts,
    vocabulary_size,
    lowercase=True,
    strip_accents=None,
    min_frequency=2,
    max_characters=1000,
):
    """Learns word pieces from text with TF Text's WordPiece learner.

    Words are counted after the normalisation and splitting that
    `WordPieceTokenizer` does, so what is learned is what will be looked up. The
    result depends on the word counts only, not on the order of the texts. TF Text's
    learner finds whole words and word ends, seldom a stem that is no word by itself
    (https://github.com/tensorflow/text/issues/583).

    Args:
        texts: iterable of str or bytes, or a `tf.data.Dataset` of strings, batched
            or not.
        vocabulary_size: int. The most pieces to return, special tokens included; the
            learner stops within 5 % below it, or where the text has no more.
        lowercase: bool. True for an uncased vocabulary.
        strip_accents: bool or None. None means the value of `lowercase`.
        min_frequency: int. Pieces seen less often are not learned.
        max_characters: int. The most frequent characters that get pieces of their
            own; words with others are left out.

    Returns:
        list of str: `SPECIAL_TOKENS`, single characters, then pieces by frequency.

    Raises:
        ValueError: if the texts hold no word, none that occurs `min_frequency` times,
            or if `vocabulary_size` is too small for the characters.
        TypeError: if an item of `texts` is not a string.
    """
    from tensorflow_text.tools.wordpiece_vocab import (
        wordpiece_tokenizer_learner_lib as learner,
    )

    if isinstance(vocabulary_size, int) and vocabulary_size < _SMALLEST:
        raise ValueError(
            f"`vocabulary_size` must be at least {_SMALLEST}. "
            f"Received: vocabulary_size={vocabulary_size}."
        )
    if not isinstance(vocabulary_size, int):
        raise TypeError(
            "`vocabulary_size` must be an integer. "
            f"Received: vocabulary_size={vocabulary_size!r}."
        )
    counts = count_words(texts, lowercase, strip_accents)
    frequencies = sorted(counts.values(), reverse=True)
    _check_counts(counts, vocabulary_size, min_frequency, max_characters)
    # The learner halves its way to the frequency that gives the size asked for, a
    # second or more a step on 5 MB. Every frequent word becomes a piece, so the
    # answer is near the count of the word of that rank; the whole range is searched
    # only where that guess is wrong.
    rank = min(vocabulary_size, len(frequencies)) - 1
    lower = max(min_frequency, frequencies[rank] // 2)
    for lower_thresh, upper_thresh in ((lower, 32 * lower), (min_frequency, None)):
        vocabulary = learner.learn(
            # Sorted, so that words of equal count come in one order.
            sorted(counts.items()),
            vocab_size=vocabulary_size,
            reserved_tokens=list(SPECIAL_TOKENS),
            lower_thresh=lower_thresh,
            upper_thresh=upper_thresh,
            max_unique_chars=max_characters,
            max_input_tokens=-1,
        )
        if len(vocabulary) <= vocabulary_size:
            return vocabulary
    # The learner's search ended above the size asked for. The pieces come by falling
    # frequency; those of one character must stay.
    surplus = len(vocabulary) - vocabulary_size
    for index in range(len(vocabulary) - 1, 0, -1):
        if surplus and len(vocabulary[index].removeprefix("##")) > 1:
            del vocabulary[index]
            surplus -= 1
    return vocabulary


def _check_counts(counts, vocabulary_size, min_frequency, max_characters):
    """Raises `ValueError` if no vocabulary can be learned from counts of words."""
    if not counts:
        raise ValueError("`texts` holds no word to learn a vocabulary from.")
    characters = {character for word in counts for character in word}
    num_characters = min(len(characters), max_characters)
    smallest = len(SPECIAL_TOKENS) + 2 * num_characters
    if vocabulary_size < smallest:
        raise ValueError(
            f"`vocabulary_size` must be at least {smallest}: {len(SPECIAL_TOKENS)} "
            f"special tokens, and two pieces for each of the {num_characters} "
            f"different characters. Received: vocabulary_size={vocabulary_size}. "
            "Raise it, or lower `max_characters`."
        )
    if max(counts.values()) < min_frequency:
        raise ValueError(
            f"No word of `texts` occurs {min_frequency} times. Pass more text, or "
            f"lower `min_frequency`. Received: min_frequency={min_frequency}."
        )


def learn_vocabulary_from_files(
    paths, vocabulary_size, max_line_bytes=MAX_LINE_BYTES, report=print, **kwargs
):
    """Learns word pieces from UTF-8 text files, one text a line.

    Args:
        paths: list of str or paths.
        vocabulary_size: int.
        max_line_bytes: int. The most that is read of a line.
        report: function of a str. Takes a note on lines that were longer.
        **kwargs: further arguments of `learn_vocabulary`.

    Returns:
        list of str.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is not UTF-8, or holds NUL as binary files do; and as
            `learn_vocabulary`.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    paths = [os.fspath(path) for path in paths]
    for path in paths:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"No text file at {path}.")
    check_integer(max_line_bytes=max_line_bytes)
    cut = []
    texts = _texts_of_files(paths, max_line_bytes, cut)
    vocabulary = learn_vocabulary(texts, vocabulary_size, **kwargs)
    if cut:
        report(
            f"Read {max_line_bytes:,} bytes each of {len(cut):,} longer lines (the "
            f"first is {cut[0]}). `max_line_bytes` (--max-line-bytes) reads more."
        )
    return vocabulary


def _texts_of_files(paths, max_line_bytes, cut):
    """Yields the lines of files; those that were cut are named in the list `cut`."""
    for path in paths:
        with open(path, "rb") as file:
            lines = read_lines(file, max_line_bytes)
            for number, (line, size) in enumerate(lines, start=1):
                text = decode_line(line, path, number)
                if "\0" in text:
                    raise ValueError(
                        f"{path}:{number}: NUL at position {text.index(chr(0))} of the "
                        "line, so this is a binary file or UTF-16. Give text in UTF-8: "
                        f"of UTF-16 make it with iconv -f UTF-16 -t UTF-8 {path}"
                    )
                if size > len(line):
                    cut.append(f"{path}:{number}")
                yield text


def count_words(texts, lowercase=True, strip_accents=None):
    """Counts the words of texts, after normalisation.

    Args:
        texts: iterable of str or bytes, or a `tf.data.Dataset` of strings.
        lowercase: bool.
        strip_accents: bool or None. None means the value of `lowercase`.

    Returns:
        `collections.Counter` of str.

    Raises:
        TypeError: if an item is not a string, or `texts` is one string.
    """
    from keras_recbert.text.string_tensor import to_string_tensor

    words_of = _words_as_graph(lowercase, strip_accents)
    counts = collections.Counter()
    start = 0
    for batch in batches_of_texts(texts):
        batch = to_string_tensor(batch, f"texts[{start}:]" if start else "texts")
        counts.update(words_of(batch).numpy().tolist())
        start += len(batch)
    return collections.Counter(
        {word.decode("utf-8"): count for word, count in counts.items()}
    )


@functools.cache  # tracing takes longer than the words of a small corpus
def _words_as_graph(lowercase, strip_accents):
    """Traced function from texts `(batch_size,)` to all their words `(num_words,)`."""
    import tensorflow as tf

    from keras_recbert.text.split_words import split_words

    def words_of(batch):
        return split_words(batch, lowercase, strip_accents).flat_values

    strings = tf.TensorSpec([None], tf.string)
    return tf.function(words_of, input_signature=[strings], autograph=False)


def batches_of_texts(texts, batch_size=1024, batch_characters=1 << 20):
    """Yields batches of texts: a split one takes many times the memory of its text.

    Args:
        texts: as for `count_words`.
        batch_size: int. The most texts of a batch.
        batch_characters: int. A batch ends with the text that makes it so long.

    Raises:
        TypeError: as `count_words`.
    """
    import tensorflow as tf

    if isinstance(texts, (str, bytes)):
        raise TypeError(
            "`texts` must be an iterable of strings. Received one string: pass "
            "[text], or use learn_vocabulary_from_files for a path."
        )
    if isinstance(texts, tf.data.Dataset):
        spec = texts.element_spec
        if not isinstance(spec, tf.TensorSpec) or spec.dtype != tf.string:
            raise TypeError(
                "`texts` must be a dataset of strings. Received elements of "
                f"{spec}. Select the text column with dataset.map first."
            )
        if spec.shape.rank == 0:
            texts = texts.batch(batch_size)
        yield from texts
        return
    batch, characters = [], 0
    for text in texts:
        batch.append(text)
        characters += len(text) if isinstance(text, (str, bytes)) else 0
        if len(batch) == batch_size or characters >= batch_characters:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
