"""Keras's optimizers, quicker, and with averages that fit accumulation and freezing."""

import keras
import tensorflow as tf
from keras import ops


class _Averages:
    """Averages of weights as Keras's, but once a step, and for frozen weights too."""

    def _update_model_variables_moving_average(self, trainable_variables):
        update = super()._update_model_variables_moving_average
        parts = self.gradient_accumulation_steps
        if not parts:
            update(trainable_variables)
            return
        is_last_part = ops.equal((self._iterations + 1) % parts, 0)
        ops.cond(is_last_part, lambda: update(trainable_variables), lambda: None)

    def finalize_variable_values(self, var_list):
        # Of all weights that it knows: Keras pairs averages with weights by place.
        super().finalize_variable_values(self._trainable_variables)


@keras.saving.register_keras_serializable("keras_recbert")
class Adadelta(_Averages, keras.optimizers.Adadelta):
    """As `keras.optimizers.Adadelta` (Zeiler 2012)."""


@keras.saving.register_keras_serializable("keras_recbert")
class AdamW(_Averages, keras.optimizers.AdamW):
    """As `keras.optimizers.AdamW`, by TensorFlow's fused op.

    Loshchilov and Hutter 2019, algorithm 2, without its schedule. Keras's update is a
    dozen ops a weight, each a pass over memory.

    Args:
        **kwargs: those of `keras.optimizers.AdamW`.
    """

    def update_step(self, gradient, variable, learning_rate):
        if self.amsgrad:  # which the op does not know
            super().update_step(gradient, variable, learning_rate)
            return
        index = self._get_variable_index(variable)
        dtype = variable.dtype
        step = ops.cast(self.iterations + 1, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=_handle(variable),
            m=_handle(self._momentums[index]),
            v=_handle(self._velocities[index]),
            beta1_power=ops.power(ops.cast(self.beta_1, dtype), step),
            beta2_power=ops.power(ops.cast(self.beta_2, dtype), step),
            lr=ops.cast(learning_rate, dtype),
            beta1=ops.cast(self.beta_1, dtype),
            beta2=ops.cast(self.beta_2, dtype),
            epsilon=ops.cast(self.epsilon, dtype),
            grad=tf.convert_to_tensor(gradient, dtype),  # rows of a table too
        )


def _handle(variable):
    """The resource of a variable of Keras or TensorFlow, on the device of the scope."""
    if isinstance(variable, keras.Variable):
        variable = variable.value
    return variable.handle
