"""Texts with choices to rows of ids, one for each choice."""

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.text.packer import register_packer
from keras_recbert.text.segments import Segment
from keras_recbert.text.text_preprocessor import MAX_WORDS, TextPreprocessor

FEWEST_CHOICES = 2


@register_packer
@keras.saving.register_keras_serializable("keras_recbert")
class ChoicePreprocessor(TextPreprocessor):
    """Packs texts, each with choices, as `[CLS] text [SEP] choice [SEP]`.

    An example has as many rows as choices (Devlin et al. 2018, section 4.4), 2 or
    more. Those with fewer choices than others of their batch are filled up with rows
    of padding, whose mask is 0 throughout. A row that is too long is shortened as that
    of a pair, see `TextPreprocessor`.

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int or None. Length of every row. None: the length of the
            longest row of the batch.
        max_sequence_length: int. The most tokens a row may have, special tokens
            included; the limit where `sequence_length` is None.
        truncation: str. As for `TextPreprocessor`.

    Call arguments:
        x: a batch: a dict of `text` and `choices`, or a tuple of them. `text`: a string
            tensor `(batch_size,)`, a NumPy array or a list of str. `choices`: a list of
            lists of str, a string `tf.RaggedTensor` `(batch_size, None)`, or a string
            tensor `(batch_size, num_choices)`, padded with "" at the ends of its rows.

    Returns:
        dict of int32 tensors `(batch_size, num_choices, sequence_length)`:
        `token_ids`; `segment_ids`, 1 on the choice and its `[SEP]`, else 0;
        `padding_mask`, 1 on tokens, 0 on padding.

    Raises:
        ValueError: if a length or `truncation` is not valid, or an example has fewer
            than two choices, or an empty one; names the example.
        TypeError: if `tokenizer` is none, or a text or a choice is not a string.
        tf.errors.InvalidArgumentError: in a graph, for such examples; or as
            `TextPreprocessor` does.

    Example:

    ```python
    preprocessor = ChoicePreprocessor(tokenizer, max_sequence_length=128)
    rows = preprocessor({"text": ["It rained."], "choices": [["We ran.", "We sang."]]})
    rows["token_ids"].shape  # (1, 2, 10)
    ```
    """

    fields = ("text", "choices")
    num_optional = 0
    list_fields = ("choices",)

    def columns(self, x):
        texts, choices = super().columns(x)
        if tf.executing_eagerly():
            _check(tf.RaggedTensor.from_tensor(choices, padding=""))
        return texts, choices

    def pack(self, texts, choices):
        choices = tf.RaggedTensor.from_tensor(choices, padding="")
        tf.debugging.assert_equal(
            tf.reduce_all(choices.row_lengths() >= FEWEST_CHOICES)
            & tf.reduce_all(choices.values != ""),
            True,
            "Each example needs at least two choices, none of them empty.",
        )
        max_words = max(self.limit, MAX_WORDS)
        example = choices.value_rowids()
        segments = [
            Segment.of(self.tokenizer(texts, max_words)).gather(example),
            Segment.of(self.tokenizer(choices.values, max_words)),
        ]
        batches = tf.gather(texts, example), choices.values
        packed = self.joined(self.truncated(segments, batches))
        padding = {"token_ids": self.tokenizer.pad_id}
        # (num_rows, length) to (batch_size, num_choices, length)
        return {
            name: choices.with_values(rows).to_tensor(padding.get(name, 0))
            for name, rows in packed.items()
        }


def _check(choices):
    """Raises `ValueError` for the first example without two choices that are texts."""
    for index in np.flatnonzero(choices.row_lengths().numpy() < FEWEST_CHOICES)[:1]:
        raise ValueError(
            "Each example must have at least two choices. Received: "
            f"{choices[index].numpy().tolist()} at index {index}."
        )
    for place in np.flatnonzero(choices.values.numpy() == b"")[:1]:
        index = int(choices.value_rowids()[place])
        raise ValueError(
            "A choice must not be empty. Received: "
            f"{choices[index].numpy().tolist()} at index {index}."
        )
