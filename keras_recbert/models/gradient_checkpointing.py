"""Blocks that keep their input for the backward pass, and compute the rest again."""

import keras
import tensorflow as tf

# No public name: reads weights as they are inside the call of a mixed-precision layer.
from keras.src.backend import AutocastScope


def checkpoint_gradients(block):
    """Makes a block recompute its activations in the backward pass.

    Chen et al. 2016, "Training deep nets with sublinear memory cost": of a call with
    `training=True` only the inputs are kept, one tensor a block; the backward pass
    runs the block again. Outputs and gradients stay what they were, dropout masks
    included. Other calls, and so inference and what is exported, do not change.

    Not `keras.remat` (`tf.recompute_grad`): Keras's dropout draws a new mask at every
    call, so its gradients would be those of another network. Here seeds and weights
    become arguments: a call is a pure function that can run twice.

    Args:
        block: `keras_recbert.layers.checked_layer.CheckedLayer`, called as
            `block(inputs, padding_mask=..., training=..., mask=...)`, one tensor to
            one tensor. Its `call` is replaced.
    """
    call = block.call

    def checkpointed_call(inputs, padding_mask=None, training=None, mask=None):
        # Here, as Keras's mask is lost where `inputs` becomes an argument below.
        padding_mask = block.agreed_mask(inputs, padding_mask, mask)
        if not training:
            return call(inputs, padding_mask=padding_mask, training=training)
        weights = block.weights
        in_weights = {id(weight) for weight in weights}
        seeds = [one for one in block.variables if id(one) not in in_weights]
        with AutocastScope(None):
            values = {id(w): tf.convert_to_tensor(w.value) for w in weights}
            drawn_from = [(seed, tf.convert_to_tensor(seed.value)) for seed in seeds]
        # The others are frozen: no work goes into their gradients.
        trained = [weight for weight in weights if weight.trainable]
        frozen = [(w, values[id(w)]) for w in weights if not w.trainable]

        def run(inputs, trained_values):
            pairs = zip(trained, trained_values, strict=True)
            scope = keras.StatelessScope([*pairs, *frozen, *drawn_from])
            with scope, AutocastScope(block.compute_dtype):
                outputs = call(inputs, padding_mask=padding_mask, training=True)
            return outputs, [scope.get_current_value(seed) for seed in seeds]

        next_seeds = []

        @tf.custom_gradient
        def recomputed(inputs, *trained_values):
            outputs, next_seeds[:] = run(inputs, trained_values)

            def grad(upstream):
                watched = [_after(upstream, inputs), *trained_values]
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(watched)
                    again, _ = run(watched[0], watched[1:])
                return tape.gradient(again, watched, upstream)

            return outputs, grad

        outputs = recomputed(inputs, *(values[id(weight)] for weight in trained))
        for seed, value in zip(seeds, next_seeds, strict=True):
            seed.assign(value)
        return outputs

    block.call = checkpointed_call


def _after(upstream, inputs):
    """`inputs`, but not before `upstream` is there.

    Else a graph would run the block again at once, while its first run still holds
    its memory, or merge both. XLA ignores control dependencies: this is data, a zero
    that no compiler can tell.
    """
    first = tf.reshape(upstream, [-1])[:1]
    impossible = tf.math.is_nan(first) & tf.math.is_finite(first)
    return inputs + tf.reduce_sum(tf.cast(impossible, inputs.dtype))
