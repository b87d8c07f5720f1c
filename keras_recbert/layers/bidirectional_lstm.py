"""A bidirectional LSTM that obeys masks and exports to any device."""

import keras
from keras import ops

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.explain_row import chosen_row
from keras_recbert.ops.bidirectional_lstm import bidirectional_lstm
from keras_recbert.ops.implementation import check_implementation, choose


@keras.saving.register_keras_serializable("keras_recbert")
class BidirectionalLSTM(CheckedLayer):
    """Forward and backward LSTM over a sequence, outputs concatenated.

    The LSTM of Keras (Hochreiter and Schmidhuber 1997 with forget gate; gates
    ordered input, forget, cell, output; forget bias starts at 1):

        i, f, g, o = x[t] W + h[t - 1] U + b
        c[t] = sigmoid(f) * c[t - 1] + sigmoid(i) * tanh(g)
        h[t] = sigmoid(o) * tanh(c[t])

    Unlike `keras.layers.Bidirectional(keras.layers.LSTM(...))` it never becomes a
    cuDNN op, so a model that was saved beside a GPU runs without one, and rows that
    are all padding are allowed. The recurrence runs in float32 in every precision
    but float64.

    Masking: where `padding_mask` or Keras's `mask` is 0 the state is carried and the
    output is 0. So the backward pass starts at the last real token, and a row gives
    what its real tokens alone give, wherever the zeros are.

    Args:
        units: int. Width of the state of each direction.
        implementation: str. `"auto"`, `"reference"`, `"loop"` or `"xla"`, see
            `keras_recbert.ops.bidirectional_lstm`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, `(batch_size, sequence_length, 2 * units)`, forward direction first.

    Raises:
        ValueError: if `units` is not positive or `implementation` is unknown.
    """

    def __init__(self, units, implementation="auto", **kwargs):
        super().__init__(**kwargs)
        check_positive(units=units)
        check_implementation(implementation)
        self.units = units
        self.implementation = implementation

    def build(self, inputs_shape, padding_mask_shape=None):
        units = self.units

        def gates_bias(shape, dtype=None):
            ones_at_forget = [0.0] * units + [1.0] * units + [0.0] * 2 * units
            return ops.convert_to_tensor([ones_at_forget] * 2, dtype)

        def glorot_uniform(fan_in):
            """With the fan-out of one direction, which the shapes do not show."""
            limit = (6.0 / (fan_in + 4 * units)) ** 0.5
            return keras.initializers.RandomUniform(-limit, limit)

        # One product for both directions: forward i f g o, then backward i f g o.
        self.kernel = self.add_weight(
            name="kernel",
            shape=(inputs_shape[-1], 8 * units),
            initializer=glorot_uniform(inputs_shape[-1]),
        )
        # Not orthogonal, as in Keras: the QR takes over a second a layer at base size,
        # a minute and more for a large model.
        self.recurrent_kernel = self.add_float32_weight(
            (2, units, 4 * units), glorot_uniform(units), "recurrent_kernel"
        )
        self.bias = self.add_float32_weight((2, 4 * units), gates_bias, "bias")
        self.built = True

    def call(self, inputs, padding_mask=None, training=None, mask=None):
        outputs = bidirectional_lstm(
            inputs,
            self.kernel,
            self.recurrent_kernel,
            self.bias,
            self.agreed_mask(inputs, padding_mask, mask),
            choose(self.implementation, self.units, packs=not training)[0],
            keep_states=bool(training),
        )
        return ops.cast(outputs, self.compute_dtype)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return (*inputs_shape[:-1], 2 * self.units)

    def explain_row(self):
        """What runs, see `keras_recbert.explain`."""
        return chosen_row(
            "bidirectional LSTM",
            self.implementation,
            self.units,
            loops=True,
            packs=True,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "implementation": self.implementation,
        }
