"""Questions and contexts of any length to windows of ids."""

import types

import keras
import tensorflow as tf

from keras_recbert.core.checks import check_positive
from keras_recbert.text.packer import Packer, register_packer
from keras_recbert.text.segments import Segment
from keras_recbert.text.text_preprocessor import MAX_WORDS
from keras_recbert.text.windows import Windows


@register_packer
@keras.saving.register_keras_serializable("keras_recbert")
class QuestionPreprocessor(Packer):
    """Packs questions and contexts as `[CLS] question [SEP] window [SEP]`.

    A context that does not fit is cut into windows that overlap; each is a row
    (Devlin et al. 2018, section 4.2, and its code: windows begin every `stride` word
    pieces, the last one ends with the context). Questions are cut to their first
    `max_question_length` word pieces, or to half the row where that is less.

    Contexts that stand several times in a batch are tokenized once. Of a text with
    more than 16,384 words only these are read.

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.
        stride: int. Word pieces from the begin of a window to that of the next; fewer
            where a window is shorter.
        max_question_length: int. The most word pieces of a question.

    Call arguments:
        x: a batch: a dict of `question` and `context`, or a tuple of them; each a
            string tensor `(batch_size,)`, a NumPy array or a list of str.

    Returns:
        dict of int32 tensors. `token_ids`, `segment_ids` (1 on the window and its
        `[SEP]`) and `padding_mask`, `(num_rows, sequence_length)`, rows of one example
        behind each other. `example`, `(num_rows,)`: the position of the example in the
        batch. `begins` and `ends`, `(num_rows, sequence_length)`: first byte of each
        token in the context, and the one after its last; -1 outside the window.
        `most_context`, `(num_rows, sequence_length)`: 1 where the window is the one in
        which its token has most context on its poorer side, as BERT's code has it.

    Raises:
        ValueError: if a length is not valid, or there are other fields.
        TypeError: if `tokenizer` is none, or a text is not a string.

    Example:

    ```python
    preprocessor = QuestionPreprocessor(tokenizer, max_sequence_length=384)
    rows = preprocessor({"question": ["Who?"], "context": ["It was Ada."]})
    rows["token_ids"].shape  # (1, 9)
    ```
    """

    fields = ("question", "context")
    row_features = types.MappingProxyType(
        {"example": None, "begins": -1, "ends": -1, "most_context": 0}
    )

    def __init__(
        self,
        tokenizer,
        sequence_length=None,
        max_sequence_length=384,
        stride=128,
        max_question_length=64,
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, max_sequence_length, **kwargs)
        check_positive(stride=stride, max_question_length=max_question_length)
        if self.limit < 8:
            raise ValueError(
                "A question and a window of its context need at least 8 tokens, three "
                f"of them special. Received: a limit of {self.limit}. Use a larger "
                "`sequence_length` or `max_sequence_length`."
            )
        self.stride = stride
        self.max_question_length = max_question_length

    def pack(self, questions, contexts):
        longest = min(self.max_question_length, (self.limit - 3) // 2)
        questions = Segment.of(self.tokenizer(questions, MAX_WORDS), longest)
        contexts, context = tf.unique(contexts)
        ids, begins, ends = self.tokenizer.tokenize_with_offsets(contexts, MAX_WORDS)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        windows = Windows(
            tf.gather(lengths, context), self.limit - 3 - questions.lengths, self.stride
        )
        rows = windows.example
        first = tf.gather(tf.cast(ids.row_starts(), tf.int32), context)
        starts = tf.gather(first, rows) + windows.begin
        tokens = tf.ragged.range(starts, starts + windows.length)
        window = Segment(ids.flat_values, starts, windows.length)
        most_context = tokens.with_flat_values(windows.most_context(tokens))
        packed = self.joined(
            [questions.gather(rows), window],
            begins=(window._replace(values=begins.flat_values), -1),
            ends=(window._replace(values=ends.flat_values), -1),
            most_context=(Segment.of(most_context), 0),
        )
        return {**packed, "example": rows}
