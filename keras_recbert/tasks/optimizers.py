"""Keras's optimizers, quicker, and with steps that several devices take as one does."""

import keras
import tensorflow as tf
from keras import ops
from keras.src.optimizers.base_optimizer import BaseOptimizer


class _SameOnAllDevices:
    """Takes the step of one device on several, under whatever strategy.

    Keras 3 clips on each device what that one found, and adds up the rest; with
    `gradient_accumulation_steps` it fails, because devices may not wait for each other
    inside a condition. Here gradients are added up first. Then each device updates its
    own copy of the weights, all alike, by the code that Keras runs on one device.

    Args:
        sum_rows: bool. Adds up the gradients of a row of a table that a batch reads
            several times, too, before they are clipped. Keras takes the norm of such
            gradients one by one.
        **kwargs: those of the optimizer of Keras.
    """

    _apply_weight_decay = BaseOptimizer._apply_weight_decay
    _backend_update_step = BaseOptimizer._backend_update_step
    _backend_increment_gradient_accumulators = (
        BaseOptimizer._backend_increment_gradient_accumulators
    )

    def __init__(self, *args, sum_rows=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.sum_rows = sum_rows

    def _backend_apply_gradients(self, grads, trainable_variables):
        if self.sum_rows:
            grads = [tf.convert_to_tensor(gradient) for gradient in grads]
        pairs = self._all_reduce_sum_gradients(
            zip(grads, trainable_variables, strict=True)
        )
        grads = [gradient for gradient, _ in pairs]
        super()._backend_apply_gradients(grads, trainable_variables)

    def get_config(self):
        return {**super().get_config(), "sum_rows": self.sum_rows}


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
class Adadelta(_SameOnAllDevices, _Averages, keras.optimizers.Adadelta):
    """As `keras.optimizers.Adadelta` (Zeiler 2012).

    Args:
        sum_rows: bool. Adds up the gradients of each row of a table before clipping.
        **kwargs: those of `keras.optimizers.Adadelta`.
    """


@keras.saving.register_keras_serializable("keras_recbert")
class AdamW(_SameOnAllDevices, _Averages, keras.optimizers.AdamW):
    """As `keras.optimizers.AdamW`, by TensorFlow's fused op.

    Loshchilov and Hutter 2019, algorithm 2, without its schedule. Keras's update is a
    dozen ops a weight, each a pass over memory.

    Args:
        sum_rows: bool. Adds up the gradients of each row of a table before clipping.
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
