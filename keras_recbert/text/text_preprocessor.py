"""Raw text to the ids that an encoder takes: tokenize, truncate, pack, pad."""

import keras
import tensorflow as tf

from keras_recbert.text.packer import Packer, register_packer
from keras_recbert.text.segments import Segment, join_segments

TRUNCATIONS = ("longest_first", "round_robin", "waterfall", "only_first", "only_second")
# A text is tokenized to this word, or to the limit of tokens if that is larger: what
# follows could not be packed. Larger than limits in use, because of a pair it matters
# which text is the longer one.
MAX_WORDS = 16_384


@register_packer
@keras.saving.register_keras_serializable("keras_recbert")
class TextPreprocessor(Packer):
    """Packs texts, or pairs of texts, as `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    Rows longer than the limit lose tokens from the ends of their texts. For a pair,
    `truncation` says of which one:

    - `"longest_first"`: of the longer one, until both are equal; then of both alike,
      and an odd token stays with the text that was longer (with the second if both
      were equal), as in Hugging Face's `tokenizers`.
    - `"round_robin"`: the same, but an odd token stays with the first text.
    - `"waterfall"`: of the second; of the first only if that alone is too long.
    - `"only_first"`, `"only_second"`: of that one only. It is an error if the other
      one leaves no room.

    Of a text with more than 16,384 words only these are tokenized, so that the time a
    text takes grows with its characters alone. Of two such texts the one of more bytes
    counts as the longer one.

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.
        truncation: str. One of the names above.

    Call arguments:
        x: a batch of texts (string tensor `(batch_size,)`, NumPy array, list of str),
            or for pairs a tuple of two such batches of equal size, or a dict of
            `text` and `text_pair`. One str, or a tuple of two, is a batch of one.

    Returns:
        dict of int32 tensors, `(batch_size, sequence_length)`: `token_ids`;
        `segment_ids`, 1 on the second text and its `[SEP]`, else 0; `padding_mask`,
        1 on tokens, 0 on padding.

    Raises:
        ValueError: if a length or `truncation` is not valid, if there are more than
            two texts, or if the batch sizes of a pair differ.
        TypeError: if `tokenizer` is none, or a text is not a string.
        tf.errors.InvalidArgumentError: if `"only_first"` or `"only_second"` cannot
            make a pair fit.

    Example:

    ```python
    preprocessor = TextPreprocessor(tokenizer, sequence_length=128)
    preprocessor(["A fine film.", "Dull."])["token_ids"]  # (2, 128)
    preprocessor((["Is it raining?"], ["It rains."]))["segment_ids"]  # (1, 128)
    ```
    """

    fields = ("text", "text_pair")
    num_optional = 1

    def __init__(
        self,
        tokenizer,
        sequence_length=None,
        max_sequence_length=512,
        truncation="longest_first",
        **kwargs,
    ):
        super().__init__(tokenizer, sequence_length, max_sequence_length, **kwargs)
        if truncation not in TRUNCATIONS:
            raise ValueError(
                f"`truncation` must be one of {', '.join(TRUNCATIONS)}. "
                f"Received: truncation={truncation!r}."
            )
        self.truncation = truncation

    def columns(self, x):
        columns = super().columns(x)
        if self.limit < 5 and len(columns) == 2:
            raise ValueError(
                "A pair needs at least 5 tokens: [CLS], two [SEP] and one token of "
                f"each text. Received: a limit of {self.limit}. Build the preprocessor "
                "with a larger `sequence_length` or `max_sequence_length`."
            )
        return columns

    def pack(self, *batches):
        max_words = max(self.limit, MAX_WORDS)
        segments = [Segment.of(self.tokenizer(text, max_words)) for text in batches]
        return self.joined(self.truncated(segments, batches))

    def pack_with_offsets(self, *batches):
        """As `pack`, with the place of each token in its text; read in a graph.

        Args:
            *batches: as for `pack`.

        Returns:
            dict, see `TextPreprocessor`, with int32 `begins` and `ends`, each
            `(batch_size, sequence_length)`: the first byte of a token in its text, and
            the one after its last; -1 on special tokens and padding.
        """
        max_words = max(self.limit, MAX_WORDS)
        texts = [
            self.tokenizer.tokenize_with_offsets(text, max_words) for text in batches
        ]
        segments = self.truncated([Segment.of(ids) for ids, *_ in texts], batches)
        packed = self.joined(segments)
        for part, name in enumerate(("begins", "ends"), 1):
            places = [
                segment._replace(values=text[part].flat_values)
                for segment, text in zip(segments, texts, strict=True)
            ]
            rows = join_segments(places, -1, -1, -1, self.sequence_length)
            packed[name] = rows["token_ids"]
        return packed

    def truncated(self, segments, batches):
        """Tokenized texts or pairs, as long as their rows have room for.

        Args:
            segments: list of one or two `Segment`.
            batches: sequence of as many string tensors `(num_rows,)`: their texts.

        Returns:
            list of `Segment`.
        """
        budget = self.limit - 1 - len(segments)
        lengths = [segment.lengths for segment in segments]
        return [
            segment._replace(lengths=length)
            for segment, length in zip(
                segments, self._truncated(lengths, budget, batches), strict=True
            )
        ]

    def _truncated(self, lengths, budget, batches):
        """Shortens the lengths of each row's segments to `budget` tokens together."""
        if len(lengths) == 1:
            return [tf.minimum(lengths[0], budget)]
        # In closed form: TF Text's ShrinkLongestTrimmer takes one loop step for each
        # token dropped, and settles ties otherwise.
        first_length, second_length = lengths
        half = budget // 2
        if self.truncation == "longest_first":
            is_longer = tf.where(
                tf.minimum(first_length, second_length) < MAX_WORDS,
                first_length > second_length,
                tf.strings.length(batches[0]) > tf.strings.length(batches[1]),
            )
            share = tf.where(is_longer, budget - half, half)
            keep_first = tf.maximum(share, budget - second_length)
        elif self.truncation == "round_robin":
            keep_first = tf.maximum(budget - half, budget - second_length)
        elif self.truncation == "only_first":
            keep_first = budget - second_length
            self._check_room(keep_first, first_length, "second")
        else:
            keep_first = tf.fill(tf.shape(first_length), budget)
        keep_first = tf.minimum(keep_first, first_length)
        keep_second = tf.minimum(budget - keep_first, second_length)
        if self.truncation == "only_second":
            self._check_room(budget - first_length, second_length, "first")
        return [keep_first, keep_second]

    def _check_room(self, room, length, other):
        tf.debugging.assert_equal(
            (room >= length) | (room >= 1),
            True,
            f'truncation="{self.truncation}": the {other} text of a pair alone fills '
            f"the row of {self.limit} tokens. "
            'Use truncation="longest_first" or a longer sequence_length.',
        )
