"""Texts of any length to windows of ids."""

import keras
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.text.packer import Packer, register_packer
from keras_recbert.text.segments import Segment
from keras_recbert.text.text_preprocessor import MAX_WORDS
from keras_recbert.text.windows import Windows

SHORTEST_PAIR = 5  # [CLS], two [SEP] and one token of each text


@register_packer
@keras.saving.register_keras_serializable("keras_recbert")
class WindowPreprocessor(Packer):
    """Packs texts as `[CLS] window [SEP]`, as many windows as each text needs.

    The windows of a text begin every `stride` word pieces, and the last one ends with
    the text. They overlap, as those of Pappagari et al. 2019; the ones of Sun et al.
    2019 stand side by side. A text of one window has the row that `TextPreprocessor`
    gives. Texts with fewer windows than others of their batch are
    filled up with rows of padding, whose mask is 0 throughout.

    Of a pair each row is `[CLS] a [SEP] window of b [SEP]`. Where both do not fit into
    one row, the first text keeps its first word pieces, half of the row at least.

    Of a text with more than 16,384 words, and more than a row has room for, only these
    are read.

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.
        stride: int or None. Word pieces from the begin of a window to that of the next;
            fewer where a window is shorter. None: three quarters of a window.

    Call arguments:
        x: a batch of texts (string tensor `(batch_size,)`, NumPy array, list of str),
            or for pairs a tuple of two such batches of equal size, or a dict of
            `text` and `text_pair`. One str, or a tuple of two, is a batch of one.

    Returns:
        dict of int32 tensors `(batch_size, num_windows, sequence_length)`: `token_ids`;
        `segment_ids`, 1 on the second text and its `[SEP]`, else 0; `padding_mask`,
        1 on tokens, 0 on padding.

    Raises:
        ValueError: if a length is not valid, if there are more than two texts, or if
            the batch sizes of a pair differ.
        TypeError: if `tokenizer` has the wrong type, or a text is not a string.

    Example:

    ```python
    preprocessor = WindowPreprocessor(tokenizer, max_sequence_length=128)
    rows = preprocessor(["A fine film. " * 300, "Dull."])
    rows["token_ids"].shape  # (2, 13, 128), where each word is one word piece
    ```
    """

    fields = ("text", "text_pair")
    num_optional = 1

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

    def columns(self, x):
        columns = super().columns(x)
        if self.limit < SHORTEST_PAIR and len(columns) == 2:
            raise ValueError(
                f"A pair needs at least {SHORTEST_PAIR} tokens: [CLS], two [SEP] and "
                f"one token of each text. Received: a limit of {self.limit}. Build the "
                "model with a larger `sequence_length` or `max_sequence_length`."
            )
        return columns

    def pack(self, *batches):
        max_words = max(self.limit, MAX_WORDS)
        *first, text = (Segment.of(self.tokenizer(one, max_words)) for one in batches)
        lengths = text.lengths
        room = tf.fill(tf.shape(lengths), self.limit - 1 - len(batches))
        if first:
            # The first text keeps half of the row at least, the second one token.
            most = tf.maximum(room // 2, room - lengths)
            first = first[0]._replace(lengths=tf.minimum(first[0].lengths, most))
            room = tf.maximum(room - first.lengths, 1)
        stride = self.stride or tf.maximum(1, 3 * room // 4)
        windows = Windows(lengths, room, stride)
        starts = tf.gather(text.starts, windows.example) + windows.begin
        segments = [Segment(text.values, starts, windows.length)]
        if len(batches) == 2:
            segments.insert(0, first.gather(windows.example))
        packed = self.joined(segments)
        padding = {"token_ids": self.tokenizer.pad_id}
        # (num_rows, length) to (batch_size, num_windows, length)
        return {
            name: tf.RaggedTensor.from_value_rowids(
                rows, windows.example, tf.size(lengths), validate=False
            ).to_tensor(padding.get(name, 0))
            for name, rows in packed.items()
        }
