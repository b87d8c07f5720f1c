"""The recurrent student of a BERT: two BiLSTMs with attention between two texts."""

import keras
import tensorflow as tf
from keras import ops

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.bidirectional_lstm import BidirectionalLSTM
from keras_recbert.layers.checked_layer import ROWS, CheckedLayer
from keras_recbert.layers.max_pooling import MaxPooling
from keras_recbert.layers.mean_pooling import MeanPooling
from keras_recbert.ops.implementation import at_least_float32

MASKED = -1e9  # before a softmax


@keras.saving.register_keras_serializable("keras_recbert")
class BiAttentiveStudent(CheckedLayer):
    """Reads two texts, each with a look at the other, to one vector.

    Liu 2020, section 4.1.2, of word vectors `w_x` and `w_y`:

        X, Y = BiLSTM(relu(W w_x + b)), BiLSTM(relu(W w_y + b))        (4.5, 4.6)
        A = X Y^T, A_x = softmax(A), A_y = softmax(A^T)                (4.7)
        C_x = A_x^T X, C_y = A_y^T Y                                   (4.8)
        X_y = BiLSTM_x([X, X - C_y, X * C_y])                          (4.9)
        Y_x = BiLSTM_y([Y, Y - C_x, Y * C_x])
        a_x = softmax(X_y v_1), x_self = X_y^T a_x, and so for Y_x     (4.10, 4.11)
        x_pool = [max(X_y), mean(X_y), x_self], and so for Y_x         (4.12)

    The output is `[x_pool, y_pool]`. Each softmax runs over the columns, the positions
    of one text. The biases `d_1` and `d_2` of equation 4.10 are left out: they shift
    all scores of a softmax alike and change nothing. A single text is both texts.

    Masking: positions where `padding_mask` or Keras's `mask` is 0 have no part in
    either BiLSTM, softmax or pooling. A row that is all padding gives 0.

    Args:
        recurrent_dim: int. State of each direction of the BiLSTMs.
        projection_dim: int. Width of the ReLU layer.
        implementation: str. See `keras_recbert.ops.implementation`.
        return_sequences: bool. Returns the states of the first BiLSTM, too.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, vector_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        segment_ids: optional bool or int, `(batch_size, sequence_length)`. 1 on the
            second text, 0 on the first. A row without 1 is a single text.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, `(batch_size, 12 * recurrent_dim)`; with `return_sequences` a tuple of
        it and `X` and `Y` at the positions of their texts, `(batch_size,
        sequence_length, 2 * recurrent_dim)`.

    Raises:
        ValueError: if a size is not positive or `implementation` is unknown.
    """

    call_shapes = {**CheckedLayer.call_shapes, "segment_ids": ROWS}

    def __init__(
        self,
        recurrent_dim=256,
        projection_dim=300,
        implementation="auto",
        return_sequences=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(recurrent_dim=recurrent_dim, projection_dim=projection_dim)
        self.recurrent_dim = recurrent_dim
        self.projection_dim = projection_dim
        self.implementation = implementation
        self.return_sequences = return_sequences
        self.projection = keras.layers.Dense(
            projection_dim, dtype=self.dtype_policy, name="projection"
        )
        self.reader, self.first_reader, self.second_reader = (
            BidirectionalLSTM(
                recurrent_dim, implementation, dtype=self.dtype_policy, name=name
            )
            for name in ("reader", "first_reader", "second_reader")
        )
        self.poolings = [
            MaxPooling(dtype=self.dtype_policy, name="max"),
            MeanPooling(dtype=self.dtype_policy, name="mean"),
        ]

    def build(self, inputs_shape, padding_mask_shape=None, segment_ids_shape=None):
        rows, width = inputs_shape[:-1], 2 * self.recurrent_dim
        self.projection.build(inputs_shape)
        self.reader.build((*rows, self.projection_dim))
        self.first_reader.build((*rows, 3 * width))
        self.second_reader.build((*rows, 3 * width))
        self.first_scores, self.second_scores = (
            self.add_weight(name=name, shape=(width,), initializer="glorot_uniform")
            for name in ("first_scores", "second_scores")
        )
        self.built = True

    def call(
        self, inputs, padding_mask=None, segment_ids=None, training=None, mask=None
    ):
        mask = self.agreed_mask(inputs, padding_mask, mask)
        first, second = _texts(inputs, mask, segment_ids)
        # Out of the layer's call, so that no mask of Keras goes along.
        projected = ops.relu(self.projection(inputs))
        x = self.reader(projected, first, training=training)
        y = self.reader(projected, second, training=training)
        scores = ops.matmul(x, ops.transpose(y, (0, 2, 1)))
        # Columns of A and of its transpose are its second and its third axis.
        of_x = self._softmax(scores, first[:, :, None], axis=1)
        of_y = self._softmax(scores, second[:, None, :], axis=2)
        context_x = ops.matmul(ops.transpose(of_x, (0, 2, 1)), x)
        context_y = ops.matmul(of_y, y)
        x_y = self.first_reader(_compared(x, context_y), first, training=training)
        y_x = self.second_reader(_compared(y, context_x), second, training=training)
        pooled = ops.concatenate(
            [
                *self._pooled(x_y, first, self.first_scores),
                *self._pooled(y_x, second, self.second_scores),
            ],
            axis=-1,
        )
        if not self.return_sequences:
            return pooled
        # Each is 0 outside its text; of a single text both are the same.
        is_second = second * (1 - first)
        return pooled, x + y * ops.cast(is_second, y.dtype)[:, :, None]

    def _softmax(self, scores, mask, axis):
        scores = ops.cast(scores, at_least_float32(scores.dtype))
        scores = ops.where(mask > 0, scores, MASKED)
        # Keras's softmax warns of rows of one token.
        return ops.cast(tf.nn.softmax(scores, axis=axis), self.compute_dtype)

    def _pooled(self, states, mask, vector):
        """Maximum, mean and self-attentive sum of the states of a text."""
        scores = ops.sum(states * ops.cast(vector, states.dtype), axis=-1)
        weights = self._softmax(scores, mask, axis=1)
        attended = ops.sum(states * weights[:, :, None], axis=1)
        return [*(pool(states, mask) for pool in self.poolings), attended]

    def compute_mask(self, inputs, previous_mask=None):
        return (None, previous_mask) if self.return_sequences else None

    def compute_output_shape(
        self, inputs_shape, padding_mask_shape=None, segment_ids_shape=None
    ):
        pooled = (inputs_shape[0], 12 * self.recurrent_dim)
        if not self.return_sequences:
            return pooled
        return pooled, (*inputs_shape[:-1], 2 * self.recurrent_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "recurrent_dim": self.recurrent_dim,
            "projection_dim": self.projection_dim,
            "implementation": self.implementation,
            "return_sequences": self.return_sequences,
        }


def _texts(inputs, mask, segment_ids):
    """Masks of the first and the second text; of a single text both are that one."""
    if mask is None:
        mask = ops.ones(ops.shape(inputs)[:2], "int32")
    mask = ops.cast(ops.cast(mask, "bool"), "int32")
    if segment_ids is None:
        return mask, mask
    values = ops.cast(segment_ids, "float32") * ops.cast(mask, "float32")
    if tf.executing_eagerly() and not ops.all((values == 0.0) | (values == 1.0)):
        raise ValueError(
            "`segment_ids` must be 0 at the first text and 1 at the second. Received: "
            f"{segment_ids}."
        )
    second = mask * ops.cast(segment_ids, "int32")
    first = mask - second
    is_pair = ops.any(second > 0, axis=1, keepdims=True)
    return first, ops.where(is_pair, second, first)


def _compared(states, context):
    return ops.concatenate([states, states - context, states * context], axis=-1)
