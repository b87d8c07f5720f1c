"""Which of several choices is right."""

import keras
import numpy as np
import tensorflow as tf

from keras_recbert.heads.choice_rows import ChoiceLogits, ChoiceRows
from keras_recbert.heads.head import Head, as_array, check_labels, register_head


@register_head
class MultipleChoiceHead(Head):
    """Softmax over the choices of an example (Devlin et al. 2018, section 4.4).

    The score of a choice is the dot product of the pooled output of its row with a
    vector that all choices share. An example has any number of choices, 2 or more;
    those that fill up a batch have the logit -1e9.
    """

    task = "multiple_choice"
    more_metrics = ()
    packer = "ChoicePreprocessor"
    padding_logit = -1e9
    checks_batches = True
    dataset_elements = (
        "((text, choices), label), with the positions of the right choices as labels"
    )

    def __init__(self):
        super().__init__(1)

    def inputs(self, encoder):
        """Inputs `(batch_size, num_choices, sequence_length)`, and a row a choice."""
        inputs = {
            name: keras.Input((None, None), dtype=one.dtype, name=name)
            for name, one in encoder.input.items()
        }
        rows = {
            name: ChoiceRows(name=f"{name}_of_rows")(one)
            for name, one in inputs.items()
        }
        return inputs, {**rows, "choices_mask": inputs["padding_mask"]}

    def connect(self, outputs, dropout=None):
        """Logits `(batch_size, num_choices)`, -1e9 on padding."""
        logits = super().connect(outputs, dropout)
        of_choices = ChoiceLogits(
            self.padding_logit, dtype="float32", name="choice_logits"
        )
        return of_choices(logits, outputs.inputs["choices_mask"])

    def loss(self):
        return keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def metrics(self):
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def as_targets(self, labels, own_loss=False):
        labels = as_array(labels)
        if own_loss:
            return labels
        check_labels(
            labels,
            lambda label: label.dtype.kind in "iuf" and label >= 0 and label % 1 == 0,
            "the positions of the right choices, whole numbers from 0",
        )
        return labels.astype(np.int32)

    def read_labels(self, fields, labels, own_loss=False):
        """The positions of the right choices.

        Args:
            fields: dict of the columns of `text` and `choices`.
            labels: list or array, one an example: the position of the right choice,
                from 0, or its text.

        Returns:
            int32 `(num_examples,)`.

        Raises:
            ValueError: for a label that is none of the choices; names the example.
        """
        choices = _lists(fields["choices"])
        if len(choices) != len(labels):
            raise ValueError(
                "`y` must hold the right choice of each example. Received: "
                f"{len(choices)} examples, {len(labels)} labels."
            )
        if own_loss and np.asarray(labels).dtype.kind not in "OSU":
            return np.asarray(labels)
        rows = zip(choices, labels, strict=True)
        return np.array(
            [_position(index, *row) for index, row in enumerate(rows)], np.int32
        )

    def answer(self, logits):
        """What the SavedModel gives for ids.

        Args:
            logits: float32, `(batch_size, num_choices)`.

        Returns:
            dict of `index` (int32, `(batch_size,)`, the position of the likeliest
            choice) and `scores` (float32, `(batch_size, num_choices)`, summing to 1; 0
            for padding).
        """
        return {
            "index": tf.argmax(logits, axis=-1, output_type=tf.int32),
            "scores": tf.nn.softmax(logits),
        }

    def answer_rows(self, logits, rows, columns):
        """As `answer`, with `label`: the likeliest choice, string `(batch_size,)`.

        `scores` has as many columns as the column of choices.
        """
        choices, answer = columns[1], self.answer(logits)
        more = tf.shape(choices)[1] - tf.shape(logits)[1]
        return {
            "label": tf.gather(choices, answer["index"], batch_dims=1),
            "index": answer["index"],
            "scores": tf.pad(answer["scores"], [[0, 0], [0, more]]),
        }

    def predictions(self, logits):
        return np.argmax(logits, axis=-1)


def _lists(choices):
    """Choices of each example, a list of lists, of a column in any form."""
    if isinstance(choices, tf.RaggedTensor):
        return choices.to_list()
    if tf.is_tensor(choices):
        choices = choices.numpy()
    return choices.tolist() if isinstance(choices, np.ndarray) else choices


def _position(index, choices, label):
    texts = [one.decode() if isinstance(one, bytes) else one for one in choices]
    label = label.decode() if isinstance(label, bytes) else label
    if isinstance(label, str):
        if texts.count(label) == 1:
            return texts.index(label)
        problem = "twice or more" if label in texts else "not"
        raise ValueError(
            f"`y` must hold the right choices or their positions. Received: {label!r} "
            f"at index {index}, which is {problem} among {texts}."
        )
    kind = np.asarray(label).dtype.kind
    while texts and not texts[-1]:  # what fills up a dense column
        texts.pop()
    if np.ndim(label) or kind not in "iuf" or label not in range(len(texts)):
        raise ValueError(
            "`y` must hold the positions of the right choices, from 0 to "
            f"{len(texts) - 1} at index {index}, or their texts. Received: "
            f"{np.asarray(label).tolist()!r} for the choices {texts}."
        )
    return int(label)
