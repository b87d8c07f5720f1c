"""SwishRNN, the recurrence of Lei et al. 2022."""

import keras

from keras_recbert.core.checks import check_positive
from keras_recbert.layers.checked_layer import CheckedLayer
from keras_recbert.layers.common import bert_initializer
from keras_recbert.layers.dense import Dense
from keras_recbert.layers.explain_row import chosen_row
from keras_recbert.ops.implementation import check_implementation, choose
from keras_recbert.ops.swish_rnn import swish_rnn

GATES = ("gelu", "sigmoid")


@keras.saving.register_keras_serializable("keras_recbert")
class SwishRNN(CheckedLayer):
    """Element-wise recurrence that replaces the feed-forward sub-layer.

    With `x1 = x W1` and `x2 = x W2` (Lei et al. 2022, section 2.2, eq. 2-4):

        c[i] = swish(c[i - k] - x1[i]) + x2[i],   c[<= 0] = 0
        y[i] = ((c[i] + b_c) * gate(x2[i] + b_sigma)) W3 + b_3

    `swish(z) = sigmoid(alpha * z + beta) * z` with trained vectors alpha (starts at
    1) and beta (starts at 0). The recurrence runs in float32 in every precision
    but float64.

    Masking: where `padding_mask` or Keras's `mask` is 0 the state is carried, not
    updated. Masked positions count in the distance `k`: zeros in the middle of a row
    change nothing at the others if `k` is 1; else they change which of them is read.

    Args:
        recurrent_dim: int. Width of the state (2048 for base, 2752 for large).
        step_size: int. Distance `k` to the state read; 1, 2 and 4 in the paper.
        gate: `"gelu"` (lower training loss in the paper) or `"sigmoid"`.
        implementation: str. `"auto"`, `"reference"`, `"loop"` or `"xla"`, see
            `keras_recbert.ops.swish_rnn`.

    Call arguments:
        inputs: float, `(batch_size, sequence_length, hidden_dim)`.
        padding_mask: optional bool or int, `(batch_size, sequence_length)`;
            1 = token.
        mask: as `padding_mask`; Keras passes its masks here.

    Returns:
        float, shape and dtype of `inputs`.

    Raises:
        ValueError: if `recurrent_dim` or `step_size` is not positive, or `gate` is
            unknown.

    Example:

    >>> layer = keras_recbert.layers.SwishRNN(recurrent_dim=32, step_size=2)
    >>> layer(np.ones((2, 7, 12), "float32")).shape
    TensorShape([2, 7, 12])
    """

    def __init__(
        self,
        recurrent_dim,
        step_size=1,
        gate="gelu",
        implementation="auto",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive(recurrent_dim=recurrent_dim, step_size=step_size)
        if gate not in GATES:
            raise ValueError(f"`gate` must be one of {GATES}. Received: gate={gate!r}.")
        check_implementation(implementation)
        self.implementation = implementation
        self.recurrent_dim = recurrent_dim
        self.step_size = step_size
        self.gate = gate

    def build(self, inputs_shape, padding_mask_shape=None):
        hidden_dim = inputs_shape[-1]
        # One product makes x1 and x2.
        self.input_dense = Dense(
            2 * self.recurrent_dim,
            use_bias=False,
            kernel_initializer=bert_initializer(),
            implementation=self.implementation,
            dtype=self.dtype_policy,
            name="input_dense",
        )
        self.output_dense = Dense(
            hidden_dim,
            kernel_initializer=bert_initializer(),
            implementation=self.implementation,
            dtype=self.dtype_policy,
            name="output_dense",
        )
        self.input_dense.build(inputs_shape)
        self.output_dense.build((*inputs_shape[:-1], self.recurrent_dim))

        def vector(name, initializer):
            return self.add_float32_weight((self.recurrent_dim,), initializer, name)

        self.alpha = vector("alpha", "ones")
        self.beta = vector("beta", "zeros")
        self.state_bias = vector("state_bias", "zeros")  # b_c
        self.gate_bias = vector("gate_bias", "zeros")  # b_sigma
        self.built = True

    def call(self, inputs, padding_mask=None, mask=None):
        gated = swish_rnn(
            self.input_dense(inputs),
            self.alpha,
            self.beta,
            self.state_bias,
            self.gate_bias,
            self.agreed_mask(inputs, padding_mask, mask),
            self.step_size,
            self.gate,
            choose(self.implementation, self.recurrent_dim)[0],
        )
        return self.output_dense(gated)

    def compute_output_shape(self, inputs_shape, padding_mask_shape=None):
        return inputs_shape

    def explain_row(self):
        """What runs, see `keras_recbert.explain`."""
        return chosen_row(
            "SwishRNN", self.implementation, self.recurrent_dim, loops=True
        )

    def get_config(self):
        return {
            **super().get_config(),
            "recurrent_dim": self.recurrent_dim,
            "step_size": self.step_size,
            "gate": self.gate,
            "implementation": self.implementation,
        }
