"""Sentences that are split into words already, to rows of ids."""

import types

import keras
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.text.offsets import original_offsets
from keras_recbert.text.packer import Packer, register_packer
from keras_recbert.text.segments import Segment
from keras_recbert.text.split_words import split_words_with_offsets
from keras_recbert.text.string_tensor import to_string_tensor
from keras_recbert.text.text_preprocessor import MAX_WORDS
from keras_recbert.text.windows import Windows


@register_packer
@keras.saving.register_keras_serializable("keras_recbert")
class WordPreprocessor(Packer):
    """Packs sentences of words as `[CLS] word pieces [SEP]`.

    Each word is tokenized by itself; one that has no word piece, such as one of control
    characters, is `[UNK]`. A sentence that does not fit is cut into windows that
    overlap, each a row. A word counts in the window where its first word piece has most
    context on its poorer side, so each word counts once (Devlin et al. 2018, section
    4.2, and its code, of the windows of question answering; section 5.3, of the first
    word piece).

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.
        stride: int or None. Word pieces from the begin of a window to that of the next.
            None: half of those that a row has room for.

    Call arguments:
        x: a batch: a dict of `words`, or its column: a list of lists of str, a string
            `tf.RaggedTensor` `(batch_size, None)`, or a string tensor `(batch_size,
            num_words)`, padded with `""` behind the last word.

    Returns:
        dict of int32 tensors. `token_ids`, `segment_ids` (0) and `padding_mask`,
        `(num_rows, sequence_length)`, rows of one sentence behind each other.
        `example`, `(num_rows,)`: the position of the sentence in the batch. `word`,
        `(num_rows, sequence_length)`: the position of a word in its sentence, where the
        first word piece of it stands in the window in which it counts; -1 elsewhere.

    Raises:
        ValueError: if a length is not valid, a word is empty, or there are other
            fields.
        TypeError: if `tokenizer` has the wrong type, or a word is not a string.

    Example:

    ```python
    preprocessor = WordPreprocessor(tokenizer, max_sequence_length=128)
    rows = preprocessor([["Ada", "wrote", "it", "."], ["Who", "?"]])
    rows["word"]  # (2, 6), where each word is one word piece
    ```
    """

    fields = ("words",)
    list_fields = ("words",)
    text_field = "text"
    row_features = types.MappingProxyType({"example": None, "word": -1})

    def __init__(
        self,
        tokenizer,
        sequence_length=None,
        max_sequence_length=512,
        stride=None,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, max_sequence_length, **kwargs)
        if stride is not None:
            check_positive(stride=stride)
        self.stride = stride

    def pack(self, words):
        words = tf.RaggedTensor.from_tensor(words, lengths=count_words(words))
        pieces = self._pieces(words.flat_values)
        numbers = tf.ragged.range(words.row_lengths()).flat_values
        word = pieces.value_rowids()
        ids = pieces.flat_values
        places = tf.range(tf.size(ids, tf.int64))
        is_first = places == tf.gather(pieces.row_starts(), word)
        first_of = tf.where(is_first, tf.cast(tf.gather(numbers, word), tf.int32), -1)
        # Where the word pieces of each sentence begin and end.
        splits = tf.cast(tf.gather(pieces.row_splits, words.row_splits), tf.int32)
        room = self.limit - 2
        windows = Windows(
            splits[1:] - splits[:-1],
            tf.fill(tf.shape(splits[1:]), room),
            self.stride or max(1, room // 2),
        )
        rows = windows.example
        starts = tf.gather(splits, rows) + windows.begin
        tokens = tf.ragged.range(starts, starts + windows.length)
        counts = windows.most_context(tokens) == 1
        first_of = tf.where(counts, tf.gather(first_of, tokens.flat_values), -1)
        packed = self.joined(
            [Segment(ids, starts, windows.length)],
            word=(Segment.of(tokens.with_flat_values(first_of)), -1),
        )
        return {**packed, "example": rows}

    def _pieces(self, words):
        """Ids of each word, `(num_words, None)`, one at least."""
        pieces = self.tokenizer(words, MAX_WORDS)
        missing = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(missing)], self.tokenizer.unk_id)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, missing, validate=False)
        return tf.concat([pieces, unknown], axis=1)

    def split_text(self, texts):
        """Words of raw texts, as BERT's basic tokenization has them.

        Args:
            texts: string tensor `(batch_size,)`.

        Returns:
            Tuple of tensors `(batch_size, num_words)`: the words, bytes of the texts,
            `""` behind the last; int32, the first byte of each in its text, and the one
            after its last, -1 behind the last word.
        """
        texts = to_string_tensor(texts)
        folding = self.tokenizer.lowercase, self.tokenizer.strip_accents
        folded, begins = split_words_with_offsets(texts, *folding, MAX_WORDS)
        lengths = tf.cast(tf.strings.length(folded.flat_values), begins.dtype)
        ends = begins.with_flat_values(begins.flat_values + lengths)
        begins, ends = original_offsets(texts, begins, ends, *folding)
        text = tf.gather(texts, begins.value_rowids())
        size = ends.flat_values - begins.flat_values
        words = tf.strings.substr(text, begins.flat_values, size)
        return (
            begins.with_flat_values(words).to_tensor(""),
            begins.to_tensor(-1),
            ends.to_tensor(-1),
        )


def count_words(words):
    """Words of each sentence: the position of the last that is not empty.

    Args:
        words: string tensor `(batch_size, num_words)`.

    Returns:
        int32 `(batch_size,)`.
    """
    positions = tf.range(1, tf.shape(words)[1] + 1)
    filled = tf.where(words != "", positions, 0)
    return tf.reduce_max(tf.pad(filled, [[0, 0], [0, 1]]), axis=1)
