"""In-graph WordPiece tokenizer with the ids of BERT's reference tokenizers."""

import os
import re
import reprlib

import keras
import tensorflow as tf
import tensorflow_text as tf_text

from keras_recbert.text.offsets import original_offsets
from keras_recbert.text.split_words import split_words, split_words_with_offsets
from keras_recbert.text.string_tensor import to_string_tensor
from keras_recbert.text.vocabulary import check_vocabulary, load_vocabulary

MAX_CHARACTERS_PER_WORD = 100  # longer words are [UNK]; BERT's own limit
MASK = "[MASK]"
# Stands for it while texts are split: a punctuation mark that nobody writes, the
# editorial coronis, of which splitting makes a word.
_MASK_SIGN = "\u2e0e"


class _Pieces:
    """Word pieces, and the id of each, where Keras does not look.

    It looks through each tuple and dict of a layer for layers: of a BERT's vocabulary
    that took half of the time in which a tokenizer is made.

    Args:
        in_order: tuple of str.
    """

    def __init__(self, in_order):
        self.in_order = in_order
        self.ids = {piece: index for index, piece in enumerate(in_order)}


@keras.saving.register_keras_serializable("keras_recbert")
class WordPieceTokenizer(keras.layers.Layer):
    """Cuts texts into the ids of BERT's word pieces.

    Ids equal those of Hugging Face's `BertTokenizer` with `split_special_tokens=True`
    (the tests compare them on real text and on every code point). That option is the
    difference to its default: here the characters "[SEP]" in a text are three words
    like any others, so nobody who types text can place a special token.

    Bytes that are not UTF-8, NUL and other control characters are dropped. A text
    without words gives an empty row. A word longer than 100 characters is `[UNK]`.

    Args:
        vocabulary: str, path or list of str. Path of a `vocab.txt`, or its pieces.
            `[PAD]`, `[UNK]`, `[CLS]` and `[SEP]` must be among them.
        lowercase: bool. True for uncased vocabularies.
        strip_accents: bool or None. None means the value of `lowercase`.
        read_masks: bool. Whether "[MASK]" in a text is that piece, as in texts that
            `keras_recbert.data.augment` has masked; `[UNK]` where the vocabulary has
            none.

    Call arguments:
        texts: string tensor `(batch_size,)`, or a str or a list of str.
        max_words: int or None. Of a text of more bytes only so many words are read;
            a row then has as many ids or more, and begins as that of the whole text.

    Returns:
        int32 `tf.RaggedTensor`, `(batch_size, None)`, without special tokens.

    Raises:
        ValueError: if the vocabulary is unusable.
        TypeError: if `texts` does not hold strings.

    Example:

    ```python
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "wind", "##mill", "##s", "."]
    WordPieceTokenizer(pieces)("Windmills.")  # [[4, 5, 6, 7]]
    ```
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        read_masks=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        # The arguments are strings: Keras must not cast them to the layer's dtype.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.supports_jit = False

        if isinstance(vocabulary, (str, os.PathLike)):
            vocabulary = load_vocabulary(vocabulary)
        else:
            vocabulary = check_vocabulary(vocabulary)
        self._pieces = _Pieces(tuple(vocabulary))
        self.lowercase = bool(lowercase)
        self.strip_accents = strip_accents
        self.read_masks = read_masks
        with tf.init_scope():
            self._wordpiece = tf_text.FastWordpieceTokenizer(
                list(self.vocabulary),
                token_out_type=tf.int32,
                # Counted in bytes there, in characters by BERT: `call` counts.
                max_bytes_per_word=4 * MAX_CHARACTERS_PER_WORD,
                no_pretokenization=True,
                support_detokenization=True,
            )
        self.built = True

    @property
    def vocabulary(self):
        """The word pieces, a tuple of str; the place of each is its id."""
        return self._pieces.in_order

    @property
    def vocabulary_size(self):
        """Number of word pieces."""
        return len(self.vocabulary)

    @property
    def pad_id(self):
        """Id of `[PAD]`."""
        return self._pieces.ids["[PAD]"]

    @property
    def unk_id(self):
        """Id of `[UNK]`."""
        return self._pieces.ids["[UNK]"]

    @property
    def cls_id(self):
        """Id of `[CLS]`."""
        return self._pieces.ids["[CLS]"]

    @property
    def sep_id(self):
        """Id of `[SEP]`."""
        return self._pieces.ids["[SEP]"]

    @property
    def mask_id(self):
        """Id of `[MASK]`, or None where the vocabulary has none."""
        return self._pieces.ids.get(MASK)

    def call(self, texts, max_words=None):
        texts = to_string_tensor(texts)
        if self.read_masks:
            texts = tf.strings.regex_replace(texts, re.escape(MASK), _MASK_SIGN)
        words = split_words(texts, self.lowercase, self.strip_accents, max_words)
        if self.read_masks:
            is_mask = words.flat_values == _MASK_SIGN
            mask = "[UNK]" if self.mask_id is None else MASK
            words = words.with_flat_values(tf.where(is_mask, mask, words.flat_values))
        ids = self._wordpiece.tokenize(_known(words)).merge_dims(-2, -1)
        return self._with_buckets(ids, words)

    def tokenize_with_offsets(self, texts, max_words=None):
        """Ids, and where in the bytes of the texts the word pieces are.

        A piece covers whole characters of its text, and the accents and other
        nonspacing marks that follow them. So bytes from the begin of a piece to the
        end of a later one are what somebody reads there, whatever was folded.

        Args:
            texts, max_words: as for a call.

        Returns:
            Tuple of three int32 `tf.RaggedTensor`, `(batch_size, None)`: ids as of a
            call, the first byte of each piece, and the one after its last.
        """
        texts = to_string_tensor(texts)
        folding = self.lowercase, self.strip_accents
        words, begins = split_words_with_offsets(texts, *folding, max_words)
        known = _known(words)
        ids, piece_begins, piece_ends = self._wordpiece.tokenize_with_offsets(known)
        # Offsets in a word that became [UNK] are those of its five characters.
        sizes = tf.strings.length(words.flat_values)
        sizes = tf.where(known.flat_values == words.flat_values, -1, sizes)
        word = piece_ends.values.value_rowids()
        sizes = tf.gather(tf.cast(sizes, piece_ends.dtype), word)
        last = tf.where(sizes < 0, piece_ends.flat_values, sizes)
        shift = tf.cast(tf.gather(begins.flat_values, word), last.dtype)
        ids = self._with_buckets(ids.merge_dims(-2, -1), words)
        begins = ids.with_flat_values(piece_begins.flat_values + shift)
        ends = ids.with_flat_values(last + shift)
        return ids, *original_offsets(texts, begins, ends, *folding)

    def detokenize(self, token_ids):
        """Joins word pieces to text: words with one space between them.

        Args:
            token_ids: int tensor or `tf.RaggedTensor`, `(batch_size, None)`, or a
                list of lists of int. Special tokens are kept.

        Returns:
            string tensor, `(batch_size,)`.

        Raises:
            tf.errors.InvalidArgumentError: if there is no such id.
        """
        if not tf.is_tensor(token_ids):
            token_ids = tf.ragged.constant(token_ids, dtype=tf.int32, ragged_rank=1)
        if not isinstance(token_ids, tf.RaggedTensor):
            token_ids = tf.RaggedTensor.from_tensor(token_ids)
        ids = token_ids.flat_values
        # TF Text's operation reads past its table, and crashes, on other ids.
        valid = tf.debugging.assert_equal(
            (ids >= 0) & (ids < self.vocabulary_size),
            True,
            f"`token_ids` must be from 0 to {self.vocabulary_size - 1}.",
        )
        with tf.control_dependencies([valid] if valid is not None else []):
            pieces = self._without_buckets(tf.identity(ids))
            token_ids = token_ids.with_flat_values(pieces)
        return self._wordpiece.detokenize(token_ids)

    def options(self):
        """What it does to texts beside its vocabulary: a dict of its arguments."""
        masks = {"read_masks": True} if self.read_masks else {}
        folding = {"lowercase": self.lowercase, "strip_accents": self.strip_accents}
        return {**folding, **masks}

    def _with_buckets(self, ids, words):
        """Ids of the pieces of words; a tokenizer of words may place unknown ones."""
        return ids

    def _without_buckets(self, ids):
        """Ids of the vocabulary, of flat ids."""
        return ids

    def token_to_id(self, token):
        """Returns the id of one word piece.

        Raises:
            KeyError: if the vocabulary does not hold it.
        """
        if token not in self._pieces.ids:
            raise KeyError(
                f"{token!r} is not in the vocabulary of {self.vocabulary_size} pieces. "
                "Call the layer to tokenize text."
            )
        return self._pieces.ids[token]

    def id_to_token(self, token_id):
        """Returns the word piece of one id.

        Raises:
            IndexError: if there is no such id.
        """
        if not 0 <= token_id < self.vocabulary_size:
            raise IndexError(
                f"Ids run from 0 to {self.vocabulary_size - 1}. Received: {token_id}."
            )
        return self.vocabulary[token_id]

    def get_config(self):
        # The pieces, not the path: a saved model must not need the file.
        return {
            **super().get_config(),
            "vocabulary": list(self.vocabulary),
            **self.options(),
        }

    @classmethod
    def from_config(cls, config):
        vocabulary = config["vocabulary"]
        if not isinstance(vocabulary, (list, tuple)):
            # A path would have a file opened that whoever wrote the config chose.
            raise ValueError(
                "`vocabulary` in the config of a tokenizer must be the list of its "
                f"word pieces. Received: {reprlib.repr(vocabulary)} of type "
                f"{type(vocabulary).__name__}."
            )
        return cls(**config)


def _known(words):
    """Words, but `[UNK]` for those that are too long."""
    lengths = tf.strings.length(words.flat_values, unit="UTF8_CHAR")
    return words.with_flat_values(
        tf.where(lengths > MAX_CHARACTERS_PER_WORD, "[UNK]", words.flat_values)
    )
