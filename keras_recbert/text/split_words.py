"""BERT's basic tokenization, in graph: clean, fold, split into words."""

import tensorflow as tf
import tensorflow_text as tf_text

from keras_recbert.core.unicode_classes import (
    CJK,
    CONTROL,
    NONSPACING_MARK,
    PUNCTUATION,
    WHITESPACE,
    regex_class,
)
from keras_recbert.text.bounded_text import bound_marks, keep_words

_DROPPED = f"[{regex_class(CONTROL)}]+"
_DROPPED_WITH_ACCENTS = f"[{regex_class(CONTROL, NONSPACING_MARK)}]+"
_SINGLE = f"[{regex_class(PUNCTUATION, CJK)}]"
_DELIMITER = f"[{regex_class(WHITESPACE)}]+|{_SINGLE}"


def split_words(texts, lowercase=True, strip_accents=None, max_words=None):
    """Splits texts into the words that WordPiece then cuts into pieces.

    The rules are those of BERT's `BasicTokenizer` (Devlin et al. 2018), with the
    Unicode tables of Hugging Face `tokenizers` (see `unicode_classes`): control
    characters are dropped, white space separates, every punctuation character and
    every CJK ideograph is a word; uncased text is decomposed (NFD), loses its
    nonspacing marks and is lower-cased character by character. Bytes that are not
    UTF-8 are dropped, as `bytes.decode("utf-8", "replace")` and BERT's dropping of
    U+FFFD would do.

    TF Text's own `BertTokenizer` is not used: it folds case with compatibility
    decomposition, which turns for example a full-width tilde into an ASCII one.

    Args:
        texts: string tensor, `(batch_size,)`.
        lowercase: bool.
        strip_accents: bool or None. None means the value of `lowercase`.
        max_words: int or None. Texts of more bytes are read to their word of this
            number, so that each takes a bounded time beyond reading its characters.

    Returns:
        string `tf.RaggedTensor`, `(batch_size, None)`.
    """
    texts = normalize(texts, lowercase, strip_accents, max_words)
    return tf_text.regex_split(texts, _DELIMITER, _SINGLE)


def split_words_with_offsets(texts, lowercase=True, strip_accents=None, max_words=None):
    """As `split_words`, and where each word begins in the normalized text.

    Args:
        texts, lowercase, strip_accents, max_words: as for `split_words`.

    Returns:
        Tuple of the words, string `tf.RaggedTensor` `(batch_size, None)`, and of the
        byte of the normalized text at which each begins, int64 of the same shape.
    """
    texts = normalize(texts, lowercase, strip_accents, max_words)
    words, begins, _ = tf_text.regex_split_with_offsets(texts, _DELIMITER, _SINGLE)
    return words, begins


def normalize(texts, lowercase=True, strip_accents=None, max_words=None):
    """Cleans and folds texts, character by character.

    Args:
        texts, lowercase, strip_accents, max_words: as for `split_words`.

    Returns:
        string tensor of valid UTF-8, `(batch_size,)`. Up to the last word that is read
        it is what its characters give one by one, but for the order of combining marks
        that stay.
    """
    if strip_accents is None:
        strip_accents = lowercase
    # Repairs invalid UTF-8 first: the later operations would each treat it
    # differently.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    if strip_accents:
        texts = bound_marks(texts)
        texts = tf_text.normalize_utf8(texts, "NFD")
        texts = tf.strings.regex_replace(texts, _DROPPED_WITH_ACCENTS, "")
    else:
        texts = tf.strings.regex_replace(texts, _DROPPED, "")
    if max_words is not None:
        texts = keep_words(texts, max_words)
    if lowercase:
        # ASCII first: the Unicode operation obeys the locale of the process, and a
        # Turkish one would turn "I" into a dotless i. It also lowers a sigma by its
        # context, where BERT looks at one character at a time.
        texts = tf.strings.lower(texts)
        texts = tf.strings.regex_replace(texts, "Σ", "σ")
        texts = tf.strings.lower(texts, encoding="utf-8")
    return texts
